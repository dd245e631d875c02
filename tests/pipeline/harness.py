"""A whole stage of real processes for one test session, and the words to speak with it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis
from kombu import Connection

from contracts.envelope import Envelope
from contracts.evidence import InvocationRecord
from contracts.messages import DraftReady
from worker.adapters.keys import Keys
from worker.client import InvocationWriter, ResultConsumer, StageClient
from worker.offline.judge import JudgeServer
from worker.offline.processes import Process, start_relay, start_worker, wait_until
from worker.offline.redis_server import RedisServer
from worker.run.state import Run

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


@dataclass
class LocalStage:
    """The servers and processes of a stage, with a client's and an operator's view of it."""

    redis_server: RedisServer
    judge: JudgeServer
    logs: Path
    environment: dict[str, str]
    processes: list[Process] = field(default_factory=list)
    results: dict[str, list[Envelope]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.redis: Any = redis.Redis.from_url(self.redis_server.url)
        self.client = StageClient(self.redis_server.url)
        self.keys = Keys()
        self._writer = InvocationWriter(self.redis)
        self._results = ResultConsumer(self.redis_server.url, name="tests")

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
        with Connection(self.redis_server.broker_url) as connection:
            connection.Producer().publish(
                body,
                routing_key=queue,
                content_type="application/cloudevents+json",
                content_encoding="binary",
            )

    def submit(self, draft: DraftReady) -> str:
        self.client.submit_draft(draft)
        return draft.run_id

    def run(self, run_id: str) -> Run | None:
        state = self.redis.hget(self.keys.run(run_id), "state")
        return None if state is None else Run.model_validate_json(state)

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

    def _keep(self, envelope: Envelope) -> None:
        self.results.setdefault(envelope.subject, []).append(envelope)

    def dead(self) -> list[tuple[str, bytes]]:
        """Take all dead letters: reason and raw body of each."""
        letters: list[tuple[str, bytes]] = []
        with Connection(self.redis_server.broker_url) as connection:
            queue = connection.SimpleQueue("release.dead")
            while queue.qsize():
                message = queue.get(timeout=1)
                body = message.body
                letters.append(
                    (message.headers["reason"], body if isinstance(body, bytes) else body.encode())
                )
                message.ack()
            queue.close()
        return letters

    def log_text(self) -> str:
        return "".join(process.text() for process in self.processes)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()
        self.client.close()
        self._results.close()
        self.redis.close()


@contextmanager
def local_stage(
    logs: Path, *, durable: bool = False, settings: dict[str, str] | None = None
) -> Iterator[LocalStage]:
    """Redis and judge of their own; workers and relays are started by the test."""
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(appendfsync="always" if durable else None))
        judge = stack.enter_context(JudgeServer())
        environment = {
            "REDIS_URL": server.url,
            "OPENAI_BASE_URL": judge.base_url,
            "OPENAI_API_KEY": "none",
            **QUICK,
            **(settings or {}),
        }
        stage = LocalStage(server, judge, logs, environment)
        stack.callback(stage.stop)
        yield stage


def new_run_id(stem: str = "run") -> str:
    return f"{stem}-{uuid4()}"
