"""The way of a record to its store, which may be slow or away, without holding up a tool.

One daemon thread writes, in order. The tool's thread waits for it, but never longer than
``bound`` seconds: not for a dead host, not for a name server, not for a trickling answer.
A failure opens a circuit: for ``pause`` seconds nothing is tried, so that a store that is
away costs a long investigation one wait and not one a call.
"""

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import Protocol

from contracts.evidence import InvocationRecord
from worker.client.invocations import Immutable, Uncited

log = logging.getLogger("release_stage.recorder")

BOUND = 0.5
PAUSE = 5.0


class RecordStore(Protocol):
    """Where records and counts are kept. Its failures may be of any class."""

    def write(self, record: InvocationRecord) -> None:
        """Write one record; raises Immutable when another final one stands."""
        ...

    def count(self, session_id: str, run_id: str, what: Uncited, by: int = 1) -> None:
        """Count model steps or helper calls, which leave no record."""
        ...


Job = Callable[[], None]


class Courier:
    """Hands jobs to one writing thread; safe from any thread, and after a fork."""

    def __init__(
        self,
        *,
        bound: float = BOUND,
        pause: float = PAUSE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._bound = bound
        self._pause = pause
        self._clock = clock
        self._closed_until = 0.0
        self._told = False
        self._pid = 0
        self._jobs: queue.SimpleQueue[tuple[Job, Future[None]] | None] = queue.SimpleQueue()
        self._start = threading.Lock()

    def deliver(self, job: Job) -> bool:
        """Run a job on the writing thread; tells whether it was done within the bound."""
        future = self._hand_over(job)
        if future is None:
            return False
        try:
            future.result(self._bound)
        except Exception as error:
            if not self._failed(future, error):
                raise
            return False
        return self._succeeded()

    async def deliver_async(self, job: Job) -> bool:
        """The same for a coroutine: the event loop goes on meanwhile.

        A task that is cancelled while it waits leaves the job to the thread.
        """
        future = self._hand_over(job)
        if future is None:
            return False
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def tell(_: Future[None]) -> None:
            with suppress(RuntimeError):  # the loop has ended; nobody waits any more
                loop.call_soon_threadsafe(done.set)

        future.add_done_callback(tell)
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), self._bound)
        try:
            future.result(0)
        except Exception as error:
            if not self._failed(future, error):
                raise
            return False
        return self._succeeded()

    def close(self) -> None:
        """Let the thread end once it has done what was handed to it."""
        if self._pid == os.getpid():
            self._jobs.put(None)
            self._pid = 0

    def _hand_over(self, job: Job) -> Future[None] | None:
        if self._clock() < self._closed_until:
            return None
        self._run()
        future: Future[None] = Future()
        self._jobs.put((job, future))
        return future

    def _run(self) -> None:
        if self._pid == os.getpid():
            return
        with self._start:
            if self._pid == os.getpid():
                return
            self._jobs = queue.SimpleQueue()
            thread = threading.Thread(
                target=_work, args=(self._jobs,), name="release-stage-recorder", daemon=True
            )
            thread.start()
            self._pid = os.getpid()

    def _failed(self, future: Future[None], error: Exception) -> bool:
        """Note that the store failed; False if it did not, and only refused a record."""
        if isinstance(error, Immutable):
            return False
        future.cancel()
        self._closed_until = self._clock() + self._pause
        if not self._told:
            self._told = True
            log.warning("RECORDER_STORE_UNAVAILABLE %s", type(error).__name__)
        return True

    def _succeeded(self) -> bool:
        if self._told:
            self._told = False
            log.warning("RECORDER_STORE_BACK")
        return True


def _work(jobs: "queue.SimpleQueue[tuple[Job, Future[None]] | None]") -> None:
    while (item := jobs.get()) is not None:
        job, future = item
        if not future.set_running_or_notify_cancel():
            continue
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the job is told
            future.set_exception(error)
        else:
            future.set_result(None)
