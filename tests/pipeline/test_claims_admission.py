"""Claims that come twice, beside a draft, or in other words: one run, one protocol, one ending."""

import json

import pytest

from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.claimed import (
    FALLBACK,
    SUCCEEDED,
    answer,
    claimed,
    document,
    judge_claims,
    output_ready,
    submit_claims,
)
from tests.pipeline.harness import (
    COMPOSE,
    GATE,
    PUBLISH,
    SECOND_VERIFY,
    VERIFY,
    LocalStage,
    new_run_id,
)
from tests.pipeline.judged import judge
from worker.run.steps import Step, StepRef


@pytest.mark.scenario("claim-runs", "A run belongs to its protocol")
def test_a_draft_under_the_id_of_claims_is_refused(stage: LocalStage) -> None:
    """The run of claims stands as it ended, and the draft is kept as a dead letter."""
    end = judge_claims(stage, document())
    raw = stage.wrapped(draft_ready(end.run.run_id, disk_draft()))
    stage.publish_raw(raw)
    assert stage.dead_letter(raw) == "CONFLICTING_REPEAT"
    assert stage.run(end.run.run_id) == end.run


@pytest.mark.scenario("claim-runs", "A run belongs to its protocol")
def test_claims_under_the_id_of_a_draft_are_refused_and_answered(stage: LocalStage) -> None:
    """Whoever said where hears that the message was refused."""
    end = judge(stage, disk_draft())
    reply_to = "release.reply.claims-conflict"
    raw = stage.wrapped(output_ready(end.run.run_id, document(), reply_to=reply_to))
    stage.publish_raw(raw)
    assert stage.dead_letter(raw) == "CONFLICTING_REPEAT"
    rejected = stage.reply(reply_to)
    assert rejected.type == "release_stage.DraftRejected.v1"
    assert rejected.data["reasons"] == ["CONFLICTING_REPEAT"]
    assert stage.run(end.run.run_id) == end.run


@pytest.mark.scenario("claim-runs", "The same claims again")
def test_the_same_claims_again_change_nothing(stage: LocalStage) -> None:
    """One run, one verification, one ending, however often the message comes."""
    run_id = submit_claims(stage, document())
    stage.publish_raw(stage.wrapped(output_ready(run_id, document())))
    end = claimed(stage, run_id)
    stage.publish_raw(stage.wrapped(output_ready(run_id, document())))
    later = judge_claims(stage, document())
    assert later.outcome.type == SUCCEEDED
    again = claimed(stage, run_id)
    assert again.run == end.run
    assert len(again.calls) == 1


@pytest.mark.scenario("claim-runs", "Other claims for the same run")
def test_other_claims_for_the_same_run_are_refused(stage: LocalStage) -> None:
    """The first document is what was judged."""
    end = judge_claims(stage, document())
    raw = stage.wrapped(output_ready(end.run.run_id, document(evidence_gaps=[])))
    stage.publish_raw(raw)
    assert stage.dead_letter(raw) == "CONFLICTING_REPEAT"
    assert stage.run(end.run.run_id) == end.run


@pytest.mark.scenario("claim-runs", "Claims as a string")
def test_a_document_may_come_as_a_string(stage: LocalStage) -> None:
    """What a model wrote is read strictly, and then it is the same document."""
    end = judge_claims(stage, json.dumps(document()))
    assert end.outcome.type == SUCCEEDED


def recorded(quiet: LocalStage, *refs: StepRef) -> str:
    """Open a run whose first steps were carried out by processes that then died."""
    run_id = new_run_id("claims")
    quiet.record(*disk_records(run_id))
    quiet.die("recorded", output_ready(run_id, document()), *refs)
    return run_id


@pytest.mark.scenario("claim-runs", "A finished step of claims is delivered again")
@pytest.mark.parametrize(
    "refs", [(GATE,), (GATE, VERIFY), (GATE, VERIFY, COMPOSE)], ids=["gate", "verify", "compose"]
)
def test_a_step_that_is_recorded_hands_on_again(
    quiet: LocalStage, refs: tuple[StepRef, ...]
) -> None:
    """Its process died before handing on; the repeat does no work and the run goes on."""
    run_id = recorded(quiet, *refs)
    before = quiet.run(run_id)
    quiet.deliver(run_id, refs[-1])
    assert quiet.outcome(run_id).type == SUCCEEDED
    after = quiet.run(run_id)
    assert before is not None
    assert after is not None
    assert all(after.attempt(ref) == before.attempt(ref) for ref in refs)
    assert len(quiet.judge.asked_about(run_id)) == 1


@pytest.mark.scenario("claim-runs", "A step of claims before its turn")
@pytest.mark.parametrize(
    "ref",
    [VERIFY, SECOND_VERIFY, COMPOSE, PUBLISH, StepRef(1, Step.GATE_CLAIMS, 1)],
    ids=lambda ref: ref.key,
)
def test_a_step_before_its_turn_does_nothing(quiet: LocalStage, ref: StepRef) -> None:
    """It is refused, and the run can still go on."""
    run_id = recorded(quiet)
    quiet.deliver(run_id, ref)
    quiet.wait_for_step(run_id, ref, "ignored")
    run = quiet.run(run_id)
    assert run is not None
    assert run.attempts == {}
    quiet.deliver(run_id, GATE)
    assert quiet.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("claim-runs", "A repeated gate behind a detour")
def test_a_repeated_gate_with_the_straight_chain_behind_it_takes_the_detour(
    quiet: LocalStage,
) -> None:
    """A rejected document goes straight to its fallback; verifier and composer are dropped."""
    run_id = new_run_id("claims")
    quiet.record(*disk_records(run_id))
    quiet.die("recorded", output_ready(run_id, "unreadable"), GATE)
    quiet.judge.add(answer(document(), "direct_observation", "reasonable_inference").on(run_id))
    quiet.deliver(run_id, GATE)
    assert quiet.outcome(run_id).type == FALLBACK
    quiet.wait_for_step(run_id, PUBLISH, "PRE_VERIFICATION")
    assert {ref for ref, _ in quiet.steps(run_id)} == {GATE, PUBLISH}
