"""One event loop per process, on which every model call runs while its task waits.

The waiting thread and the call are apart so that three things hold in every
pool: the deadline counts the whole call, a cancelled run's sockets close at
once, and one process can hold many calls. The loop is made at its first use; a
forked child forgets its parent's loop and makes its own. Fork before the first
call, as prefork does: a child that inherits an open socket keeps it from closing.

Cancellation: run ids come from ``cancel`` and from the ``cancellations``
iterator, which the loop consumes for as long as it lives. An id that comes
before its call is remembered, and the call is then refused. What is published
while the iterator is broken is missed: such a call goes on to its deadline at
most, and the run's record, not this class, keeps its answer from being used.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from worker.ports import ModelCancelled, ModelTimeout

Cancellations = Callable[[], AsyncIterator[str]]
"""Starts listening anew: yields ids of cancelled runs, raises when it loses its source."""

T = TypeVar("T")

_REMEMBERED_RUNS = 10_000
_STUCK_LOOP_GRACE = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

logger = logging.getLogger(__name__)


class CallLoop:
    """Runs calls on the process's loop. Every method may be used from any thread."""

    def __init__(self, cancellations: Cancellations | None = None) -> None:
        self._cancellations = cancellations
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._inherited: list[_Running] = []
        _LOOPS.add(self)

    def start(self) -> None:
        """Start the loop and its listener now, so that the first call finds them there."""
        self._here()

    def run(self, run_id: str, seconds: float, job: Callable[[], Awaitable[T]]) -> T:
        """Run ``job`` on the loop and wait for it, ``seconds`` of wall-clock time at most.

        Raises ModelTimeout, ModelCancelled or what ``job`` raised. An exception that
        interrupts the waiting thread (Celery's soft limit is one) cancels the job and
        passes through.
        """
        call = _Call(run_id, time.monotonic() + seconds, job)
        running: _Running | None = None
        try:
            running = self._here()
            running.post(running.begin, call)
            ended = call.ended.acquire(timeout=max(seconds, 0) + _STUCK_LOOP_GRACE)
        except BaseException:
            call.abandoned = True
            if running is not None:
                running.post(running.stop, call)
            raise
        if not ended:
            call.abandoned = True
            running.post(running.stop, call)
            raise ModelTimeout
        if call.failure is not None:
            raise call.failure
        return call.results[0]

    def cancel(self, run_id: str) -> None:
        """Close the run's open calls at once; they, and its later calls, end as ModelCancelled."""
        running = self._here()
        running.post(running.cancel, run_id)

    def close(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """End all calls, run ``last`` on the loop, and stop it. A later call starts a new one."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.close(last)

    def begin_anew(self) -> None:
        """Leave the parent's loop alone; called in a forked child."""
        self._lock = threading.Lock()  # another thread of the parent may have held the old one
        if self._running is not None:
            # Kept, since finalising it would touch what it shares with the parent.
            self._inherited.append(self._running)
            self._running = None

    def _here(self) -> "_Running":
        with self._lock:
            if self._running is None:
                self._running = _Running(self._cancellations)
            return self._running


class _Call(Generic[T]):
    """One call between two threads.

    ``ended`` is a bare lock, since an exception raised by a signal inside a
    condition variable can leave that in disorder.
    """

    def __init__(self, run_id: str, deadline: float, job: Callable[[], Awaitable[T]]) -> None:
        self.run_id = run_id
        self.deadline = deadline
        self.job = job
        self.ended = threading.Lock()
        self.ended.acquire()
        self.abandoned = False
        self.task: asyncio.Task[None] | None = None
        self.results: list[T] = []
        self.failure: Exception | None = None

    async def converse(self) -> None:
        try:
            async with asyncio.timeout_at(self.deadline):
                self.results.append(await self.job())
        except asyncio.CancelledError:
            self.failure = ModelCancelled()
        except TimeoutError:
            self.failure = ModelTimeout()
        except Exception as error:  # noqa: BLE001 - it is raised again where the call waits
            self.failure = error


class _Running:
    """A loop on its daemon thread. Except ``post`` and ``close``, methods run on the loop."""

    def __init__(self, cancellations: Cancellations | None) -> None:
        self._cancellations = cancellations
        self._loop = asyncio.new_event_loop()
        self._open: dict[str, set[_Call[Any]]] = {}
        self._cancelled: dict[str, None] = {}
        self._thread = threading.Thread(target=self._serve, name="model-calls", daemon=True)
        self._thread.start()

    def post(self, action: Callable[[Any], None], argument: Any) -> None:
        self._loop.call_soon_threadsafe(action, argument)

    def begin(self, call: _Call[Any]) -> None:
        if call.abandoned:
            return
        if call.run_id in self._cancelled:
            call.failure = ModelCancelled()
            call.ended.release()
            return
        call.task = self._loop.create_task(call.converse())
        self._open.setdefault(call.run_id, set()).add(call)
        call.task.add_done_callback(lambda _: self._ended(call))

    def stop(self, call: _Call[Any]) -> None:
        if call.task is not None:
            call.task.cancel()

    def cancel(self, run_id: str) -> None:
        self._cancelled[run_id] = None
        if len(self._cancelled) > _REMEMBERED_RUNS:
            del self._cancelled[next(iter(self._cancelled))]
        for call in self._open.get(run_id, ()):
            self.stop(call)

    def close(self, last: Callable[[], Awaitable[None]] | None) -> None:
        farewell = asyncio.run_coroutine_threadsafe(self._end(last), self._loop)
        try:
            farewell.result(_LONGEST_PAUSE)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_LONGEST_PAUSE)
            if not self._thread.is_alive():
                self._loop.close()

    def _ended(self, call: _Call[Any]) -> None:
        if not call.results and call.failure is None:
            # Cancelled before its first step, so that its own code never ran.
            call.failure = ModelCancelled()
        call.ended.release()
        calls = self._open[call.run_id]
        calls.discard(call)
        if not calls:
            del self._open[call.run_id]

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        if self._cancellations is not None:
            self._listener = self._loop.create_task(self._listen(self._cancellations))
        self._loop.run_forever()

    async def _listen(self, cancellations: Cancellations) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                async for run_id in cancellations():
                    pause = _FIRST_PAUSE
                    self.cancel(run_id)
            except Exception as error:  # noqa: BLE001 - cancelling outlives every fault
                logger.warning("listening for cancelled runs failed: %s", type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _end(self, last: Callable[[], Awaitable[None]] | None) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if last is not None:
            await last()
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()


_LOOPS: WeakSet[CallLoop] = WeakSet()


def _after_fork() -> None:
    for loop in _LOOPS:
        loop.begin_anew()


os.register_at_fork(after_in_child=_after_fork)
