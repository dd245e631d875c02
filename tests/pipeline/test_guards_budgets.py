"""Budgets and deadlines inside the guards, on real workers: an abort, never a fallback."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.pipeline.cases import disk_draft
from tests.pipeline.harness import PATIENCE, LocalStage
from tests.pipeline.judged import Judged, judge, judged, submitted
from worker.offline.judge_script import (
    Behaviour,
    content,
    hang,
    no_usage,
    rules,
    status,
    trickle,
    verdict,
)
from worker.offline.processes import wait_until
from worker.run.state import Spend
from worker.run.steps import Step

OUTPUT_BYTES, OUTPUT_TOKENS = 16_384, 1_024
"""What a review may answer at most, as the settings have it."""


def broken_draft() -> dict[str, Any]:
    draft = disk_draft()
    draft["conclusion"]["based_on_analysis_ids"] = ["a9"]
    return draft


def _aborted(end: Judged, reason: str) -> None:
    """One message, an abort with its reason and nothing else."""
    assert end.ending == reason
    assert end.outcome.type == "release_stage.ReleaseAborted.v1"
    assert end.outcome.data == {
        "run_id": end.run.run_id,
        "session_id": "session-1",
        "round": 0,
        "reason": reason,
    }


TOO_SMALL = [
    {"model_calls": 0},
    {"input_bytes": 100},
    {"output_bytes": OUTPUT_BYTES - 1},
    {"tokens": OUTPUT_TOKENS - 1},
]


@pytest.mark.parametrize("budget", TOO_SMALL, ids="".join)
@pytest.mark.parametrize("draft", [disk_draft(), broken_draft()], ids=["review", "repair"])
@pytest.mark.scenario("model-boundary", "A budget too small for the first call")
@pytest.mark.scenario("release-policy", "Aborted, never a fallback")
def test_a_call_that_cannot_be_paid_for_is_not_made(
    stage: LocalStage, draft: dict[str, Any], budget: dict[str, int]
) -> None:
    """Each of the four budgets ends the run before its first call."""
    end = judge(stage, draft, budget=budget)
    _aborted(end, "BUDGET_EXHAUSTED")
    assert end.calls == []


@pytest.mark.scenario("model-boundary", "A budget that ends between two attempts")
@pytest.mark.scenario("release-policy", "Aborted, never a fallback")
@pytest.mark.parametrize(
    "budget",
    [{"model_calls": 1}, {"output_bytes": 2 * OUTPUT_BYTES - 1}, {"tokens": 2 * OUTPUT_TOKENS - 1}],
    ids="".join,
)
def test_a_budget_for_one_attempt_ends_before_the_second(
    stage: LocalStage, budget: dict[str, int]
) -> None:
    """The first attempt fails and stays charged as reserved, since nobody said what it used."""
    end = judge(stage, disk_draft(), status(500), budget=budget)
    _aborted(end, "BUDGET_EXHAUSTED")
    assert len(end.calls) == 1
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["TRANSPORT"]


@pytest.mark.scenario("model-boundary", "Repair and review share a budget")
def test_a_repair_can_use_up_the_budget_of_the_review(stage: LocalStage) -> None:
    """One call was allowed, and the repair was it."""
    mended = content(json.dumps(disk_draft()))
    end = judge(stage, broken_draft(), mended, budget={"model_calls": 1})
    _aborted(end, "BUDGET_EXHAUSTED")
    assert end.outcomes(Step.REPAIR_EVIDENCE) == ["REPAIRED"]
    assert len(end.calls) == 1


def test_a_budget_that_is_just_enough_is_enough(stage: LocalStage) -> None:
    """One call, its exact input, and the most that it may answer."""
    asked = judge(stage, disk_draft()).attempt(Step.REVIEW_SEMANTICS).charged.input_bytes
    budget = {
        "model_calls": 1,
        "input_bytes": asked,
        "output_bytes": OUTPUT_BYTES,
        "tokens": OUTPUT_TOKENS,
    }
    assert judge(stage, disk_draft(), budget=budget).ending == "SUCCEEDED"
    budget["input_bytes"] -= 1
    _aborted(judge(stage, disk_draft(), budget=budget), "BUDGET_EXHAUSTED")


def test_what_never_asks_a_model_needs_no_budget(stage: LocalStage) -> None:
    """A draft without a conclusion ends as it would with any budget."""
    nothing = {"model_calls": 0, "input_bytes": 0, "output_bytes": 0, "tokens": 0}
    end = judge(stage, {"conclusion": None, "analyses": []}, budget=nothing)
    assert end.ending == "INSUFFICIENT_EVIDENCE"


@pytest.mark.scenario("model-boundary", "Reserved, then settled")
def test_an_attempt_is_charged_as_reserved_until_its_usage_is_known(stage: LocalStage) -> None:
    """While it runs the most is charged; then what the provider counted, or still the most."""
    run_id = submitted(stage, disk_draft(), hang(), rules())

    def running() -> Spend:
        run = stage.run(run_id)
        return Spend() if run is None else run.spent

    wait_until(lambda: running().model_calls, PATIENCE, "the first attempt")
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)))
    (asked,) = stage.judge.asked_about(run_id)
    size = sum(len(message["content"].encode()) for message in asked.json["messages"])
    reserved = Spend(
        model_calls=1, input_bytes=size, output_bytes=OUTPUT_BYTES, tokens=OUTPUT_TOKENS
    )
    assert running() == reserved

    end = judged(stage, run_id)
    first, second = (end.attempt(Step.REVIEW_SEMANTICS, number) for number in (1, 2))
    assert first.charged == reserved
    assert not first.settled
    assert second.settled
    assert second.charged.output_bytes < 1_000
    assert second.charged.tokens > size // 4, "input and output, as the provider counted them"
    assert end.run.spent == first.charged + second.charged


@pytest.mark.scenario("model-boundary", "Reserved, then settled")
def test_without_usage_the_tokens_stay_as_reserved(stage: LocalStage) -> None:
    """The bytes of the answer are known all the same."""
    attempt = judge(stage, disk_draft(), no_usage()).attempt(Step.REVIEW_SEMANTICS)
    assert attempt.charged.tokens == OUTPUT_TOKENS
    assert 0 < attempt.charged.output_bytes < 1_000
    assert not attempt.settled


def test_settling_pays_for_the_second_attempt(stage: LocalStage) -> None:
    """A garbled first answer that was counted leaves room for another call."""
    end = judge(
        stage,
        disk_draft(),
        content("garbled"),
        verdict("SUPPORTED"),
        budget={"output_bytes": OUTPUT_BYTES + 100},
    )
    assert end.ending == "SUCCEEDED"
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["UNPARSEABLE", "SUPPORTED"]


def test_overspending_stops_the_next_call_only(stage: LocalStage) -> None:
    """The provider counted more than the budget had: the verdict stands all the same."""
    usage = {"prompt_tokens": 5_000, "completion_tokens": 50, "total_tokens": 5_050}
    counted = Behaviour(verdict="SUPPORTED", completion={"usage": usage})
    end = judge(stage, disk_draft(), counted, budget={"tokens": OUTPUT_TOKENS})
    assert end.attempt(Step.REVIEW_SEMANTICS).charged.tokens == 5_050
    assert end.ending == "SUCCEEDED"


@pytest.mark.parametrize("slow", [hang(), trickle(0.02)], ids=["silence", "trickle"])
@pytest.mark.parametrize("draft", [disk_draft(), broken_draft()], ids=["review", "repair"])
@pytest.mark.scenario("model-boundary", "The run's deadline ends the call")
@pytest.mark.scenario("release-policy", "Aborted, never a fallback")
def test_a_deadline_inside_a_call_aborts_the_run(
    stage: LocalStage, draft: dict[str, Any], slow: Any
) -> None:
    """The call gets what is left of the run's time, and its end is the run's."""
    deadline = (datetime.now(UTC) + timedelta(seconds=1.8)).isoformat()
    end = judge(stage, draft, slow, deadline=deadline)
    _aborted(end, "DEADLINE_EXCEEDED")
    (call,) = end.calls
    assert call.closed_at is not None
    assert call.closed_at - call.arrived_at < 1.9
