"""Drafts and invocation records for tests: plain builders, and hypothesis strategies on them.

``Case`` is a run: a draft and what is stored under the calls that it cites.
``sound_cases()`` pass the evidence check; ``drafts()`` are any drafts that parse.
Ids are drawn from small, marked alphabets, so that a test may look for a leaked one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from contracts.base import is_blank
from contracts.draft import NEGATIVE_OBSERVATION, NORMAL, DiagnosisDraft

RUN_ID = "run-1"
STARTED = "2026-05-01T14:00:00Z"
COMPLETED = "2026-05-01T14:00:02Z"
WINDOW = {"start": "2026-05-01T13:00:00Z", "end": "2026-05-01T14:00:00Z"}

REQUESTS: dict[str, dict[str, Any]] = {
    "lookup_knowledge": {"query": "redis out of memory"},
    "query_logs": {"source": "gateway", "query": "upstream timed out", "level": "ERROR", **WINDOW},
    "query_metrics": {"source": "prometheus", "query": "rate(http_errors[5m])", **WINDOW},
    "query_mysql": {"data_source": "orders", "sql": "SELECT state FROM jobs WHERE state = 'DEAD'"},
    "run_command": {"command": "systemctl is-active redis", "host": "web-1"},
}

FOUND: dict[str, dict[str, Any]] = {
    "lookup_knowledge": {
        "documents": [{"document_id": "kb-7", "title": "Limits", "excerpt": "Raise maxmemory."}]
    },
    "query_logs": {
        "total_matches": 3,
        "patterns": [{"pattern": "upstream <*> timed out", "count": 3}],
        "events": [{"timestamp": "13:05:01", "message": "upstream db timed out"}],
    },
    "query_metrics": {
        "series": [
            {"labels": {"job": "api"}, "points": [{"timestamp": STARTED, "value": 4}], "unit": "1"}
        ]
    },
    "query_mysql": {"columns": ["state"], "rows": [["DEAD"], ["DEAD"]], "row_count": 2},
    "run_command": {"exit_code": 3, "stdout": "inactive\n", "stderr": ""},
}

EMPTY: dict[str, dict[str, Any]] = {
    "lookup_knowledge": {"documents": []},
    "query_logs": {"total_matches": 0},
    "query_metrics": {"series": []},
    "query_mysql": {"columns": ["state"], "rows": [], "row_count": 0},
    "run_command": {"exit_code": 1, "stdout": ""},
}

TOOLS = tuple(REQUESTS)


def record(tool: str = "run_command", *, found: bool = True, **changes: Any) -> dict[str, Any]:
    """Build one good record as a document; ``changes`` replace fields of the record itself.

    ``content`` replaces what the tool found, and ``request`` what it was asked.
    """
    status = "EVIDENCE_FOUND" if found else "NO_EVIDENCE"
    content = changes.pop("content", (FOUND if found else EMPTY)[tool])
    tool_call_id = changes.get("tool_call_id", "call-1")
    repeated = {"tool_name": tool, "tool_call_id": tool_call_id, "evidence_status": status}
    return {
        "run_id": RUN_ID,
        "session_id": "session-1",
        "tool_call_id": tool_call_id,
        "tool_name": tool,
        "lifecycle": "READY",
        "evidence_status": status,
        "request": REQUESTS[tool],
        "agent_result": json.dumps({**repeated, **content}, ensure_ascii=False),
        "started_at": STARTED,
        "completed_at": COMPLETED,
        **changes,
    }


def stored(document: Mapping[str, Any]) -> bytes:
    """Write a record as it would be stored."""
    return json.dumps(document, ensure_ascii=False).encode()


def draft(**changes: Any) -> DiagnosisDraft:
    """Build one sound draft of two analyses; ``changes`` replace whole fields, as JSON values."""
    value = {
        "conclusion": {"text": "Redis is down.", "based_on_analysis_ids": ["a1"]},
        "analyses": [
            {
                "analysis_id": "a1",
                "kind": NORMAL,
                "text": "The unit is inactive.",
                "tool_call_ids": ["call-1"],
            },
            {
                "analysis_id": "a2",
                "kind": NEGATIVE_OBSERVATION,
                "text": "No timeouts in the log.",
                "tool_call_ids": ["call-2"],
            },
        ],
        "action_plan": [
            {
                "text": "Start redis.",
                "based_on_analysis_ids": ["a1"],
                "requires_human_confirmation": True,
            }
        ],
        "recommendations": [{"text": "Watch the unit.", "based_on_analysis_ids": ["a1", "a2"]}],
        "limitations": ["Only one host was looked at."],
        **changes,
    }
    return DiagnosisDraft.model_validate_json(json.dumps(value))


@dataclass(frozen=True)
class Case:
    """A run's draft and the records behind its citations."""

    run_id: str
    draft: DiagnosisDraft
    records: dict[str, bytes | None]

    def with_record(self, tool_call_id: str, content: bytes | None) -> "Case":
        """Put something else in the place of one record."""
        return replace(self, records={**self.records, tool_call_id: content})


