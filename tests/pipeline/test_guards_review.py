"""The semantic review on real workers: one verdict, asked for once, its reason kept inside."""

import json
import os
import subprocess
import sys

import pytest

from contracts.fallback import FallbackType
from tests.pipeline.cases import disk_draft
from tests.pipeline.harness import LocalStage
from tests.pipeline.judged import judge, submitted
from worker.guards.review import PROMPT_NAME, PROMPT_VERSION
from worker.offline.judge_script import Behaviour, close, content, hang, status, verdict
from worker.run.steps import Step

TECHNICAL = {"500": status(500), "closed": close(), "garbled": content("Yes."), "silent": hang()}


@pytest.mark.scenario("semantic-review", "A rejection is final")
def test_an_unsupported_report_is_not_asked_about_again(stage: LocalStage) -> None:
    """One call, one attempt, though a second would have said otherwise."""
    end = judge(stage, disk_draft(), verdict("UNSUPPORTED"), verdict("SUPPORTED").always())
    assert end.ending == FallbackType.SEMANTIC_UNSUPPORTED
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["UNSUPPORTED"]
    assert len(end.calls) == 1


@pytest.mark.parametrize("name", TECHNICAL)
@pytest.mark.scenario("semantic-review", "A rejection on the second attempt")
def test_a_rejection_on_the_second_attempt_counts(stage: LocalStage, name: str) -> None:
    """A failure of technique is followed by a verdict against the report."""
    end = judge(stage, disk_draft(), TECHNICAL[name], verdict("UNSUPPORTED"))
    assert end.ending == FallbackType.SEMANTIC_UNSUPPORTED
    assert end.outcomes(Step.REVIEW_SEMANTICS)[1:] == ["UNSUPPORTED"]
    assert len(end.calls) == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"verdict": "SUPPORTED", "reason": "Improved.", "report": "Buy a corrected-disk."},
        {**disk_draft(), "limitations": ["corrected-disk"]},
        {"verdict": "SUPPORTED", "reason": "Fine.", "draft": {"conclusion": "corrected-disk"}},
    ],
    ids=["beside", "instead", "inside"],
)
@pytest.mark.scenario("semantic-review", "A corrected report is no answer")
def test_a_reviewer_cannot_return_a_report(stage: LocalStage, answer: dict[str, object]) -> None:
    """It is off the schema twice, and no word of it goes out."""
    end = judge(stage, disk_draft(), content(json.dumps(answer)).repeat(2))
    assert end.ending == FallbackType.SEMANTIC_UNAVAILABLE
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["OFF_SCHEMA", "OFF_SCHEMA"]
    assert "corrected-disk" not in end.outcome.model_dump_json()


def _shown(stage: LocalStage, run_id: str) -> str:
    """What ``release-stage show`` tells the people on call."""
    command = [sys.executable, "-m", "worker.cli", "show", run_id]
    environment = {**os.environ, **stage.environment}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return shown.stdout


@pytest.mark.parametrize("name", ["SUPPORTED", "UNSUPPORTED"])
@pytest.mark.scenario("semantic-review", "A reason for the record alone")
def test_a_reason_is_in_the_record_and_nowhere_else(stage: LocalStage, name: str) -> None:
    """People on call can read it; the message and the logs do not hold it."""
    reason = f"reason-for-the-record-{name.lower()}"
    answer = Behaviour(verdict="SUPPORTED" if name == "SUPPORTED" else "UNSUPPORTED", reason=reason)
    run_id = submitted(stage, disk_draft(), answer)
    outcome = stage.outcome(run_id)
    assert reason not in outcome.model_dump_json()
    assert reason not in stage.log_text()
    record = json.loads(_shown(stage, run_id))
    attempt = record["attempts"]["0.review_semantics.1"]
    assert attempt["reason"] == reason
    assert attempt["outcome"] == name
    assert attempt["prompt"] == f"{PROMPT_NAME}/{PROMPT_VERSION}"
