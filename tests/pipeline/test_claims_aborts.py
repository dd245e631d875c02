"""Claims that end without a verdict of any kind: cancelled, out of time, out of budget."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.pipeline.claimed import (
    ABORTED,
    Claimed,
    claimed,
    document,
    judge_claims,
    submit_claims,
)
from tests.pipeline.harness import LocalStage, new_run_id
from worker.offline.judge_script import Behaviour, content, hang, rules, status, trickle
from worker.run.steps import Step


def aborted(end: Claimed, reason: str) -> None:
    """One message with its reason; an evaluation with reason and prompts, without a verdict."""
    assert end.ending == reason
    assert end.outcome.type == ABORTED
    assert end.outcome.data == {
        "run_id": end.run.run_id,
        "session_id": "session-1",
        "round": 0,
        "reason": reason,
    }
    assert end.evaluation["failure_reasons"][-1] == reason
    assert end.evaluation["prompt_audit"]["prompts"]["executor"]["version"] == "12"
    judged = {"model_verdict", "effective_verdict", "verdict", "claim_checks", "composer_output"}
    assert not judged & set(end.evaluation)


@pytest.mark.scenario("claim-runs", "Cancelled while the verifier thinks")
@pytest.mark.parametrize(
    "slow", [hang(), trickle(0.05), rules().after(1.5)], ids=["silent", "trickling", "late"]
)
def test_a_cancel_closes_the_verifiers_call(stage: LocalStage, slow: Behaviour) -> None:
    """The socket closes at once, nothing is released, and the gate's work stays on record."""
    run_id = submit_claims(stage, document(), slow)
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)))
    cancelled_at = time.time()
    stage.client.cancel_run(run_id)
    end = claimed(stage, run_id)
    aborted(end, "CANCELLED")
    stage.judge.wait(lambda _: all(one.ended for one in stage.judge.asked_about(run_id)))
    (call,) = stage.judge.asked_about(run_id)
    assert call.answered_at is None
    assert call.closed_at is not None
    assert call.closed_at - cancelled_at < 1.5
    assert end.statuses() == ["COMPLETED", "PASS", "NOT_RUN", "NOT_RUN"]
    assert end.evaluation["gatekeeper_result"]["status"] == "pass"


@pytest.mark.scenario("claim-runs", "Cancelled before its claims came")
def test_a_cancel_that_comes_first_ends_the_run_at_once(stage: LocalStage) -> None:
    """Nothing is checked, and yet there is an evaluation."""
    run_id = new_run_id("claims")
    stage.client.cancel_run(run_id)
    stage.wait_for(lambda: stage.run(run_id) is not None, "the cancel's mark")
    end = claimed(stage, submit_claims(stage, document(), run_id=run_id))
    aborted(end, "CANCELLED")
    assert end.run.attempts == {}
    assert end.calls == []
    assert end.statuses() == ["COMPLETED", "NOT_RUN", "NOT_RUN", "NOT_RUN"]


@pytest.mark.scenario("claim-runs", "Out of time")
def test_the_deadline_ends_the_verifiers_call(stage: LocalStage) -> None:
    """The call gets what is left of the run's time, and its end is the run's."""
    deadline = datetime.now(UTC) + timedelta(seconds=1.8)
    end = judge_claims(stage, document(), hang(), deadline=deadline)
    aborted(end, "DEADLINE_EXCEEDED")
    (call,) = end.calls
    assert call.closed_at is not None
    assert not end.outcomes(Step.COMPOSE_ANSWER)


@pytest.mark.scenario("claim-runs", "Out of budget")
@pytest.mark.parametrize(
    ("budget", "behaviours", "calls", "reasons"),
    [
        ({"model_calls": 0}, (), 0, ["BUDGET_EXHAUSTED"]),
        ({"input_bytes": 100}, (), 0, ["BUDGET_EXHAUSTED"]),
        ({"tokens": 16_383}, (), 0, ["BUDGET_EXHAUSTED"]),
        ({"model_calls": 1}, (status(500),), 1, ["VERIFIER_TRANSPORT", "BUDGET_EXHAUSTED"]),
        ({"model_calls": 1}, (content("no"),), 1, ["VERIFIER_UNPARSEABLE", "BUDGET_EXHAUSTED"]),
    ],
)
def test_a_verification_that_cannot_be_paid_for_is_not_made(
    stage: LocalStage,
    budget: dict[str, int],
    behaviours: tuple[Behaviour, ...],
    calls: int,
    reasons: list[str],
) -> None:
    """Before the first attempt, or before the second: an abort, never a fallback."""
    end = judge_claims(stage, document(), *behaviours, budget=budget)
    aborted(end, "BUDGET_EXHAUSTED")
    assert len(end.calls) == calls
    assert end.evaluation["failure_reasons"] == reasons


@pytest.mark.scenario("claim-runs", "Out of budget")
@pytest.mark.parametrize("output", ["unreadable", document(diagnosis_summary="Full.")])
def test_what_asks_no_model_needs_no_budget(stage: LocalStage, output: Any) -> None:
    """It ends as it would with any budget."""
    assert judge_claims(stage, output, budget={"model_calls": 0}).ending == "PRE_VERIFICATION"
