"""The evidence check on real workers: what it objects to never reaches the review."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.fallback import FallbackType
from tests.pipeline.cases import disk_draft, disk_records
from tests.pipeline.harness import LocalStage, local_stage, new_run_id
from tests.pipeline.judged import judge, submitted, tool_record
from worker.offline.judge_script import status, verdict
from worker.run.steps import Step


def _cites_nobody(draft: dict[str, Any]) -> None:
    draft["analyses"][0]["tool_call_ids"] = ["call-of-nobody"]


def _cites_a_hit_as_absence(draft: dict[str, Any]) -> None:
    draft["analyses"][0]["kind"] = "NEGATIVE_OBSERVATION"


def _claims_on_nothing(draft: dict[str, Any]) -> None:
    draft["analyses"][1]["kind"] = "NORMAL"


def _repeats_an_id(draft: dict[str, Any]) -> None:
    draft["analyses"][1]["analysis_id"] = "a1"


def _blanks_an_id(draft: dict[str, Any]) -> None:
    draft["analyses"][1]["analysis_id"] = "\u200b"


def _concludes_from_nothing(draft: dict[str, Any]) -> None:
    draft["conclusion"]["based_on_analysis_ids"] = []


def _acts_on_an_unknown(draft: dict[str, Any]) -> None:
    draft["action_plan"][0]["based_on_analysis_ids"] = ["a7"]


def _recommends_on_an_unknown(draft: dict[str, Any]) -> None:
    draft["recommendations"] = [{"text": "Grow it.", "based_on_analysis_ids": ["a1", "A1"]}]


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (_cites_nobody, "RECORD_MISSING"),
        (_cites_a_hit_as_absence, "KIND_STATUS_MISMATCH"),
        (_claims_on_nothing, "KIND_STATUS_MISMATCH"),
        (_repeats_an_id, "ANALYSIS_ID_DUPLICATE"),
        (_blanks_an_id, "ANALYSIS_ID_BLANK"),
        (_concludes_from_nothing, "REFERENCES_EMPTY"),
        (_acts_on_an_unknown, "REFERENCE_UNKNOWN"),
        (_recommends_on_an_unknown, "REFERENCE_UNKNOWN"),
    ],
)
@pytest.mark.scenario("evidence-check", "Blank and repeated analysis ids")
@pytest.mark.scenario("evidence-check", "References that lead nowhere")
@pytest.mark.scenario("evidence-check", "A positive claim on an empty result")
def test_a_broken_draft_never_reaches_the_review(
    stage: LocalStage, damage: Callable[[dict[str, Any]], None], code: str
) -> None:
    """The check objects with its code, the repair is asked once, and the review is not."""
    draft = disk_draft()
    damage(draft)
    end = judge(stage, draft, status(500))
    assert end.ending == FallbackType.EVIDENCE_VALIDATION_FAILED
    assert end.outcomes(Step.CHECK_EVIDENCE) == ["VIOLATED"]
    assert end.outcomes(Step.REVIEW_SEMANTICS) == []
    (call,) = end.calls
    assert code in [violation["code"] for violation in call.question["violations"]]


@pytest.mark.scenario("evidence-check", "A call that this run never made")
@pytest.mark.scenario("evidence-check", "A call that came to nothing")
def test_a_record_of_another_run_or_without_a_result_is_no_evidence(stage: LocalStage) -> None:
    """Nothing of such records crosses the wire, neither to the repair nor to the review."""
    run_id, other = new_run_id(), new_run_id("other")
    secret = "result-of-somebody-else"
    kept = {"exit_code": 0, "stdout": secret}
    stage.record(tool_record(other, "run_command", "c-foreign", content=kept))
    broken: dict[str, dict[str, Any]] = {
        "c-running": {"lifecycle": "PROJECTING"},
        "c-failed": {"lifecycle": "ERROR"},
        "c-error": {"evidence_status": "ERROR"},
        "c-empty": {"agent_result": None},
    }
    records = [
        tool_record(run_id, "run_command", call_id, content=kept, **changes)
        for call_id, changes in broken.items()
    ]
    # Agents share a store: one may have written a record of its own under this run's key.
    foreign = tool_record(other, "run_command", "c-planted", content=kept)
    stage.redis.hset(stage.keys.invocations(run_id), "c-planted", foreign.model_dump_json())
    draft = disk_draft()
    draft["analyses"][0]["tool_call_ids"] = ["c-foreign", "c-planted", *broken]
    end = judge(stage, draft, status(500), run_id=run_id, records=records)
    (call,) = end.calls
    assert [one["code"] for one in call.question["violations"]] == [
        *("RECORD_MISSING", "RECORD_FOREIGN_RUN"),
        *("RECORD_NOT_READY", "RECORD_NOT_READY", "STATUS_NOT_CITABLE", "RESULT_EMPTY"),
        "RECORD_MISSING",  # call-grep of the sound draft was not recorded here
    ]
    assert secret.encode() not in call.body
    assert end.ending == FallbackType.EVIDENCE_VALIDATION_FAILED


@pytest.mark.scenario("evidence-check", "An empty result cited without a conclusion")
@pytest.mark.scenario("evidence-check", "A false reference without a conclusion")
def test_without_a_conclusion_good_references_count_and_bad_ones_do_not(stage: LocalStage) -> None:
    """An empty look gives its fact; the fabricated call beside it gives none."""
    analyses = [
        {
            "analysis_id": "a1",
            "kind": "NEGATIVE_OBSERVATION",
            "text": "No kills.",
            "tool_call_ids": ["call-grep"],
        },
        {
            "analysis_id": "a2",
            "kind": "NORMAL",
            "text": "Memory ran out.",
            "tool_call_ids": ["call-of-nobody", "call-grep"],
        },
    ]
    end = judge(stage, {"conclusion": None, "analyses": analyses})
    assert end.fallback["observed_facts"] == [
        "Command on web-1, at 2026-11-30T08:00:01Z, exit code 1; no matches in this scope."
    ]
    assert end.outcomes(Step.CHECK_EVIDENCE) == ["UNCONCLUDED"]
    assert end.calls == []


@pytest.mark.scenario("evidence-check", "An empty result as negative observation")
def test_an_empty_result_passes_as_what_it_is(stage: LocalStage) -> None:
    """The snapshot shows its scope and that nothing was found, and no value."""
    run_id = new_run_id()
    end = judge(stage, disk_draft(), verdict("SUPPORTED"), run_id=run_id)
    snapshot: Any = end.outcome.data["snapshot"]
    (evidence,) = snapshot["analyses"][1]["evidence"]
    assert evidence["found"] is False
    assert evidence["excerpt"] is evidence["values"] is None
    assert evidence["scope"] == {"command": disk_records(run_id)[1].request["command"]}


def _reads(stage: LocalStage) -> int:
    """How many questions for fields of a hash the store has answered: runs and records."""
    calls: int = stage.redis.info("commandstats").get("cmdstat_hmget", {}).get("calls", 0)
    return calls


@pytest.mark.scenario("evidence-check", "Many citations, one question to the store")
def test_two_hundred_citations_are_fetched_with_one_question(tmp_path: Path) -> None:
    """A run that cites many calls reads the store as often as one that cites one."""

    def judged_with(stage: LocalStage, calls: int) -> int:
        run_id = new_run_id()
        ids = [f"call-{number}" for number in range(calls)]
        records = [tool_record(run_id, "run_command", call_id) for call_id in ids]
        draft = disk_draft()
        draft["analyses"] = draft["analyses"][:1]
        draft["analyses"][0]["tool_call_ids"] = ids
        submitted(stage, draft, verdict("SUPPORTED"), run_id=run_id, records=records)
        before = _reads(stage)
        stage.worker(f"worker-{calls}", pool="solo")
        stage.outcome(run_id)
        stage.processes.pop().stop()
        return _reads(stage) - before

    with local_stage(tmp_path) as stage:
        assert judged_with(stage, 1) == judged_with(stage, 200)
