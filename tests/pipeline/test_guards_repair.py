"""The evidence repair on real workers: one call, nothing visible changed, checked again."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from contracts.fallback import FallbackType
from tests.pipeline.cases import disk_draft
from tests.pipeline.harness import LocalStage, local_stage, new_run_id
from tests.pipeline.judged import judge
from worker.offline.judge_script import content, verdict
from worker.run.steps import Step

Draft = dict[str, Any]


def full_draft() -> Draft:
    """A sound draft with something in every section."""
    draft = disk_draft()
    draft["recommendations"] = [
        {"text": "Rotate the logs of caf\u00e9.", "based_on_analysis_ids": ["a1"]},
        {"text": "Watch the disk.", "based_on_analysis_ids": ["a1", "a2"]},
    ]
    draft["missing_context"] = ["Since when?"]
    return draft


def broken_draft() -> Draft:
    """The same with one reference that leads nowhere."""
    draft = full_draft()
    draft["conclusion"]["based_on_analysis_ids"] = ["a9"]
    return draft


def _dangling(draft: Draft) -> None:
    draft["action_plan"][0]["based_on_analysis_ids"] = ["a9"]


def _duplicate_id(draft: Draft) -> None:
    draft["analyses"][1]["analysis_id"] = "a1"


def _fabricated_call(draft: Draft) -> None:
    draft["analyses"][0]["tool_call_ids"] = ["call-df", "call-of-nobody"]


MENDED: dict[Callable[[Draft], None], tuple[str, Any, Any]] = {
    _dangling: ("action_plan[0].based_on_analysis_ids", ("a9",), ("a1",)),
    _duplicate_id: ("analyses[1].analysis_id", "a1", "a2"),
    _fabricated_call: (
        "analyses[0].tool_call_ids",
        ("call-df", "call-of-nobody"),
        ("call-df",),
    ),
}
"""What the record must say of each repair: the place, the ids before and after."""


@pytest.mark.parametrize("damage", MENDED)
@pytest.mark.scenario("evidence-repair", "Mended references")
def test_a_mended_draft_is_checked_reviewed_and_released(
    stage: LocalStage, damage: Callable[[Draft], None]
) -> None:
    """Two calls in all; what goes out is the mended draft and says so, in record and message."""
    broken = full_draft()
    damage(broken)
    end = judge(stage, broken, content(json.dumps(full_draft())), verdict("SUPPORTED"))
    assert end.ending == "SUCCEEDED"
    assert end.outcome.data["draft"] == full_draft()
    assert end.outcome.data["repaired"] is True
    assert end.outcomes(Step.CHECK_EVIDENCE) == ["VIOLATED", "PASSED"]
    assert end.outcomes(Step.REPAIR_EVIDENCE) == ["REPAIRED"]
    asked, reviewed = end.calls
    assert "violations" in asked.question
    assert reviewed.question["draft"]["conclusion"] == full_draft()["conclusion"]
    attempts = stage.evaluation(end.run.run_id)["attempts"]
    assert attempts["0.check_evidence.1"]["violations"] == asked.question["violations"]
    (mended,) = attempts["0.repair_evidence.1"]["mended"]
    assert (mended["target"], mended["before"], mended["after"]) == MENDED[damage]


@pytest.mark.scenario("evidence-repair", "What the repair is shown")
def test_the_repair_sees_the_draft_and_the_violations_and_has_no_tools(stage: LocalStage) -> None:
    """Two messages and no tool; the evidence stays behind."""
    end = judge(stage, broken_draft(), content("no"))
    (call,) = end.calls
    assert [message["role"] for message in call.json["messages"]] == ["system", "user"]
    assert not {"tools", "tool_choice", "functions", "function_call"} & set(call.json)
    assert set(call.question) == {"query", "draft", "violations"}
    shown = call.question["draft"]
    assert {key: shown[key] for key in ("conclusion", "analyses", "limitations")} == {
        key: broken_draft()[key] for key in ("conclusion", "analyses", "limitations")
    }
    assert call.question["violations"] == [
        {"code": "REFERENCE_UNKNOWN", "target": "conclusion.based_on_analysis_ids[0]"}
    ]
    assert b"Filesystem Size Used" not in call.body


def _set(*path: str | int, value: Any) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        place: Any = draft
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


ALTERATIONS: dict[str, Callable[[Draft], None]] = {
    "conclusion text": _set("conclusion", "text", value="The disk is full."),
    "no conclusion": _set("conclusion", value=None),
    "analysis text": _set("analyses", 0, "text", value="df shows a full disk."),
    "analysis kind": _set("analyses", 1, "kind", value="NORMAL"),
    "order of analyses": lambda draft: draft["analyses"].reverse(),
    "an analysis less": lambda draft: draft["analyses"].pop(),
    "an analysis more": lambda draft: draft["analyses"].append(deepcopy(draft["analyses"][0])),
    "action text": _set("action_plan", 0, "text", value="Free space on /tmp."),
    "confirmation flag": _set("action_plan", 0, "requires_human_confirmation", value=False),
    "a flag set": _set("recommendations", 0, "requires_human_confirmation", value=True),
    "an action less": _set("action_plan", value=[]),
    "recommendation text": _set("recommendations", 1, "text", value="Watch the disks."),
    "order of recommendations": lambda draft: draft["recommendations"].reverse(),
    "limitation": _set("limitations", 0, value="Only one host was looked at"),
    "a limitation less": _set("limitations", value=[]),
    "missing context": _set("missing_context", 0, value="since when?"),
    "normal form": _set("recommendations", 0, "text", value="Rotate the logs of cafe\u0301."),
    "a space more": _set("action_plan", 0, "text", value="Free space on /var. "),
    "a space that is not seen": _set("action_plan", 0, "text", value="Free space\u200b on /var."),
}


@pytest.mark.parametrize("name", ALTERATIONS)
@pytest.mark.scenario("evidence-repair", "A repair that touches a word")
def test_a_repair_that_changes_what_a_reader_sees_is_not_used(stage: LocalStage, name: str) -> None:
    """Whatever the change, and though every reference was mended."""
    altered = full_draft()
    ALTERATIONS[name](altered)
    end = judge(stage, broken_draft(), content(json.dumps(altered)), verdict("SUPPORTED"))
    assert end.ending == FallbackType.EVIDENCE_VALIDATION_FAILED
    assert end.fallback["verified_sources"] == []
    assert end.outcomes(Step.REPAIR_EVIDENCE) == ["ALTERED"]
    assert end.outcomes(Step.CHECK_EVIDENCE) == ["VIOLATED"]
    assert len(end.calls) == 1


def _still_broken() -> Draft:
    draft = broken_draft()
    draft["conclusion"]["based_on_analysis_ids"] = ["a8"]
    return draft


@pytest.mark.parametrize("answer", [broken_draft(), _still_broken()], ids=["same", "other"])
@pytest.mark.scenario("evidence-repair", "A repair that mends nothing")
def test_a_draft_that_fails_its_second_check_is_given_up(stage: LocalStage, answer: Draft) -> None:
    """No second repair, no review, no sources."""
    end = judge(stage, broken_draft(), content(json.dumps(answer)), verdict("SUPPORTED"))
    assert end.ending == FallbackType.EVIDENCE_VALIDATION_FAILED
    assert end.fallback["verified_sources"] == []
    assert end.outcomes(Step.CHECK_EVIDENCE) == ["VIOLATED", "VIOLATED"]
    assert end.outcomes(Step.REPAIR_EVIDENCE) == ["REPAIRED"]
    assert end.outcomes(Step.REVIEW_SEMANTICS) == []
    assert len(end.calls) == 1


@pytest.mark.scenario("evidence-repair", "Repair is switched off")
def test_without_repair_a_failed_check_is_final(tmp_path: Path) -> None:
    """The setting removes the call, not the check."""
    with local_stage(tmp_path, settings={"RELEASE_EVIDENCE_REPAIR": "false"}) as stage:
        stage.worker("strict", pool="threads", concurrency=2)
        end = judge(stage, broken_draft(), run_id=new_run_id())
    assert end.ending == FallbackType.EVIDENCE_VALIDATION_FAILED
    assert end.fallback["verified_sources"] == []
    assert end.outcomes(Step.REPAIR_EVIDENCE) == []
    assert end.calls == []
