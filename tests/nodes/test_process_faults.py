"""Workers, their children and their broker die; pytest-celery's nodes play the machines."""

import os
import signal

import pytest
from pytest_celery import CeleryTestSetup

from tests.nodes.containers import WorkerNode
from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import REVIEW, LocalStage, new_run_id
from worker.offline.judge_script import rules
from worker.run.steps import task_id

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
THINKS = 1.0
"""Seconds that the judge takes, so that a fault can come meanwhile."""


def asked(stage: LocalStage) -> str:
    """Submit a sound draft; returns once the judge was asked about it."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.judge.add(rules().after(THINKS).on(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)), 30)
    return run_id


def reviewer(setup: CeleryTestSetup, run_id: str) -> WorkerNode:
    """The node that received the run's review."""
    sign = f"[{task_id(run_id, REVIEW)}] received"
    (node,) = (node for node in setup.worker_cluster if sign in node.logs())
    assert isinstance(node, WorkerNode)
    return node


def assert_released_once(stage: LocalStage, run_id: str) -> None:
    assert stage.outcome(run_id).type == SUCCEEDED
    assert len(stage.judge.asked_about(run_id)) <= 2
    stage.wait_for(lambda: not stage.redis.xlen(stage.keys.outbox), "an empty outbox")


@pytest.mark.scenario("crash-recovery", "A worker is killed while the judge thinks")
def test_a_run_goes_on_when_its_worker_is_killed(
    celery_setup: CeleryTestSetup, stage: LocalStage
) -> None:
    """The other worker takes the run over; the killed one works again after its restart."""
    run_id = asked(stage)
    node = reviewer(celery_setup, run_id)
    node.kill()
    assert node.container.status == "exited"
    assert_released_once(stage, run_id)
    node.restart()
    assert node.ready()
    assert_released_once(stage, asked(stage))


@pytest.mark.scenario("crash-recovery", "A pool child is killed while the judge thinks")
def test_a_run_goes_on_when_its_child_is_killed(
    celery_setup: CeleryTestSetup, stage: LocalStage
) -> None:
    """A lost child costs one attempt: its worker lives, and the second attempt decides."""
    run_id = asked(stage)
    node = reviewer(celery_setup, run_id)
    for child in node.children():
        os.kill(child, signal.SIGKILL)
    assert_released_once(stage, run_id)
    run = stage.run(run_id)
    assert run is not None
    assert run.outcome(0, REVIEW.step, 1) == "LOST"
    assert node.container.status == "running"


@pytest.mark.scenario("crash-recovery", "The broker restarts while the judge thinks")
def test_a_run_goes_on_when_the_broker_restarts(
    celery_setup: CeleryTestSetup, stage: LocalStage
) -> None:
    """Whatever the restart does to the workers, a supervisor's restart is all that they need."""
    run_id = asked(stage)
    celery_setup.broker.restart()
    for node in celery_setup.worker_cluster:
        if node.container.status == "exited":
            node.restart()
    assert_released_once(stage, run_id)
    assert_released_once(stage, asked(stage))
