"""A run is cancelled, in each of the ways and at each of the moments that there are."""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery

from tests.pipeline.cases import disk_draft, draft_ready
from tests.pipeline.harness import (
    CHECK,
    PUBLISH,
    REPAIR,
    REVIEW,
    SECOND_REVIEW,
    LocalStage,
    local_stage,
    new_run_id,
)
from tests.pipeline.judged import judged, submitted
from tests.pipeline.test_limits import start_stuck_worker
from worker.offline.judge_script import hang, status, verdict
from worker.run.steps import StepRef, task_id

ABORTED = "release_stage.ReleaseAborted.v1"
SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
RACES = 12


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    """A stage that does one step at a time."""
    with local_stage(tmp_path_factory.mktemp("one")) as running:
        running.worker("one", concurrency=1)
        running.relay()
        yield running


def by_client(stage: LocalStage, run_id: str, ref: StepRef) -> None:
    stage.client.cancel_run(run_id)


def by_revoke(stage: LocalStage, run_id: str, ref: StepRef, **how: Any) -> None:
    with Celery("operator", broker=stage.broker_url, set_as_current=False) as app:
        assert app.control.revoke(task_id(run_id, ref), reply=True, timeout=10, limit=1, **how)


def by_terminate(stage: LocalStage, run_id: str, ref: StepRef) -> None:
    by_revoke(stage, run_id, ref, terminate=True)


Way = Callable[[LocalStage, str, StepRef], None]
ANY_WAY = pytest.mark.parametrize("way", [by_client, by_revoke, by_terminate])


def broken_draft() -> dict[str, Any]:
    draft = disk_draft()
    draft["analyses"][0]["tool_call_ids"] = ["call-nowhere"]
    return draft


def asked(stage: LocalStage, run_id: str) -> None:
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)), 30)


def assert_cancelled(stage: LocalStage, run_id: str) -> None:
    """One ReleaseAborted, and it stays the only message and the ending on record."""
    end = judged(stage, run_id)
    assert end.outcome.type == ABORTED
    assert end.outcome.data["reason"] == end.ending == "CANCELLED"
    assert end.run.cancelled_at is not None


@pytest.mark.scenario("cancellation", "Before the draft")
def test_a_draft_that_was_cancelled_before_it_came_is_answered_at_once(one: LocalStage) -> None:
    """The mark waits for the draft; no step is received and the judge is not asked."""
    run_id = new_run_id()
    one.client.cancel_run(run_id)
    one.wait_for(lambda: one.run(run_id), "the mark")
    submitted(one, disk_draft(), run_id=run_id)
    assert_cancelled(one, run_id)
    assert one.steps(run_id) == []
    assert not one.judge.asked_about(run_id)


@pytest.mark.scenario("cancellation", "While queued")
@ANY_WAY
def test_a_run_that_waits_in_the_queue_is_cancelled(one: LocalStage, way: Way) -> None:
    """It ends before its step starts, or when the revoked step is received: never later."""
    busy = submitted(one, disk_draft(), verdict("SUPPORTED").after(1.0))
    asked(one, busy)
    run_id = submitted(one, disk_draft())
    one.wait_for(lambda: one.run(run_id), "the admission")
    way(one, run_id, CHECK)
    assert_cancelled(one, run_id)
    assert one.carried_out(run_id) == []
    assert one.outcome(busy).type == SUCCEEDED


@pytest.mark.scenario("cancellation", "During a model call")
@ANY_WAY
@pytest.mark.parametrize("step", [REVIEW, REPAIR], ids=lambda ref: ref.step)
def test_a_call_is_closed_when_its_run_is_cancelled(
    one: LocalStage, way: Way, step: StepRef
) -> None:
    """The connection closes long before the answer's time is over, whoever cancels."""
    draft = broken_draft() if step is REPAIR else disk_draft()
    run_id = submitted(one, draft, hang())
    asked(one, run_id)
    cancelled_at = time.time()
    way(one, run_id, step)
    assert_cancelled(one, run_id)
    one.judge.wait(lambda _: all(call.ended for call in one.judge.asked_about(run_id)), 30)
    (call,) = one.judge.asked_about(run_id)
    assert call.answered_at is None
    assert call.closed_at is not None
    assert call.closed_at - cancelled_at < one.settings.attempt_timeout / 2