def sound_case(**changes: Any) -> Case:
    """Build the sound draft with its records; ``changes`` replace fields of the draft."""
    return Case(
        RUN_ID,
        draft(**changes),
        {
            "call-1": stored(record("run_command", tool_call_id="call-1")),
            "call-2": stored(record("query_logs", found=False, tool_call_id="call-2")),
        },
    )


def any_text() -> st.SearchStrategy[str]:
    """Any text that UTF-8 can carry, blank or not."""
    return st.text(max_size=30)


def visible_text() -> st.SearchStrategy[str]:
    """Text in which a reader sees something."""
    return any_text().filter(lambda text: not is_blank(text))


tool_call_ids = st.integers(0, 30).map(lambda number: f"call-x{number:02}x")
analysis_ids = st.integers(0, 8).map(lambda number: f"analysis-y{number}y")


@st.composite
def drafts(draw: st.DrawFn) -> DiagnosisDraft:
    """Any draft that parses: with or without a conclusion, sound or broken, fields left out."""
    ids = st.lists(st.one_of(analysis_ids, any_text()), max_size=3)
    items = st.lists(
        st.fixed_dictionaries(
            {"text": any_text(), "based_on_analysis_ids": ids},
            optional={"requires_human_confirmation": st.booleans()},
        ),
        max_size=2,
    )
    value = draw(
        st.fixed_dictionaries(
            {
                "conclusion": st.none()
                | st.fixed_dictionaries({"text": any_text(), "based_on_analysis_ids": ids}),
                "analyses": st.lists(
                    st.fixed_dictionaries(
                        {
                            "analysis_id": st.one_of(analysis_ids, any_text()),
                            "kind": st.sampled_from([NORMAL, NEGATIVE_OBSERVATION, "OTHER", ""]),
                            "text": any_text(),
                            "tool_call_ids": st.lists(
                                st.one_of(tool_call_ids, any_text()), max_size=3
                            ),
                        }
                    ),
                    max_size=3,
                ),
            },
            optional={
                "action_plan": items,
                "recommendations": items,
                "limitations": st.lists(any_text(), max_size=2),
                "missing_context": st.lists(any_text(), max_size=2),
            },
        )
    )
    return DiagnosisDraft.model_validate_json(json.dumps(value))


@st.composite
def sound_cases(draw: st.DrawFn) -> Case:
    """Build a case that passes the evidence check, over all tools and both kinds."""
    ids = draw(st.lists(analysis_ids, min_size=1, max_size=4, unique=True))
    references = st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True)
    items = st.lists(
        st.fixed_dictionaries(
            {"text": visible_text(), "based_on_analysis_ids": references},
            optional={"requires_human_confirmation": st.booleans()},
        ),
        max_size=2,
    )
    found = {
        key: draw(st.booleans())
        for key in draw(st.lists(tool_call_ids, min_size=2, max_size=6, unique=True))
    }
    kinds = [NORMAL] * any(found.values()) + [NEGATIVE_OBSERVATION] * (not all(found.values()))
    analyses = []
    for analysis_id in ids:
        kind = draw(st.sampled_from(kinds))
        fitting = [key for key, hit in found.items() if hit is (kind == NORMAL)]
        cited = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=4))
        text = draw(visible_text())
        analyses.append(
            {"analysis_id": analysis_id, "kind": kind, "text": text, "tool_call_ids": cited}
        )
    value = draw(
        st.fixed_dictionaries(
            {
                "conclusion": st.fixed_dictionaries(
                    {"text": visible_text(), "based_on_analysis_ids": references}
                ),
                "analyses": st.just(analyses),
            },
            optional={
                "action_plan": items,
                "recommendations": items,
                "limitations": st.lists(visible_text(), max_size=2),
                "missing_context": st.lists(visible_text(), max_size=2),
            },
        )
    )
    records: dict[str, bytes | None] = {
        key: stored(record(draw(st.sampled_from(TOOLS)), found=hit, tool_call_id=key))
        for key, hit in found.items()
    }
    return Case(RUN_ID, DiagnosisDraft.model_validate_json(json.dumps(value)), records)


def json_values() -> st.SearchStrategy[Any]:
    """Any small JSON value."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["tool_name", "rows", "a"]) | any_text(), inner)
        ),
        max_leaves=8,
    )


@st.composite
def broken_records(draw: st.DrawFn) -> bytes | None:
    """Draw what may stand under a cited id by accident or malice; some of it is almost right."""
    good = record(draw(st.sampled_from(TOOLS)), found=draw(st.booleans()))
    field = draw(st.sampled_from(sorted(good)))
    result: dict[str, Any] = json.loads(good["agent_result"])
    inner = draw(st.sampled_from(sorted(result)))
    contents: st.SearchStrategy[bytes | None] = st.one_of(
        st.none(),
        st.binary(max_size=40),
        json_values().map(lambda value: json.dumps(value).encode()),
        json_values().map(lambda value: stored({**good, field: value})),
        json_values().map(
            lambda value: stored({**good, "agent_result": json.dumps({**result, inner: value})})
        ),
        st.just(stored(good)[:-1]),
        st.just(stored(good).replace(b'"run_id"', b'"run_id": "run-1", "run_id"', 1)),
    )
    return draw(contents)
