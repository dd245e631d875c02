"""A whole stage of real processes for one test session, and the words to speak with it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis
from celery import Celery
from kombu import Connection

from contracts import channels
from contracts.envelope import Envelope, wrap
from contracts.evidence import InvocationRecord
from contracts.messages import DraftReady, ExecutorOutputReady
from tests.pipeline.dying import DIED
from worker.adapters.keys import Keys
from worker.adapters.queues import broker_of
from worker.adapters.redis_records import RedisRecords
from worker.client import InvocationWriter, ResultConsumer, StageClient
from worker.offline.judge import JudgeServer
from worker.offline.processes import Process, start_relay, start_worker, wait_until
from worker.offline.redis_server import RedisServer
from worker.run.state import Run
from worker.run.steps import Step, StepRef, every_ref, task_id
from worker.settings import Settings
from worker.stage.show import show
from worker.tasks import CeleryDispatcher

PATIENCE = 30.0
"""Seconds that a test waits for what must happen. Only a failure takes that long."""

QUICK = {
    "RELEASE_ATTEMPT_TIMEOUT": "2",
    "RELEASE_REVIEW_TOTAL_TIMEOUT": "5",
    "RELEASE_SOFT_MARGIN": "1",
    "RELEASE_HARD_MARGIN": "2",
    "RELEASE_LEASE_MARGIN": "1",
    "RELEASE_LIGHT_SOFT_LIMIT": "5",
    "RELEASE_LIGHT_HARD_LIMIT": "6",
    "RELEASE_RESEND_FIRST": "2",
    "RELEASE_RESEND_MAX": "4",
    "RELEASE_VISIBILITY_TIMEOUT": "8",
    "RELEASE_RELAY_INTERVAL": "0.1",
}
"""The waits of production, scaled down."""

GATE = StepRef(0, Step.GATE_CLAIMS, 1)
VERIFY = StepRef(0, Step.VERIFY_CLAIMS, 1)
SECOND_VERIFY = StepRef(0, Step.VERIFY_CLAIMS, 2)
COMPOSE = StepRef(0, Step.COMPOSE_ANSWER, 1)
CHECK = StepRef(0, Step.CHECK_EVIDENCE, 1)
SECOND_CHECK = StepRef(0, Step.CHECK_EVIDENCE, 2)
REPAIR = StepRef(0, Step.REPAIR_EVIDENCE, 1)
REVIEW = StepRef(0, Step.REVIEW_SEMANTICS, 1)
SECOND_REVIEW = StepRef(0, Step.REVIEW_SEMANTICS, 2)
PUBLISH = StepRef(0, Step.PUBLISH, 1)

_ROOT = Path(__file__).resolve().parents[2]
_TASK_LINE = re.compile(
    r"Task (?P<name>\S+)\[(?P<id>[0-9a-f-]{36})\] "
    r"(?:(?P<what>received|ignored)|succeeded in \S+ '(?P<code>\w+)')"
)


@dataclass
class LocalStage:
    """The servers and processes of a stage, with a client's and an operator's view of it."""

    redis_server: RedisServer
    judge: JudgeServer
    logs: Path
    environment: dict[str, str]
    processes: list[Process] = field(default_factory=list)
    results: dict[str, list[Envelope]] = field(default_factory=dict)
    requests: dict[str, list[Envelope]] = field(default_factory=dict)
    letters: list[tuple[str, bytes]] = field(default_factory=list)
    broker_url: str = ""

    def __post_init__(self) -> None:
        self.broker_url = self.broker_url or self.redis_server.broker_url
        self.broker = broker_of(self.broker_url)
        self.redis: Any = redis.Redis.from_url(self.redis_server.url)
        self.client = StageClient(self.redis_server.url, self.broker_url)
        self.keys = Keys()
        self._writer = InvocationWriter(self.redis)
        self._results = ResultConsumer(self.redis_server.url, self.broker_url, name="tests")
        self._requests = ResultConsumer(
            self.redis_server.url, self.broker_url, name="tests", reply_to=channels.REQUESTS
        )

    def worker(self, name: str = "", **options: Any) -> Process:
        name = name or f"worker{len(self.processes)}"
        self.processes.append(start_worker(name, self.environment, self.logs, **options))
        return self.processes[-1]

    def relay(self, name: str = "") -> Process:
        name = name or f"relay{len(self.processes)}"
        self.processes.append(start_relay(name, self.environment, self.logs))
        return self.processes[-1]

    def record(self, *records: InvocationRecord) -> None:
        for one in records:
            self._writer.write(one)

    def publish_raw(self, body: bytes, queue: str = "release.drafts") -> None:
        """Publish bytes as any producer would, without the inbox."""
        with Connection(self.broker_url) as connection:
            connection.Producer().publish(
                body,
                routing_key=queue,
                content_type="application/cloudevents+json",
                content_encoding="binary",
            )

    def wrapped(self, message: DraftReady | ExecutorOutputReady) -> bytes:
        """A message as the client would send it."""
        return wrap(message, message_id=f"{uuid4()}", time=datetime.now(UTC))

    def submit(self, draft: DraftReady) -> str:
        self.client.submit_draft(draft)
        return draft.run_id

    def run(self, run_id: str) -> Run | None:
        state = self.redis.hget(self.keys.run(run_id), "state")
        return None if state is None else Run.model_validate_json(state)

    def evaluation(self, run_id: str) -> dict[str, Any]:
        """The evaluation record of a run, reasons and violations included."""
        records = RedisRecords(self.redis, self.keys, retention=1)
        return show(records, self.settings.policy(), run_id) or {}

    def ended(self, run_id: str) -> Run:
        """Wait for the run's ending."""

        def has_ended() -> bool:
            run = self.run(run_id)
            return run is not None and run.ending is not None

        wait_until(has_ended, PATIENCE, f"the ending of {run_id}")
        run = self.run(run_id)
        assert run is not None
        return run

    def outcome(self, run_id: str) -> Envelope:
        """Wait for the run's one message on the results queue; repeats fail the test."""

        def has_come() -> bool:
            self._results.consume(self._keep, timeout=0.05)
            return run_id in self.results

        wait_until(has_come, PATIENCE, f"the outcome of {run_id}")
        messages = self.results[run_id]
        assert len(messages) == 1, "one run, one outcome"
        return messages[0]

    def request(self, run_id: str) -> Envelope:
        """Wait for the run's one request for evidence on the queue that all share."""

        def has_come() -> bool:
            self._requests.consume(self._keep_request, timeout=0.05)
            return run_id in self.requests

        wait_until(has_come, PATIENCE, f"a request of {run_id}")
        (message,) = self.requests[run_id]
        return message

    def _keep(self, envelope: Envelope) -> None:
        self.results.setdefault(envelope.subject, []).append(envelope)

    def _keep_request(self, envelope: Envelope) -> None:
        self.requests.setdefault(envelope.subject, []).append(envelope)

    def dead(self) -> list[tuple[str, bytes]]:
        """All dead letters that came so far: reason and raw body of each."""
        with Connection(self.broker_url) as connection:
            queue = connection.SimpleQueue(self.broker.dead)
            with suppress(queue.Empty):
                while True:
                    message = queue.get(block=False)
                    body = message.body
                    raw = body if isinstance(body, bytes) else body.encode()
                    self.letters.append((message.headers.get("reason", "DELIVERED_TOO_OFTEN"), raw))
                    message.ack()
            queue.close()
        return self.letters

    def dead_letter(self, raw: bytes) -> str:
        """Wait for the dead letter that is exactly these bytes; returns its reason."""

        def has_come() -> bool:
            return any(body == raw for _, body in self.dead())

        wait_until(has_come, PATIENCE, "a dead letter")
        (reason,) = (reason for reason, body in self.letters if body == raw)
        return reason

    def reply(self, reply_to: str) -> Envelope:
        """Wait for one message on a reply queue."""
        found: list[Envelope] = []
        consumer = ResultConsumer(
            self.redis_server.url, self.broker_url, name=f"{uuid4()}", reply_to=reply_to
        )

        def has_come() -> bool:
            consumer.consume(found.append, timeout=0.05)
            return bool(found)

        try:
            wait_until(has_come, PATIENCE, f"a message on {reply_to}")
        finally:
            consumer.close()
        (message,) = found
        return message

    def age_inbox(self, message_id: str) -> None:
        """Make an inbox entry as old as one that the broker never brought."""
        written = datetime.now(UTC).timestamp() - 60
        assert self.redis.zadd(self.keys.inbox, {message_id: written}, xx=True, ch=True)

    @cached_property
    def dispatcher(self) -> CeleryDispatcher:
        """What a worker enqueues steps with, here to deliver one again."""
        app = Celery("tests", set_as_current=False)
        app.conf.update(
            broker_url=self.broker_url,
            broker_transport_options=self.broker.connection_options,
            task_queues=[self.broker.tasks],
            task_default_queue=self.broker.tasks.name,
            task_ignore_result=True,
        )
        return CeleryDispatcher(app, self.settings.policy())

    @property
    def settings(self) -> Settings:
        """The settings that the processes run under."""
        names = {
            key.removeprefix("RELEASE_").lower(): value for key, value in self.environment.items()
        }
        return Settings.model_validate(names)

    def deliver(self, run_id: str, ref: StepRef) -> None:
        """Put a step's message on the task queue, as it was when the run had just opened."""
        self.dispatcher.dispatch(Run(run_id=run_id), ref)

    def steps(self, run_id: str) -> list[tuple[StepRef, str]]:
        """What the workers logged of a run: each step with ``received``, ``ignored`` or a code."""
        refs = {task_id(run_id, ref): ref for ref in every_ref(2, 2)}
        return [
            (refs[line["id"]], line["what"] or line["code"])
            for line in _TASK_LINE.finditer(self.log_text())
            if line["id"] in refs
        ]

    def carried_out(self, run_id: str) -> list[tuple[StepRef, str]]:
        """The run's steps that came to a result, with their codes, in order."""
        idle = ("received", "ignored")
        return [(ref, code) for ref, code in self.steps(run_id) if code not in idle]

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait for what must happen; fails the test after PATIENCE."""
        wait_until(condition, PATIENCE, what)

    def wait_for_step(self, run_id: str, ref: StepRef, code: str) -> None:
        self.wait_for(lambda: (ref, code) in self.steps(run_id), f"{ref.key} {code}")

    def die(self, point: str, message: DraftReady | ExecutorOutputReady, *refs: StepRef) -> None:
        """Play the part of a process that opens a run, carries out steps and dies.

        ``point`` is ``recorded`` or ``released``; see ``tests.pipeline.dying``.
        """
        steps = [f"{ref.step}.{ref.attempt}" for ref in refs]
        ended = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.dying", point, *steps],
            input=self.wrapped(message),
            env={**os.environ, **self.environment},
            cwd=_ROOT,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == DIED, "the process must die where it was told to"

    def log_text(self) -> str:
        return "".join(process.text() for process in self.processes)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()
        self.client.close()
        self._results.close()
        self._requests.close()
        self.redis.close()


@contextmanager
def local_stage(
    logs: Path,
    *,
    durable: bool = False,
    settings: dict[str, str] | None = None,
    broker_url: str = "",
) -> Iterator[LocalStage]:
    """Redis and judge of their own; workers and relays are started by the test.

    Without ``broker_url`` that Redis is the broker, too.
    """
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(appendfsync="always" if durable else None))
        judge = stack.enter_context(JudgeServer())
        environment = {
            "REDIS_URL": server.url,
            "OPENAI_BASE_URL": judge.base_url,
            "OPENAI_API_KEY": "none",
            "RELEASE_BROKER_URL": broker_url,
            **QUICK,
            **(settings or {}),
        }
        stage = LocalStage(server, judge, logs, environment, broker_url=broker_url)
        stack.callback(stage.stop)
        yield stage


def new_run_id(stem: str = "run") -> str:
    return f"{stem}-{uuid4()}"
