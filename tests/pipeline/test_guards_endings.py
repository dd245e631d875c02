"""Every ending of a judged draft, from real workers: what is released, and what is said instead."""

from typing import Any

import pytest

from contracts.fallback import FallbackType, Locale
from tests.pipeline.cases import disk_draft
from tests.pipeline.harness import LocalStage, new_run_id
from tests.pipeline.judged import Judged, judge, tool_record
from worker.guards.fallback import build_fallback
from worker.offline.judge_script import Behaviour, status, verdict
from worker.run.steps import Step

DF_FACT = "Command on web-1, at 2026-11-30T08:00:01Z, exit code 0; output was returned."
GREP_FACT = "Command on web-1, at 2026-11-30T08:00:01Z, exit code 1; no matches in this scope."
WEB_1 = {"tool": "run_command", "source": "web-1", "observed_at": "2026-11-30T08:00:01Z"}
PROGRESS = {"completed_tool_call_ids": ["call-df", "call-grep"]}
DOUBTFUL = {"completed_tool_call_ids": ["call-of-nobody"]}


def concluded(**changes: Any) -> dict[str, Any]:
    return {**disk_draft(), **changes}


def unconcluded(*citations: str, **changes: Any) -> dict[str, Any]:
    """A draft without a conclusion; its one analysis cites these calls, if there are any."""
    cited = list(citations)
    analysis = {"analysis_id": "a1", "kind": "NORMAL", "text": "Seen.", "tool_call_ids": cited}
    empty: dict[str, Any] = {"conclusion": None, "analyses": [analysis] if cited else []}
    return {**empty, **changes}


Case = tuple[Any, dict[str, Any], FallbackType, list[str]]
WITHOUT_A_MODEL: dict[str, Case] = {
    "stop by saturation, sound draft": (
        concluded(),
        {"stop": {"reason": "INFORMATION_SATURATION"}, "progress": PROGRESS},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [DF_FACT, GREP_FACT],
    ),
    "stop by budget, broken draft": (
        concluded(conclusion={"text": "", "based_on_analysis_ids": ["a9"]}),
        {"stop": {"reason": "BUDGET_HANDLED"}, "progress": PROGRESS},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [DF_FACT, GREP_FACT],
    ),
    "stop, unreadable draft, nothing verified": (
        "no JSON",
        {"stop": {"reason": "BUDGET_HANDLED"}, "progress": DOUBTFUL},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [],
    ),
    "stop, calls cited and no progress": (
        concluded(),
        {"stop": {"reason": "INFORMATION_SATURATION"}},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [],
    ),
    "unreadable, verified progress": (
        '{"conclusion": null, "conclusion": {}}',
        {"progress": {"completed_tool_call_ids": ["call-grep", "call-of-nobody"]}},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [GREP_FACT],
    ),
    "unreadable, nothing verified": (
        '```json\n{"conclusion": null, "analyses": []}\n```',
        {"progress": DOUBTFUL},
        FallbackType.EVIDENCE_VALIDATION_FAILED,
        [],
    ),
    "unreadable, no progress": (
        {"conclusion": None, "analyses": [], "verdict": "SUPPORTED"},
        {},
        FallbackType.EVIDENCE_VALIDATION_FAILED,
        [],
    ),
    "no conclusion, good citation": (
        unconcluded("call-df"),
        {},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [DF_FACT],
    ),
    "no conclusion, progress and missing context": (
        unconcluded(missing_context=["Which host?"]),
        {"progress": PROGRESS},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [DF_FACT, GREP_FACT],
    ),
    "no conclusion, no structure, good and bad citations": (
        unconcluded("call-df", "call-grep", "call-of-nobody", limitations=[" "]),
        {},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [DF_FACT],
    ),
    "no conclusion, missing context": (
        unconcluded(missing_context=["Which host?"]),
        {},
        FallbackType.MISSING_REQUIRED_CONTEXT,
        [],
    ),
    "no conclusion, missing context beside a fabricated call": (
        unconcluded("call-of-nobody", missing_context=["Which host?"]),
        {},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [],
    ),
    "no conclusion, fabricated call": (
        unconcluded("call-of-nobody"),
        {},
        FallbackType.INSUFFICIENT_EVIDENCE,
        [],
    ),
    "no conclusion at all": (unconcluded(), {}, FallbackType.INSUFFICIENT_EVIDENCE, []),
}


