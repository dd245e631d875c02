"""Redis, a judge and a worker of two processes, as the bench's parts need them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis

from contracts import channels
from tests.bench.drafts import draft_of, records_of
from tests.pipeline.cases import draft_ready
from worker.adapters.keys import Keys
from worker.client import StageClient
from worker.offline.judge import JudgeServer
from worker.offline.judge_script import verdict
from worker.offline.processes import start_worker
from worker.offline.redis_server import RedisServer

PATIENCE = 60


class NoResult(RuntimeError):
    """A run did not end in time; the bench cannot go on."""


class Agent:
    """Submits drafts and takes results, straight from Redis so that it costs little itself."""

    def __init__(self, redis_url: str) -> None:
        self.redis: Any = redis.Redis.from_url(redis_url)
        self.client = StageClient(redis_url)
        self._drafts: dict[str, Any] = {}

    def prepare(self) -> str:
        """Write a run's records; returns its id."""
        run_id = f"bench-{uuid4()}"
        mapping = {one.tool_call_id: one.model_dump_json() for one in records_of(run_id)}
        self.redis.hset(Keys().invocations(run_id), mapping=mapping)
        self._drafts[run_id] = draft_ready(run_id, draft_of())
        return run_id

    def submit(self, run_id: str) -> None:
        self.client.submit_draft(self._drafts.pop(run_id))

    def result(self) -> None:
        """Take one result off its queue, which kombu keeps as a list on Redis."""
        if self.redis.brpop([channels.RESULTS], timeout=PATIENCE) is None:
            raise NoResult

    def close(self) -> None:
        self.client.close()
        self.redis.close()


@dataclass(frozen=True)
class House:
    judge: JudgeServer
    agent: Agent


@contextmanager
def small_house(logs: Path, name: str) -> Iterator[House]:
    """One worker, with a judge in this process, which is idle while it waits for a result."""
    with RedisServer(appendfsync="everysec") as server, JudgeServer() as judge:
        judge.script(verdict("SUPPORTED").always())
        agent = Agent(server.url)
        with start_worker(name, environment_of(server.url, judge.base_url), logs):
            yield House(judge, agent)
        agent.close()


def environment_of(redis_url: str, base_url: str) -> dict[str, str]:
    """The settings of a bench's worker: the defaults, on servers of our own."""
    return {
        "REDIS_URL": redis_url,
        "RELEASE_BROKER_URL": "",
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "none",
    }
