"""A lane of the sweep: a stage of its own, through which one swept run goes at a time."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import redis
from kombu import Connection

from contracts.messages import DraftReady, ExecutorOutputReady
from tests.pipeline.cases import disk_records
from tests.sweep.points import Points
from worker.adapters.keys import Keys
from worker.adapters.queues import broker_of
from worker.client import InvocationWriter, StageClient
from worker.offline.judge import JudgeServer
from worker.offline.processes import Process
from worker.offline.redis_server import RedisServer
from worker.run.state import Run

SWEPT = {
    "RELEASE_ATTEMPT_TIMEOUT": "2",
    "RELEASE_REVIEW_TOTAL_TIMEOUT": "5",
    "RELEASE_SOFT_MARGIN": "0.5",
    "RELEASE_HARD_MARGIN": "1",
    "RELEASE_LEASE_MARGIN": "0.5",
    "RELEASE_LIGHT_SOFT_LIMIT": "2",
    "RELEASE_LIGHT_HARD_LIMIT": "3",
    "RELEASE_RESEND_FIRST": "2",
    "RELEASE_RESEND_MAX": "4",
    "RELEASE_VISIBILITY_TIMEOUT": "4",
    "RELEASE_RELAY_INTERVAL": "0.1",
    "RELEASE_EVIDENCE_RESERVE": "2",
}
"""The waits of production, scaled down as far as a busy machine allows."""

_ROOT = Path(__file__).resolve().parents[2]


class Lane:
    """Worker and relay under a supervisor, and everything that they let out."""

    def __init__(self, store: RedisServer, broker: str, judge: JudgeServer, process: Process):
        self.judge = judge
        self.process = process
        self.redis: Any = redis.Redis.from_url(store.url)
        self.points = Points(self.redis)
        self.client = StageClient(store.url, broker)
        self.results: dict[str, set[tuple[str, bytes]]] = {}
        self._keys = Keys()
        self._broker = broker_of(broker)
        self._connection = Connection(broker)
        self._queue = self._connection.SimpleQueue(self._broker.results)

    def submit(self, message: DraftReady | ExecutorOutputReady) -> None:
        """Record what it cites, then submit a draft or claims as an agent does."""
        writer = InvocationWriter(self.redis)
        for record in disk_records(message.run_id):
            writer.write(record)
        if isinstance(message, DraftReady):
            self.client.submit_draft(message)
        else:
            self.client.submit_claims(message)

    def run(self, run_id: str) -> Run | None:
        state = self.redis.hget(self._keys.run(run_id), "state")
        return None if state is None else Run.model_validate_json(state)

    def collect(self) -> None:
        """Take what came to the results queue: message id and body, by run."""
        with suppress(self._queue.Empty):
            while True:
                message = self._queue.get(block=False)
                found = (message.properties["message_id"], bytes(message.body))
                self.results.setdefault(message.headers["run_id"], set()).add(found)
                message.ack()

    def left(self) -> dict[str, int]:
        """What is still on its way: open runs, unsent messages, undelivered messages."""
        counts = {
            "open runs": self.redis.zcard(self._keys.open_runs),
            "unsent": self.redis.xlen(self._keys.outbox),
            "not admitted": self.redis.zcard(self._keys.inbox),
        }
        if not self._broker.is_rabbitmq:
            counts["unacknowledged"] = self.redis.hlen("unacked")
            for queue in (self._broker.drafts, self._broker.tasks):
                counts[queue.name] = self.redis.llen(queue.name)
        return {name: count for name, count in counts.items() if count}

    def report(self, run_id: str) -> str:
        """What is known of a run and of the lane, for the one who looks into a failure."""
        passed = "\n".join(self.points.passed(run_id))
        log = self.process.text()[-3000:]
        return f"run {self.run(run_id)}\nleft {self.left()}\npassed\n{passed}\nlog\n{log}"

    def close(self) -> None:
        self.client.close()
        self._queue.close()
        self._connection.close()
        self.redis.close()


@contextmanager
def lane(
    name: str, judge: JudgeServer, logs: Path, broker_url: str | None = None
) -> Iterator[Lane]:
    """A lane with a Redis of its own, which is the broker too unless another is named.

    Its worker may still be starting: what is submitted waits for it.
    """
    with ExitStack() as stack:
        store = stack.enter_context(RedisServer())
        environment = {
            "REDIS_URL": store.url,
            "RELEASE_BROKER_URL": broker_url or store.broker_url,
            "OPENAI_BASE_URL": judge.base_url,
            "OPENAI_API_KEY": "none",
            "PYTHONPATH": os.pathsep.join((str(_ROOT), os.environ.get("PYTHONPATH", ""))),
            **SWEPT,
        }
        process = Process(name, [sys.executable, "-m", "tests.sweep.supervisor"], environment, logs)
        stack.enter_context(process)
        running = Lane(store, broker_url or store.broker_url, judge, process)
        stack.callback(running.close)
        yield running
