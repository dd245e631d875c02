"""Workers are stopped in good order, started again, and meet what a newer version sent."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest
from celery import Celery

from tests.pipeline.cases import disk_draft, event
from tests.pipeline.harness import REVIEW, LocalStage, local_stage, new_run_id
from tests.pipeline.judged import judged, submitted
from worker.offline.judge_script import hang, rules
from worker.offline.processes import Process
from worker.run.steps import Step

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
STOP_TIMEOUT = 3.0
SLACK = 10.0
"""Seconds that a busy machine may add to a stop."""


@pytest.fixture
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    """A stage whose workers stop as compose and systemd stop them, in a shorter time."""
    settings = {
        "REMAP_SIGTERM": "SIGQUIT",
        "RELEASE_STOP_TIMEOUT": str(STOP_TIMEOUT),
        "RELEASE_ATTEMPT_TIMEOUT": "10",
        "RELEASE_REVIEW_TOTAL_TIMEOUT": "25",
        "RELEASE_VISIBILITY_TIMEOUT": "60",
    }
    with local_stage(tmp_path_factory.mktemp("stopped"), settings=settings) as running:
        running.relay()
        yield running


def asked(stage: LocalStage, run_id: str) -> None:
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)), 30)


def stop(stage: LocalStage, worker: Process) -> float:
    """Send a worker the stop signal and wait for its end; returns the seconds that it took."""
    started = time.monotonic()
    os.kill(worker.pid, signal.SIGTERM)
    stage.wait_for(lambda: not worker.running, "the worker's end")
    return time.monotonic() - started


@pytest.mark.scenario("crash-recovery", "A stop while the judge is about to answer")
def test_a_stopped_worker_lets_a_running_attempt_end(stopped: LocalStage) -> None:
    """The answer that was on its way counts: the next worker asks nobody again."""
    run_id = submitted(stopped, disk_draft(), rules().after(1.0))
    worker = stopped.worker(concurrency=1)
    asked(stopped, run_id)
    assert stop(stopped, worker) < STOP_TIMEOUT + SLACK
    run = stopped.run(run_id)
    assert run is not None
    assert run.attempt(REVIEW).outcome == "SUPPORTED"
    stopped.worker(concurrency=1)
    end = judged(stopped, run_id)
    assert end.outcome.type == SUCCEEDED
    assert len(end.calls) == 1


@pytest.mark.scenario("crash-recovery", "A stop while the judge is silent")
def test_a_stopped_worker_waits_no_longer_than_its_bound(stopped: LocalStage) -> None:
    """A silent judge does not hold up the stop: the attempt is used up, the next one decides."""
    run_id = submitted(stopped, disk_draft(), hang())
    worker = stopped.worker(concurrency=1)
    asked(stopped, run_id)
    took = stop(stopped, worker)
    assert STOP_TIMEOUT <= took < STOP_TIMEOUT + SLACK
    stopped.worker(concurrency=1)
    end = judged(stopped, run_id)
    assert end.outcome.type == SUCCEEDED
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["LOST", "SUPPORTED"]


@pytest.mark.scenario("crash-recovery", "A stop with work in the queue")
def test_a_stopped_worker_gives_back_what_it_has_not_begun(stopped: LocalStage) -> None:
    """Runs that waited behind the running one are taken by the next worker, none twice."""
    first = submitted(stopped, disk_draft(), rules().after(1.0))
    worker = stopped.worker(concurrency=1)
    asked(stopped, first)
    others = [submitted(stopped, disk_draft()) for _ in range(3)]
    for run_id in others:
        stopped.wait_for(lambda: stopped.run(run_id), "an admission")  # noqa: B023 - called at once
    stop(stopped, worker)
    stopped.worker(concurrency=1)
    for run_id in (first, *others):
        end = judged(stopped, run_id)
        assert end.outcome.type == SUCCEEDED
        assert len(end.calls) == 1


@pytest.mark.scenario("crash-recovery", "A task of a newer version")
@pytest.mark.scenario("crash-recovery", "A message of a newer version")
def test_a_worker_keeps_what_a_newer_version_sent(stopped: LocalStage) -> None:
    """An unknown task and a newer type are kept whole in the dead letters; the worker goes on."""
    worker = stopped.worker(concurrency=1)
    run_id = new_run_id()
    with Celery("newer", broker=stopped.broker_url, set_as_current=False) as app:
        app.conf.task_ignore_result = True
        app.send_task("release.newer_step", kwargs={"run_id": run_id}, queue="release.tasks")
    stopped.wait_for(
        lambda: any(run_id.encode() in body for _, body in stopped.dead()), "the unknown task"
    )
    newer = event(new_run_id(), disk_draft(), type="release_stage.DraftReady.v2")
    raw = json.dumps(newer).encode()
    stopped.publish_raw(raw)
    assert stopped.dead_letter(raw) == "UNKNOWN_VERSION"
    assert judged(stopped, submitted(stopped, disk_draft())).outcome.type == SUCCEEDED
    assert worker.running