@pytest.mark.scenario("cancellation", "Between two attempts")
@ANY_WAY
def test_a_run_between_two_attempts_is_cancelled(one: LocalStage, way: Way) -> None:
    """The second attempt, for which the provider asked to wait, is never made."""
    run_id = submitted(one, disk_draft(), status(429, retry_after=2.0))
    one.wait_for_step(run_id, REVIEW, "RATE_LIMITED")
    way(one, run_id, SECOND_REVIEW)
    assert_cancelled(one, run_id)
    assert len(one.judge.asked_about(run_id)) == 1
    run = one.ended(run_id)
    assert not run.attempt(SECOND_REVIEW).grants


@pytest.mark.scenario("cancellation", "In each step")
@pytest.mark.scenario("cancellation", "At the moment of release")
@ANY_WAY
def test_a_cancel_at_any_moment_leaves_one_ending(one: LocalStage, way: Way) -> None:
    """Cancel or release, whichever is first: one message, of the ending on record."""
    moments = random.Random(way.__name__)
    run_ids = []
    for _ in range(RACES):
        run_id = submitted(one, disk_draft())
        run_ids.append(run_id)
        until = time.monotonic() + moments.uniform(0.0, 0.15)
        one.wait_for(lambda: time.monotonic() >= until, "the moment")  # noqa: B023 - called at once
        way(one, run_id, moments.choice([CHECK, REVIEW, PUBLISH]))
    for run_id in run_ids:
        end = judged(one, run_id)
        if end.ending == "CANCELLED":
            assert end.outcome.type == ABORTED
        else:
            assert end.ending == "SUCCEEDED"
            assert end.outcome.type == SUCCEEDED
            assert end.run.cancelled_at is None
    one.wait_for(lambda: not one.redis.xlen(one.keys.outbox), "an empty outbox")


@pytest.mark.scenario("cancellation", "After the end")
@ANY_WAY
def test_a_cancel_after_the_end_changes_nothing(one: LocalStage, way: Way) -> None:
    """The release stands, no second message goes out, and the record is what it was."""
    run_id = submitted(one, disk_draft())
    before = judged(one, run_id)
    assert before.outcome.type == SUCCEEDED
    one.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    way(one, run_id, PUBLISH)
    after = new_run_id()
    one.client.cancel_run(after)
    one.wait_for(lambda: one.run(after), "a cancel that was sent later")
    assert judged(one, run_id).run == before.run
    assert judged(one, submitted(one, disk_draft())).outcome.type == SUCCEEDED


@pytest.mark.scenario("cancellation", "Cancelled twice")
def test_a_second_cancel_changes_nothing(one: LocalStage) -> None:
    """Whoever cancels again gets the same ending."""
    run_id = submitted(one, disk_draft(), hang())
    asked(one, run_id)
    for way in (by_client, by_client, by_revoke, by_terminate):
        way(one, run_id, REVIEW)
    assert_cancelled(one, run_id)
    assert judged(one, submitted(one, disk_draft())).outcome.type == SUCCEEDED


@pytest.mark.scenario("cancellation", "A step that does not hear")
@pytest.mark.parametrize("how", ["asleep", "in C"])
def test_a_step_that_does_not_hear_is_terminated(
    how: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The run ends at once; its deaf process is ended long before its limits, and replaced."""
    settings = {
        "RELEASE_ATTEMPT_TIMEOUT": "60",
        "RELEASE_REVIEW_TOTAL_TIMEOUT": "90",
        "RELEASE_VISIBILITY_TIMEOUT": "90",
    }
    with local_stage(tmp_path_factory.mktemp("deaf"), settings=settings) as stage:
        start_stuck_worker(stage, concurrency=1)
        stage.relay()
        run_id = new_run_id()
        query = f"Why does checkout fail? ({run_id}) stuck={how};calls=1."
        submitted(stage, disk_draft(), run_id=run_id, query=query)
        stage.wait_for(lambda: stage.redis.exists(f"tests:{run_id}"), "a stuck call")
        stage.client.cancel_run(run_id)
        assert_cancelled(stage, run_id)
        stage.wait_for(lambda: "terminating a stuck step" in stage.log_text(), "the backstop")
        after = stage.submit(draft_ready(new_run_id(), {**disk_draft(), "conclusion": None}))
        assert stage.outcome(after).type == "release_stage.ReleaseFallback.v1"
        assert_cancelled(stage, run_id)
