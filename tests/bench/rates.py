"""Runs a second on two processes, beside a bare chain of three tasks that do nothing.

Both workers have the same pool, broker and Celery settings and take turns. All work
is queued while the worker is held still; then it is timed until the last is done.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import redis
from celery import Celery

from contracts import channels
from tests.bench.bare_app import bare_chain
from tests.bench.house import PATIENCE, Agent, NoResult, environment_of
from tests.bench.table import Row
from worker.adapters.queues import broker_of, broker_url_of
from worker.offline.judge_script import verdict, write_script
from worker.offline.processes import Process, start_worker
from worker.offline.redis_server import RedisServer

RUNS, WARM_UP, ROUNDS = 400, 60, 3
_POLL = 0.01


def measure(logs: Path) -> Iterator[Row]:
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(appendfsync="everysec"))
        judge = stack.enter_context(_start_judge(logs))
        stage_url, bare_url = server.url, server.url.replace("db=0", "db=1")
        environment = environment_of(stage_url, judge.text().split()[0])
        stage_worker = stack.enter_context(start_worker("stage", environment, logs))
        bare_worker = stack.enter_context(_start_bare({**environment, "REDIS_URL": bare_url}, logs))
        stage, bare = _StageLoad(stage_url), _BareLoad(bare_url)
        stack.callback(stage.close)
        stack.callback(bare.close)
        _rate(stage_worker, stage, WARM_UP)
        _rate(bare_worker, bare, WARM_UP)
        rounds = [
            (_rate(stage_worker, stage, RUNS), _rate(bare_worker, bare, RUNS))
            for _ in range(ROUNDS)
        ]
    yield Row("runs on two processes, judge answers at once", median(s for s, _ in rounds), "/s")
    yield Row("bare chains of three no-ops, same settings", median(b for _, b in rounds), "/s")
    ratio = median(run / chain for run, chain in rounds)
    yield Row("runs beside bare chains", ratio, "", 0.6, at_most=False)


class _StageLoad:
    """Drafts in; a run is done when its result is in the results queue."""

    def __init__(self, redis_url: str) -> None:
        self._agent = Agent(redis_url)

    def queue(self, runs: int) -> None:
        self._agent.redis.delete(channels.RESULTS)
        for run_id in [self._agent.prepare() for _ in range(runs)]:
            self._agent.submit(run_id)

    def done(self, runs: int) -> bool:
        return bool(self._agent.redis.llen(channels.RESULTS) >= runs)

    def close(self) -> None:
        self._agent.close()


class _BareLoad:
    """Chains in; they are done when nothing waits and nothing is unacknowledged."""

    def __init__(self, redis_url: str) -> None:
        self._redis: Any = redis.Redis.from_url(redis_url)
        url = broker_url_of(redis_url)
        self._tasks = broker_of(url).tasks
        self._sender = Celery("bench", set_as_current=False, broker=url)
        self._sender.conf.task_default_queue = self._tasks.name
        self._sender.conf.task_queues = [self._tasks]

    def queue(self, runs: int) -> None:
        for _ in range(runs):
            bare_chain(self._sender, str(uuid4()))

    def done(self, runs: int) -> bool:
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.llen(self._tasks.name)
            pipe.hlen("unacked")
            return not any(pipe.execute())

    def close(self) -> None:
        self._sender.close()
        self._redis.close()


def _rate(worker: Process, load: _StageLoad | _BareLoad, runs: int) -> float:
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        load.queue(runs)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    start = perf_counter()
    return runs / (_settled(lambda: load.done(runs)) - start)


def _settled(done: Callable[[], bool]) -> float:
    """The moment from which ``done`` stayed true: a popped message is nowhere for a while."""
    deadline = perf_counter() + PATIENCE
    since: float | None = None
    looks = 0
    while looks < 3:
        if perf_counter() > deadline:
            raise NoResult
        time.sleep(_POLL)
        if done():
            since, looks = since or perf_counter(), looks + 1
        else:
            since, looks = None, 0
    assert since is not None
    return since


def _start_judge(logs: Path) -> Process:
    command = [sys.executable, "-m", "worker.offline.judge"]
    judge = Process("judge", command, {}, logs).ready("/v1\n")
    script = write_script([verdict("SUPPORTED").always()])
    root = judge.text().split()[0].removesuffix("/v1")
    request = Request(f"{root}/_control/script", data=script, method="PUT")
    with urlopen(request, timeout=5):
        return judge


def _start_bare(environment: dict[str, str], logs: Path) -> Process:
    command = [
        *(sys.executable, "-m", "celery", "-A", "tests.bench.bare_app", "worker"),
        *("--loglevel", "INFO", "--pool", "prefork", "--concurrency", "2"),
        *("--hostname", "bare@local", "--task-events"),
    ]
    return Process("bare", command, environment, logs).ready("bare@local ready.")
