"""From the death of a process to the ending of the runs that it had in hand, on both brokers.

Leases and waits are scaled down, and they are most of each figure: a call that died with its
worker is given up after its lease, a step that nobody claimed is sent again after its wait.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import psutil

from tests.bench.table import Row
from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import QUICK, REVIEW, LocalStage, local_stage
from worker.offline.judge_script import hang
from worker.offline.processes import Process
from worker.offline.rabbitmq_server import RabbitNotFound, RabbitServer
from worker.settings import Settings

RUNS = 8
"""Runs under way when a process dies; the last of them to end is the figure."""

_SCALED = Settings.model_validate(
    {name.removeprefix("RELEASE_").lower(): value for name, value in QUICK.items()}
).policy()


def measure(logs: Path) -> Iterator[Row]:
    """Measure on Redis and, where it is installed, on RabbitMQ."""
    yield from _on("Redis", "", logs)
    with ExitStack() as stack:
        try:
            rabbit = stack.enter_context(RabbitServer())
        except RabbitNotFound as error:
            print(error, file=sys.stderr)
            return
        yield from _on("RabbitMQ", rabbit.url, logs)


def _on(broker: str, url: str, logs: Path) -> Iterator[Row]:
    lease = f"lease {_SCALED.lease(REVIEW.step):g} s"
    wait = f"sent again after {_SCALED.resend_first:g} s"
    with local_stage(logs, broker_url=url) as stage:
        stage.relay(f"relay on {broker}")
        for what, die in (
            ("child killed in a model call", _child_in_a_call),
            (f"worker killed in a model call, {lease}", _worker_in_a_call),
            (f"worker killed with steps received, {wait}", _worker_with_steps),
        ):
            yield Row(f"{what}, {broker}", _longest(stage, die), "s")


def _longest(stage: LocalStage, die: Callable[[LocalStage, list[str]], float]) -> float:
    """Let it happen to some runs; returns the seconds from the death to the last ending."""
    run_ids = [f"bench-{uuid4()}" for _ in range(RUNS)]
    for run_id in run_ids:
        stage.record(*disk_records(run_id))
    died_at = die(stage, run_ids)
    ended = [stage.ended(run_id).ended_at or 0.0 for run_id in run_ids]
    for process in stage.processes[1:]:
        process.stop()
    return max(ended) - died_at


def _child_in_a_call(stage: LocalStage, run_ids: list[str]) -> float:
    worker = stage.worker(concurrency=len(run_ids))
    _ask(stage, run_ids)
    for child in psutil.Process(worker.pid).children():
        child.kill()
    return time.time()


def _worker_in_a_call(stage: LocalStage, run_ids: list[str]) -> float:
    worker, _ = _two_workers(stage)
    _ask(stage, run_ids)
    worker.kill()
    return time.time()


def _worker_with_steps(stage: LocalStage, run_ids: list[str]) -> float:
    """All children stand still, so that each run's check is received and none begins."""
    workers = _two_workers(stage)
    first, second = ([*psutil.Process(one.pid).children()] for one in workers)
    for child in (*first, *second):
        child.suspend()
    _submit(stage, run_ids)
    logs = stage.processes[-2:]
    stage.wait_for(lambda: sum(one.text().count("] received") for one in logs) >= RUNS, "the steps")
    workers[0].kill()
    for child in second:
        child.resume()
    return time.time()


def _two_workers(stage: LocalStage) -> tuple[Process, Process]:
    """Workers that together have room for all runs, so that each gets some of them."""
    return stage.worker(concurrency=RUNS // 2), stage.worker(concurrency=RUNS // 2)


def _ask(stage: LocalStage, run_ids: list[str]) -> None:
    """Submit, and wait until a model that says nothing was asked about each run."""
    stage.judge.add(*(hang().on(run_id) for run_id in run_ids))
    _submit(stage, run_ids)
    stage.wait_for(lambda: all(map(stage.judge.asked_about, run_ids)), "the questions")


def _submit(stage: LocalStage, run_ids: list[str]) -> None:
    for run_id in run_ids:
        stage.submit(draft_ready(run_id, disk_draft()))
