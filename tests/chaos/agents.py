"""The agents: they submit drafts at a steady pace, cancel some, and insist until they are heard."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from queue import Empty, PriorityQueue
from threading import Event, Lock, Thread
from typing import TypeVar
from uuid import uuid4

import redis
from amqp.exceptions import AMQPError
from celery.exceptions import CeleryError
from kombu import Connection, Queue
from kombu.exceptions import KombuError

from contracts.envelope import MEDIA_TYPE, Incoming, wrap
from contracts.messages import CancelRun
from contracts.strict_json import parse
from tests.chaos.house import House
from tests.chaos.plan import Cancel, Plan, Way
from tests.pipeline.cases import disk_records
from worker.client import InvocationWriter, StageClient
from worker.ports import SendFailed, StoreUnavailable
from worker.run.events import Answer
from worker.run.steps import every_ref, task_id
from worker.stage.cancel import cancel
from worker.tasks import SUBMIT

AWAY = (
    redis.RedisError,
    KombuError,
    AMQPError,
    CeleryError,
    OSError,
    StoreUnavailable,
    SendFailed,
)
"""What a client sees of a store or broker that is away."""
PRODUCERS, CANCELLERS = 3, 3
MOST_OPEN = 60
"""Open runs at which a producer waits: a slow machine takes longer, and is no other test."""
PATIENCE = 120.0
"""Seconds after which whoever was not heard gives up."""
AGAIN = 0.2
"""Seconds before a producer tries again what was not taken."""

T = TypeVar("T")


class Silenced(Exception):
    """The house never came back; what was to be said could not be."""


class Agents:
    """Submits the planned runs within about so many seconds."""

    def __init__(self, house: House, plans: list[Plan], seconds: float) -> None:
        self.submitted: set[str] = set()
        self.acknowledged: set[str] = set()
        """Runs whose cancel was committed, and its canceller told so."""
        self.retries = 0
        self.errors: list[BaseException] = []
        self._house = house
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
            while self._insist(self._house.open_runs) > MOST_OPEN:
                time.sleep(AGAIN)
            self._play(plan, client, writer)

    def _play(self, plan: Plan, client: StageClient, writer: InvocationWriter) -> None:
        self._house.judge.add(*plan.judge)
        if plan.kind.recorded:
            for record in disk_records(plan.run_id):
                self._insist(partial(writer.write, record))
        if plan.cancel is not None and plan.cancel_after < 0:
            self._cancel(plan, client)
        message = plan.message()

        def submit() -> None:
            match plan.way:
                case Way.CLIENT:
                    client.submit_draft(message)
                case Way.PLAIN:
                    self._publish(message, self._house.broker.drafts)
                case Way.TASK:
                    self._send_task(message)

        self._insist(submit)
        self.submitted.add(plan.run_id)
        if plan.again:
            self._insist(lambda: client.submit_draft(message))
        if plan.cancel is not None and plan.cancel_after >= 0:
            self._due.put((time.monotonic() + plan.cancel_after, plan.run_id, plan))

    def _publish(self, message: Incoming, queue: Queue) -> None:
        """Publish as any producer would, without the inbox."""
        broker = self._house.broker
        with Connection(
            self._house.broker_url, transport_options=broker.connection_options
        ) as connection:
            connection.Producer().publish(
                _wrapped(message),
                routing_key=queue.name,
                content_type=MEDIA_TYPE,
                content_encoding="binary",
                delivery_mode=2,
                declare=[broker.dead, queue],
                **broker.publish_options,
            )

    def _send_task(self, message: Incoming) -> None:
        with self._house.celery.producer_or_acquire() as producer:
            try:
                self._house.celery.send_task(
                    SUBMIT,
                    args=[parse(_wrapped(message))],
                    producer=producer,
                    retry=False,
                    **self._house.broker.publish_options,
                )
            except AWAY:
                # Its confirmation may still come, and must not be taken for another's.
                producer.connection.close()
                raise

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
                self._insist(lambda: client.cancel_run(run_id))
            case Cancel.EVENT:
                control = self._house.broker.control
                self._insist(lambda: self._publish(CancelRun(run_id=run_id), control))
            case Cancel.COMMIT:
                report = self._insist(lambda: cancel(self._house.stage, run_id))
                if report.answer in (Answer.ENDED, Answer.MARKED):
                    self.acknowledged.add(run_id)
            case Cancel.REVOKE | Cancel.TERMINATE:
                ids = [task_id(run_id, ref) for ref in every_ref(1, 2)]
                terminate = plan.cancel is Cancel.TERMINATE
                self._insist(
                    lambda: self._house.celery.control.revoke(
                        ids, terminate=terminate, signal="SIGTERM"
                    )
                )

    def _insist(self, speak: Callable[[], T]) -> T:
        """Try until it is taken, as a producer does that must not lose what it says."""
        gives_up = time.monotonic() + PATIENCE
        while True:
            try:
                return speak()
            except AWAY as error:
                self.retries += 1
                if time.monotonic() > gives_up:
                    raise Silenced(type(error).__name__) from error
            time.sleep(AGAIN)


def wait_for(moment: float) -> None:
    """Wait for a moment of the monotonic clock."""
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)


def _wrapped(message: Incoming) -> bytes:
    return wrap(message, message_id=str(uuid4()), time=datetime.now(UTC))
