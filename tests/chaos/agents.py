"""The agents: they submit drafts and claims at a steady pace, and cancel some."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, PriorityQueue
from threading import Event, Lock, Thread

import redis

from contracts.messages import CancelRun
from tests.chaos.house import House
from tests.chaos.plan import Cancel, Plan, Way
from tests.chaos.producers import AGAIN, Producer
from tests.pipeline.cases import disk_records
from worker.client import InvocationWriter, StageClient
from worker.run.events import Answer
from worker.run.steps import every_ref, task_id
from worker.stage.cancel import cancel

PRODUCERS, CANCELLERS = 3, 3
MOST_OPEN = 60
"""Open runs at which a producer waits: a slow machine takes longer, and is no other test."""


class Agents:
    """Submits the planned runs within about so many seconds."""

    def __init__(self, house: House, producer: Producer, plans: list[Plan], seconds: float) -> None:
        self.submitted: set[str] = set()
        self.acknowledged: set[str] = set()
        """Runs whose cancel was committed, and its canceller told so."""
        self.errors: list[BaseException] = []
        self._house = house
        self._say = producer
        self._left: Iterator[tuple[int, Plan]] = iter(enumerate(plans))
        self._pace = seconds / len(plans)
        self._begun = time.monotonic()
        self._lock = Lock()
        self._due: PriorityQueue[tuple[float, str, Plan]] = PriorityQueue()
        self._done = Event()
        self._threads = [self._thread(self._produce) for _ in range(PRODUCERS)]
        self._cancellers = [self._thread(self._cancel_due) for _ in range(CANCELLERS)]

    def start(self) -> None:
        for thread in (*self._threads, *self._cancellers):
            thread.start()

    def join(self, seconds: float) -> bool:
        """Wait until all is submitted and every cancel said; raises what an agent raised."""
        until = time.monotonic() + seconds
        for thread in (*self._threads, *self._cancellers):
            thread.join(max(0.0, until - time.monotonic()))
            if thread is self._threads[-1] and not any(one.is_alive() for one in self._threads):
                self._done.set()
        if self.errors:
            raise self.errors[0]
        return not any(thread.is_alive() for thread in (*self._threads, *self._cancellers))

    def _thread(self, work: Callable[[StageClient], None]) -> Thread:
        def guarded() -> None:
            client = StageClient(self._house.store.url, self._house.broker_url)
            try:
                work(client)
            except BaseException as error:  # noqa: BLE001 - raised again where it is joined
                self.errors.append(error)
            finally:
                client.close()

        return Thread(target=guarded, daemon=True)

    def _produce(self, client: StageClient) -> None:
        writer = InvocationWriter(redis.Redis.from_url(self._house.store.url))
        while True:
            with self._lock:
                number, plan = next(self._left, (0, None))
            if plan is None:
                return
            wait_for(self._begun + number * self._pace)
            while self._say.insist(self._house.open_runs) > MOST_OPEN:
                time.sleep(AGAIN)
            self._play(plan, client, writer)

    def _play(self, plan: Plan, client: StageClient, writer: InvocationWriter) -> None:
        self._house.judge.add(*plan.judge)
        if plan.kind.recorded:
            for record in disk_records(plan.run_id):
                self._say.insist(partial(writer.write, record))
        if plan.cancel is not None and plan.cancel_after < 0:
            self._cancel(plan, client)
        message = plan.message()
        self._say.insist(lambda: self._say.submit(message, plan.way, client))
        self.submitted.add(plan.run_id)
        if plan.again:
            self._say.insist(lambda: self._say.submit(message, Way.CLIENT, client))
        if plan.cancel is not None and plan.cancel_after >= 0:
            self._due.put((time.monotonic() + plan.cancel_after, plan.run_id, plan))

    # --- cancels --------------------------------------------------------------

    def _cancel_due(self, client: StageClient) -> None:
        while True:
            try:
                due, _, plan = self._due.get(timeout=0.1)
            except Empty:
                if self._done.is_set():
                    return
                continue
            wait_for(due)
            self._cancel(plan, client)

    def _cancel(self, plan: Plan, client: StageClient) -> None:
        run_id = plan.run_id
        match plan.cancel:
            case Cancel.CLIENT:
                self._say.insist(lambda: client.cancel_run(run_id))
            case Cancel.EVENT:
                control = self._house.broker.control
                self._say.insist(lambda: self._say.publish(CancelRun(run_id=run_id), control))
            case Cancel.COMMIT:
                report = self._say.insist(lambda: cancel(self._house.stage, run_id))
                if report.answer in (Answer.ENDED, Answer.MARKED):
                    self.acknowledged.add(run_id)
            case Cancel.REVOKE | Cancel.TERMINATE:
                rounds = 2 if plan.kind.claims else 1
                ids = [task_id(run_id, ref) for ref in every_ref(rounds, 2)]
                terminate = plan.cancel is Cancel.TERMINATE
                self._say.insist(
                    lambda: self._house.celery.control.revoke(
                        ids, terminate=terminate, signal="SIGTERM"
                    )
                )


def wait_for(moment: float) -> None:
    """Wait for a moment of the monotonic clock."""
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
