"""The verified snapshot: minimal, exact, and always the same bytes."""

import json
from typing import Any

import pytest
from hypothesis import given

from contracts.draft import NORMAL
from contracts.snapshot import Snapshot
from tests.strategies import FOUND, RUN_ID, WINDOW, Case, draft, record, sound_cases, stored
from worker.guards.evidence import check_evidence, cited_ids
from worker.guards.snapshot import snapshot_bytes
from worker.guards.tools import BUILT_IN


def snapshot_of(case: Case) -> Snapshot:
    report = check_evidence(case.run_id, case.draft, case.records, BUILT_IN)
    assert report.snapshot is not None, report.violations
    return report.snapshot


def analysis(name: str, *ids: str) -> dict[str, Any]:
    return {"analysis_id": name, "kind": NORMAL, "text": f"Text {name}.", "tool_call_ids": ids}


@pytest.mark.scenario("evidence-check", "Every tool in one snapshot")
def test_supported_rag_log_and_mysql_projections() -> None:
    """Each call stands under its analysis with source, scope, time and exact content."""
    tools = ("lookup_knowledge", "query_logs", "query_mysql")
    case = Case(
        RUN_ID,
        draft(analyses=[analysis("a1", *tools), analysis("a2", "query_mysql")]),
        {tool: stored(record(tool, tool_call_id=tool)) for tool in tools},
    )
    first, second = json.loads(snapshot_bytes(snapshot_of(case)))["analyses"]
    assert (first["analysis_id"], first["kind"], first["text"]) == ("a1", NORMAL, "Text a1.")
    common = {"found": True, "observed_at": "2026-05-01T14:00:02Z", "excerpt": None}
    assert first["evidence"] == [
        {
            **common,
            "tool": "lookup_knowledge",
            "source": "knowledge",
            "scope": {"query": "redis out of memory"},
            "values": FOUND["lookup_knowledge"],
        },
        {
            **common,
            "tool": "query_logs",
            "source": "gateway",
            "scope": {"query": "upstream timed out", "level": "ERROR", **WINDOW},
            "values": FOUND["query_logs"],
        },
        {
            **common,
            "tool": "query_mysql",
            "source": "orders",
            "scope": {"sql": "SELECT state FROM jobs WHERE state = 'DEAD'"},
            "values": FOUND["query_mysql"],
        },
    ]
    assert second["evidence"] == [first["evidence"][2]]


def test_a_commands_output_is_an_exact_excerpt() -> None:
    """White space and non-ASCII text stay as they were."""
    output = "  übergelaufen\t5 %\r\n\n"
    content = {"exit_code": 0, "stdout": output, "stderr": "w"}
    case = Case(
        RUN_ID,
        draft(analyses=[analysis("a1", "call-1")], recommendations=[]),
        {"call-1": stored(record(content=content))},
    )
    (evidence,) = snapshot_of(case).analyses[0].evidence
    assert evidence.excerpt == output
    assert evidence.values == {"exit_code": 0, "stderr": "w"}


def test_a_call_cited_twice_by_one_analysis_stands_there_once() -> None:
    """The order is that of the first citation."""
    case = Case(
        RUN_ID,
        draft(analyses=[analysis("a1", "c2", "c1", "c2"), analysis("a2", "c1")]),
        {
            "c1": stored(record(tool_call_id="c1")),
            "c2": stored(record("query_mysql", tool_call_id="c2")),
        },
    )
    tools = [[item.tool for item in part.evidence] for part in snapshot_of(case).analyses]
    assert tools == [["query_mysql", "run_command"], ["run_command"]]


def test_a_truncated_hit_says_so_in_its_scope() -> None:
    """The review must not take a part for the whole."""
    for truncated in (True, False):
        case = Case(
            RUN_ID,
            draft(analyses=[analysis("a1", "call-1")], recommendations=[]),
            {"call-1": stored(record(truncated=truncated))},
        )
        scope = snapshot_of(case).analyses[0].evidence[0].scope
        assert scope == {"command": "systemctl is-active redis"} | (
            {"truncated": True} if truncated else {}
        )


def test_sources_are_each_named_once_in_the_order_of_the_draft() -> None:
    """Two calls of one tool, source and moment are one source; another moment is another."""
    later = "2026-05-01T15:00:00Z"
    case = Case(
        RUN_ID,
        draft(analyses=[analysis("a1", "c3", "c1"), analysis("a2", "c2", "c4")]),
        {
            "c1": stored(record(tool_call_id="c1")),
            "c2": stored(record(tool_call_id="c2")),
            "c3": stored(record(tool_call_id="c3", completed_at=later)),
            "c4": stored(record("query_logs", tool_call_id="c4")),
        },
    )
    report = check_evidence(case.run_id, case.draft, case.records, BUILT_IN)
    assert [(item.tool, item.source, item.observed_at.hour) for item in report.sources] == [
        ("run_command", "web-1", 15),
        ("run_command", "web-1", 14),
        ("query_logs", "gateway", 14),
    ]


@pytest.mark.scenario("evidence-check", "No call id in the snapshot")
@given(sound_cases())
def test_no_tool_call_id_is_in_the_snapshot(case: Case) -> None:
    """Nor is any field but those that the review needs."""
    text = snapshot_bytes(snapshot_of(case)).decode()
    assert not [key for key in cited_ids(case.draft) if key in text]
    for analysis_ in json.loads(text)["analyses"]:
        assert set(analysis_) == {"analysis_id", "kind", "text", "evidence"}
        for item in analysis_["evidence"]:
            assert set(item) == {
                *("tool", "source", "observed_at", "scope", "found", "excerpt", "values"),
            }
            assert set(item["scope"]) <= set(BUILT_IN[item["tool"]].scope)


@given(sound_cases())
def test_a_snapshot_read_back_is_the_same_snapshot(case: Case) -> None:
    """What is stored for the review is what goes out with the release."""
    snapshot = snapshot_of(case)
    content = snapshot_bytes(snapshot)
    assert Snapshot.model_validate_json(content) == snapshot
    sent = snapshot.model_dump(mode="json", exclude_unset=True)
    assert sent == json.loads(content)