@pytest.mark.parametrize("name", WITHOUT_A_MODEL)
@pytest.mark.scenario("release-policy", "A controlled stop")
@pytest.mark.scenario("release-policy", "An unreadable draft with progress")
@pytest.mark.scenario("release-policy", "An unreadable draft and nothing else")
@pytest.mark.scenario("release-policy", "Missing context and no call")
@pytest.mark.scenario("release-policy", "Checks that support no conclusion")
@pytest.mark.scenario("release-policy", "No conclusion and nothing verified")
def test_without_a_conclusion_code_alone_decides(stage: LocalStage, name: str) -> None:
    """Type and facts follow from verified calls; no model is asked, no source is named."""
    draft, changes, type_, facts = WITHOUT_A_MODEL[name]
    end = judge(stage, draft, **changes)
    assert end.ending == end.fallback["type"] == type_
    assert end.fallback["observed_facts"] == facts
    assert end.fallback["verified_sources"] == []
    assert end.calls == []
    assert end.outcomes(Step.REPAIR_EVIDENCE) == end.outcomes(Step.REVIEW_SEMANTICS) == []
    _says_nothing_of_its_own(end, "en")


def _says_nothing_of_its_own(end: Judged, locale: Locale) -> None:
    """The fallback has its fixed words, a null conclusion, and no other field."""
    fixed = build_fallback(FallbackType(end.ending), locale)
    assert end.fallback["title"] == fixed.title
    assert end.fallback["message"] == fixed.message
    assert end.fallback["locale"] == locale
    assert end.fallback["conclusion"] is None
    assert set(end.fallback) == set(type(fixed).model_fields)
    assert set(end.outcome.data) == {"run_id", "session_id", "round", "fallback"}


@pytest.mark.scenario("release-policy", "A supported report")
def test_a_supported_report_is_released_as_it_was_checked(stage: LocalStage) -> None:
    """Draft and snapshot go out, the draft equal to what came in."""
    end = judge(stage, disk_draft(), verdict("SUPPORTED"))
    assert end.outcome.type == "release_stage.ReleaseSucceeded.v1"
    assert end.outcome.data["draft"] == disk_draft()
    assert end.outcome.data["repaired"] is False
    snapshot: Any = end.outcome.data["snapshot"]
    assert [part["analysis_id"] for part in snapshot["analyses"]] == ["a1", "a2"]
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["SUPPORTED"]


UNSUPPORTED = (verdict("UNSUPPORTED", "Not from this evidence."),)
UNAVAILABLE = (status(500).repeat(2),)
BAD_EVIDENCE = (status(500),)


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
@pytest.mark.parametrize(
    ("behaviours", "broken", "type_", "sources"),
    [
        (UNSUPPORTED, False, FallbackType.SEMANTIC_UNSUPPORTED, [WEB_1]),
        (UNAVAILABLE, False, FallbackType.SEMANTIC_UNAVAILABLE, [WEB_1]),
        (BAD_EVIDENCE, True, FallbackType.EVIDENCE_VALIDATION_FAILED, []),
    ],
    ids=["unsupported", "unavailable", "evidence"],
)
@pytest.mark.scenario("release-policy", "An unsupported report")
@pytest.mark.scenario("release-policy", "A review that stays unavailable")
@pytest.mark.scenario("release-policy", "Evidence that does not hold")
@pytest.mark.scenario("release-policy", "Both languages")
def test_a_concluded_draft_that_fails_gets_fixed_words(
    stage: LocalStage,
    behaviours: tuple[Behaviour, ...],
    broken: bool,
    type_: FallbackType,
    sources: list[dict[str, str]],
    locale: Locale,
) -> None:
    """The sources are those of the snapshot, or none where nothing was verified."""
    draft = disk_draft()
    if broken:
        draft["analyses"][0]["tool_call_ids"] = ["call-of-nobody"]
    end = judge(stage, draft, *behaviours, locale=locale)
    assert end.ending == end.fallback["type"] == type_
    assert end.fallback["verified_sources"] == sources
    assert end.fallback["observed_facts"] == []
    _says_nothing_of_its_own(end, locale)


