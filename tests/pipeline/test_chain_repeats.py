"""Steps that come again, too early or too late: each leads to the same place, once."""

import pytest

from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import CHECK, PUBLISH, REVIEW, SECOND_REVIEW, LocalStage, new_run_id
from worker.offline.judge_script import rules, status
from worker.run.steps import StepRef

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"


def admitted_and_recorded(
    quiet: LocalStage, run_id: str, *refs: StepRef, **changes: object
) -> None:
    """Open a run whose first steps were carried out by processes that then died."""
    quiet.record(*disk_records(run_id))
    quiet.die("recorded", draft_ready(run_id, {**disk_draft(), **changes}), *refs)


@pytest.mark.scenario("release-chain", "A finished step is delivered again")
@pytest.mark.parametrize("refs", [(CHECK,), (CHECK, REVIEW)], ids=["check", "review"])
def test_a_step_that_is_recorded_hands_on_again(
    quiet: LocalStage, refs: tuple[StepRef, ...]
) -> None:
    """Its process died before handing on; the repeat does no work and the run goes on."""
    run_id = new_run_id()
    admitted_and_recorded(quiet, run_id, *refs)
    before = quiet.run(run_id)
    quiet.deliver(run_id, refs[-1])
    assert quiet.outcome(run_id).type == SUCCEEDED
    after = quiet.run(run_id)
    assert before is not None
    assert after is not None
    for ref in refs:
        assert after.attempt(ref) == before.attempt(ref)
    assert len(quiet.judge.asked_about(run_id)) == 1


@pytest.mark.scenario("release-chain", "A repeat with the old chain behind it")
def test_a_repeat_that_still_carries_the_straight_chain_takes_the_detour(quiet: LocalStage) -> None:
    """Its result called for publish at once: the review behind it is dropped, not started."""
    run_id = new_run_id()
    admitted_and_recorded(quiet, run_id, CHECK, conclusion=None)
    quiet.deliver(run_id, CHECK)
    assert quiet.outcome(run_id).type == "release_stage.ReleaseFallback.v1"
    quiet.wait_for_step(run_id, PUBLISH, "INSUFFICIENT_EVIDENCE")
    assert REVIEW not in {ref for ref, _ in quiet.steps(run_id)}


@pytest.mark.scenario("release-chain", "A failed attempt is delivered again")
def test_a_repeat_of_a_failed_attempt_leads_to_the_second_one(quiet: LocalStage) -> None:
    """The first attempt stays used; the publish behind it waits for the second."""
    run_id = new_run_id()
    quiet.judge.add(status(500).on(run_id))
    admitted_and_recorded(quiet, run_id, CHECK, REVIEW)
    quiet.deliver(run_id, REVIEW)
    assert quiet.outcome(run_id).type == SUCCEEDED
    quiet.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    assert (SECOND_REVIEW, "SUPPORTED") in quiet.carried_out(run_id)
    assert len(quiet.judge.asked_about(run_id)) == 2


@pytest.mark.scenario("release-chain", "A step that is held")
def test_a_delivery_of_a_step_that_is_held_enqueues_nothing(quiet: LocalStage) -> None:
    """While the judge is asked, a second delivery of the review is acknowledged and ignored."""
    run_id = new_run_id()
    quiet.record(*disk_records(run_id))
    quiet.judge.add(rules().after(1.0).on(run_id))
    quiet.submit(draft_ready(run_id, disk_draft()))
    quiet.judge.wait(lambda _: bool(quiet.judge.asked_about(run_id)))
    quiet.deliver(run_id, REVIEW)
    quiet.wait_for_step(run_id, REVIEW, "ignored")
    assert not quiet.ended(run_id).attempt(PUBLISH).outcome
    assert quiet.outcome(run_id).type == SUCCEEDED
    quiet.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    assert len(quiet.judge.asked_about(run_id)) == 1
    received = [ref for ref, what in quiet.steps(run_id) if what == "received"]
    assert received.count(PUBLISH) == 1


@pytest.mark.scenario("release-chain", "A step of an ended run")
@pytest.mark.parametrize("ref", [CHECK, REVIEW, PUBLISH], ids=lambda ref: ref.step)
def test_a_delivery_of_an_ended_run_enqueues_nothing(quiet: LocalStage, ref: StepRef) -> None:
    """Whatever comes late is acknowledged and ignored; there is no second outcome."""
    run_id = new_run_id()
    quiet.record(*disk_records(run_id))
    quiet.submit(draft_ready(run_id, disk_draft()))
    quiet.outcome(run_id)
    quiet.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    before = quiet.steps(run_id)
    quiet.deliver(run_id, ref)
    quiet.wait_for_step(run_id, ref, "ignored")
    added = quiet.steps(run_id)[len(before) :]
    assert added == [(ref, "received"), (ref, "ignored")]
    assert quiet.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("release-chain", "A step before its turn")
@pytest.mark.parametrize("ref", [REVIEW, SECOND_REVIEW, PUBLISH], ids=lambda ref: ref.key)
def test_a_step_before_its_turn_does_nothing(quiet: LocalStage, ref: StepRef) -> None:
    """A review or a publish without a check on record is refused; the run can still go on."""
    run_id = new_run_id()
    admitted_and_recorded(quiet, run_id)
    quiet.deliver(run_id, ref)
    quiet.wait_for_step(run_id, ref, "ignored")
    run = quiet.run(run_id)
    assert run is not None
    assert run.is_open
    assert run.attempts == {}
    quiet.deliver(run_id, CHECK)
    assert quiet.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("release-chain", "A step of an unknown run")
def test_a_step_of_a_run_that_does_not_exist_does_nothing(quiet: LocalStage) -> None:
    """A stray task makes no record and no message."""
    run_id = new_run_id()
    quiet.deliver(run_id, PUBLISH)
    quiet.wait_for_step(run_id, PUBLISH, "ignored")
    assert quiet.run(run_id) is None
