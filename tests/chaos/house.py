"""The house that is set on fire: servers, and processes that are started again when they die."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal

import redis
from celery import Celery

from tests.pipeline.harness import QUICK
from worker.adapters.keys import Keys
from worker.adapters.queues import Broker, broker_of
from worker.app import broker_options, build_stage
from worker.offline.judge import JudgeServer
from worker.offline.processes import Process
from worker.offline.rabbitmq_server import RabbitServer
from worker.offline.redis_server import RedisServer
from worker.settings import Settings
from worker.stage.engine import Stage

Kind = Literal["redis", "rabbitmq"]

LOOK = 0.1
RESTART = 0.3
"""Seconds that a dead process stays dead; systemd's RestartSec."""
BROKER_PATIENCE = 3.0
"""Seconds that the broker has to bring a submitted draft; half a minute in production."""

CHAOS = {
    **QUICK,
    "RELEASE_RESEND_FIRST": "6",
    "RELEASE_RESEND_MAX": "60",
    "RELEASE_VISIBILITY_TIMEOUT": "12",
    "RELEASE_EVIDENCE_RESERVE": "5",
}
"""As in production, a step that only waits in a queue is seldom sent or delivered again."""

_ROOT = Path(__file__).resolve().parents[2]
_WORKER = (
    *(sys.executable, "-m", "celery", "-A", "worker.app", "worker"),
    *("--loglevel", "INFO", "--concurrency", "4"),
)
_RELAY = (sys.executable, "-m", "worker.cli", "relay")


class Supervised:
    """A process under the care of a supervisor that only ever starts it again."""

    def __init__(
        self, name: str, command: tuple[str, ...], environment: Mapping[str, str], logs: Path
    ) -> None:
        self.name = name
        self.starts = 0
        self._command = list(command)
        self._environment = environment
        self._logs = logs
        self._died_at: float | None = None
        self._start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def look(self) -> None:
        """End what a dead process left of its group, and start it anew after a while."""
        if self.process.running:
            return
        now = time.monotonic()
        if self._died_at is None:
            self._died_at = now
        elif now - self._died_at > RESTART:
            self.signal(signal.SIGKILL)
            self._start()

    def signal(self, number: signal.Signals) -> None:
        """Signal all of its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _start(self) -> None:
        self._died_at = None
        self.starts += 1
        self.process = Process(self.name, self._command, self._environment, self._logs)


@dataclass
class House:
    """Everything that runs, and an operator's view of it."""

    store: RedisServer
    rabbit: RabbitServer | None
    judge: JudgeServer
    logs: Path
    environment: dict[str, str]
    workers: list[Supervised] = field(default_factory=list)
    relays: list[Supervised] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.redis: Any = redis.Redis.from_url(self.store.url)
        self.keys = Keys()
        self._stop = Event()
        self._supervisor = Thread(target=self._supervise, name="supervisor")

    @property
    def broker_url(self) -> str:
        return self.store.broker_url if self.rabbit is None else self.rabbit.url

    @cached_property
    def broker(self) -> Broker:
        return broker_of(self.broker_url)

    @cached_property
    def celery(self) -> Celery:
        """What an operator or a Celery producer speaks through."""
        app = Celery("chaos", set_as_current=False)
        app.conf.update(
            broker_url=self.broker_url,
            broker_transport_options=broker_options(self.settings),
            task_queues=[self.broker.tasks],
            task_default_queue=self.broker.tasks.name,
            task_ignore_result=True,
        )
        return app

    @cached_property
    def stage(self) -> Stage:
        """The stage's use cases, as the command line calls them."""
        return build_stage(self.celery, self.settings)

    @cached_property
    def settings(self) -> Settings:
        names = {
            key.removeprefix("RELEASE_").lower(): value for key, value in self.environment.items()
        }
        return Settings.model_validate(names)

    def start(self, workers: int, relays: int) -> None:
        path = os.pathsep.join((str(_ROOT), os.environ.get("PYTHONPATH", "")))
        environment = {**self.environment, "PYTHONPATH": path}
        for number in range(workers):
            name = f"worker{number}"
            command = (*_WORKER, "--hostname", f"{name}@local")
            self.workers.append(Supervised(name, command, environment, self.logs))
        for number in range(relays):
            self.relays.append(Supervised(f"relay{number}", _RELAY, environment, self.logs))
        self._supervisor.start()
        for one in self.workers:
            one.process.ready(" ready.")

    def _supervise(self) -> None:
        while not self._stop.wait(LOOK):
            for one in (*self.workers, *self.relays):
                one.look()
            self._age_inbox()

    def _age_inbox(self) -> None:
        """Scale down the half minute that a broker has to bring a submitted draft."""
        now = datetime.now(UTC).timestamp()
        with suppress(redis.RedisError):
            for name in self.redis.zrange(
                self.keys.inbox, now - 20, now - BROKER_PATIENCE, byscore=True
            ):
                self.redis.zadd(self.keys.inbox, {name: now - 60}, xx=True)

    def open_runs(self) -> int:
        """How many runs are open or still to be admitted; raises redis.RedisError."""
        return int(self.redis.zcard(self.keys.open_runs) + self.redis.zcard(self.keys.inbox))

    def left(self) -> dict[str, int]:
        """What is still on its way; raises redis.RedisError."""
        counts = {
            "open runs": self.redis.zcard(self.keys.open_runs),
            "unsent": self.redis.xlen(self.keys.outbox),
            "not admitted": self.redis.zcard(self.keys.inbox),
        }
        if self.rabbit is None:
            counts["unacknowledged"] = self.redis.hlen("unacked")
            for queue in (self.broker.drafts, self.broker.control, self.broker.tasks):
                counts[queue.name] = self.redis.llen(queue.name)
        return {name: count for name, count in counts.items() if count}

    def stop(self) -> None:
        self._stop.set()
        if self._supervisor.ident is not None:
            self._supervisor.join()
        for one in (*self.workers, *self.relays):
            one.process.kill()  # they were made for dying
        self.redis.close()


@contextmanager
def house_on(broker: Kind, logs: Path) -> Iterator[House]:
    """Servers on this kind of broker, with a store that keeps all that it acknowledged."""
    with ExitStack() as stack:
        store = stack.enter_context(RedisServer(appendfsync="always"))
        rabbit = stack.enter_context(RabbitServer()) if broker == "rabbitmq" else None
        judge = stack.enter_context(JudgeServer())
        environment = {
            "REDIS_URL": store.url,
            "RELEASE_BROKER_URL": "" if rabbit is None else rabbit.url,
            "OPENAI_BASE_URL": judge.base_url,
            "OPENAI_API_KEY": "none",
            **CHAOS,
        }
        house = House(store, rabbit, judge, logs, environment)
        stack.callback(house.stop)
        yield house