@pytest.mark.scenario("release-policy", "Both languages")
@pytest.mark.parametrize(
    ("draft", "changes", "facts"),
    [
        (unconcluded("call-df"), {"progress": PROGRESS}, 2),
        (unconcluded(missing_context=["哪台主机？"]), {}, 0),
    ],
    ids=["facts", "missing context"],
)
def test_a_chinese_run_is_told_in_chinese(
    stage: LocalStage, draft: dict[str, Any], changes: dict[str, Any], facts: int
) -> None:
    """Fixed words and facts alike."""
    end = judge(stage, draft, locale="zh_Hans", **changes)
    _says_nothing_of_its_own(end, "zh-CN")
    assert len(end.fallback["observed_facts"]) == facts
    assert all("web-1" in fact and "。" in fact for fact in end.fallback["observed_facts"])


@pytest.mark.scenario("release-policy", "Facts of hits and of empty results")
def test_facts_of_every_tool_are_told_from_typed_fields(stage: LocalStage) -> None:
    """Hits and empty results of all tools, in the order of the progress, without their queries."""
    run_id = new_run_id()
    tools = ("lookup_knowledge", "query_logs", "query_metrics", "query_mysql", "run_command")
    records = [
        tool_record(run_id, tool, f"{tool}-{found}", found=found)
        for tool in tools
        for found in (True, False)
    ]
    progress = {"completed_tool_call_ids": [one.tool_call_id for one in records]}
    end = judge(stage, unconcluded(), run_id=run_id, records=records, progress=progress)
    moment = "at 2026-05-01T14:00:02Z"
    window = "2026-05-01T13:00:00Z to 2026-05-01T14:00:00Z"
    logs = f"Log search in gateway, level ERROR, {window}"
    assert end.fallback["observed_facts"] == [
        f"Knowledge search in knowledge, {moment}; passages returned: 1.",
        f"Knowledge search in knowledge, {moment}; no matches in this scope.",
        f"{logs}; matching entries: 3.",
        f"{logs}; no matches in this scope.",
        f"Metric query in prometheus, {window}; data points returned: 1.",
        f"Metric query in prometheus, {window}; no matches in this scope.",
        f"Database query in orders, {moment}; rows returned: 2.",
        f"Database query in orders, {moment}; no matches in this scope.",
        f"Command on web-1, {moment}, exit code 3; output was returned.",
        f"Command on web-1, {moment}, exit code 1; no matches in this scope.",
    ]


@pytest.mark.scenario("release-policy", "Calls that give no fact")
def test_a_call_that_did_not_look_at_everything_gives_no_fact(stage: LocalStage) -> None:
    """Deduplicated, truncated, failed and foreign calls leave the fallback without facts."""
    run_id = new_run_id()
    records = [
        tool_record(run_id, "query_logs", "c1", found=False, truncated=True),
        tool_record(run_id, "query_logs", "c2", found=False, deduplicated=True),
        tool_record(run_id, "query_logs", "c3", deduplicated=True),
        tool_record(run_id, "query_logs", "c4", lifecycle="ERROR"),
        tool_record(run_id, "run_command", "c5", evidence_status="ERROR"),
    ]
    progress = {"completed_tool_call_ids": [one.tool_call_id for one in records]}
    draft = unconcluded(*(one.tool_call_id for one in records))
    end = judge(stage, draft, run_id=run_id, records=records, progress=progress)
    assert end.ending == FallbackType.INSUFFICIENT_EVIDENCE
    assert end.fallback["observed_facts"] == []
