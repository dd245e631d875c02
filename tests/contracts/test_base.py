"""Blank texts, identifiers and the strictness that all contracts share."""

import ast
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import contracts
from contracts.base import ReplyTo, RunId, SourceName, is_blank, isoformat
from contracts.draft import DiagnosisDraft
from contracts.evidence import InvocationRecord
from contracts.messages import CancelRun, DraftReady


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        pytest.param("", True, id="empty"),
        pytest.param(" \t\r\n", True, id="spaces"),
        pytest.param("\u00a0\u2003\u3000", True, id="wide and unbreakable spaces"),
        pytest.param("\u200b\u200d\ufeff", True, id="zero width"),
        pytest.param("\x00\x1b", True, id="controls"),
        pytest.param("\u202e\u2066", True, id="direction marks"),
        pytest.param("\u0301", True, id="a mark with nothing to stand on"),
        pytest.param("\u3164\u115f\u2800", True, id="letters and patterns that show nothing"),
        pytest.param(" a ", False, id="a letter"),
        pytest.param("0", False, id="a digit"),
        pytest.param("—", False, id="a dash"),
        pytest.param("原因", False, id="Chinese"),
        pytest.param("\u202eabc", False, id="a letter after a direction mark"),
    ],
)
def test_blank_is_what_shows_nothing(text: str, *, blank: bool) -> None:
    """A text is blank exactly if a reader would see nothing."""
    assert is_blank(text) is blank


@given(st.text(), st.sampled_from(["", " ", "\u200b", "\u3164"]))
def test_blanks_around_a_text_change_nothing(text: str, around: str) -> None:
    """Padding never makes a text blank or visible."""
    assert is_blank(around + text + around) is is_blank(text)


@pytest.mark.scenario("message-contracts", "Names with a small alphabet")
@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        (RunId, "run-1.a_B", True),
        (RunId, "a" * 128, True),
        (RunId, "a" * 129, False),
        (RunId, "", False),
        (RunId, "-a", False),
        (RunId, "a b", False),
        (RunId, "{a}", False),
        (RunId, "a\n", False),
        (RunId, "а", False),  # a Cyrillic letter
        (ReplyTo, "release.reply.team-1", True),
        (ReplyTo, "release.reply.", False),
        (ReplyTo, "release.replyxteam", False),
        (ReplyTo, "release.results", False),
        (ReplyTo, "release.reply.a\n", False),
        (SourceName, "k8s/prod:gateway@eu", True),
        (SourceName, "gateway says: all is well", False),
    ],
)
def test_identifiers_have_small_alphabets(kind: Any, value: str, *, fits: bool) -> None:
    """An id that becomes part of a key, a queue name or a fallback can hold nothing else."""
    adapter = TypeAdapter(kind)
    if fits:
        assert adapter.validate_python(value) == value
    else:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


def test_utc_is_written_with_z() -> None:
    """UTC has one way to be written."""
    assert isoformat(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05Z"


@pytest.mark.scenario("message-contracts", "A wrong type")
@pytest.mark.parametrize(
    ("model", "data"),
    [
        pytest.param(CancelRun, {"run_id": 7}, id="a number is no id"),
        pytest.param(
            DiagnosisDraft, {"conclusion": None, "analyses": [], "secret": 1}, id="unknown field"
        ),
        pytest.param(DiagnosisDraft, {"analyses": []}, id="a missing conclusion is not null"),
        pytest.param(DiagnosisDraft, {"conclusion": None, "analyses": "none"}, id="text for list"),
        pytest.param(
            DraftReady,
            {"run_id": "r", "session_id": "s", "query": "q", "draft": {}, "budget": {"tokens": -1}},
            id="a negative budget",
        ),
        pytest.param(
            DraftReady,
            {
                "run_id": "r",
                "session_id": "s",
                "query": "q",
                "draft": {},
                "deadline": "2026-01-02T03:04:05",
            },
            id="a time without an offset",
        ),
    ],
)
def test_wrong_types_do_not_parse(model: type[BaseModel], data: dict[str, Any]) -> None:
    """Contracts convert nothing, and their errors quote nothing of the input."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(data)
    assert "input_value" not in str(caught.value)


@pytest.mark.scenario("message-contracts", "An odd draft")
def test_odd_drafts_parse() -> None:
    """Blank, repeated and dangling ids and unknown kinds are for the guard, not the parser."""
    analysis = {"analysis_id": "", "kind": "HUNCH", "text": " ", "tool_call_ids": ["", "x", "x"]}
    draft = DiagnosisDraft.model_validate_json(
        TypeAdapter(Any).dump_json(
            {
                "conclusion": {"text": "", "based_on_analysis_ids": ["gone"]},
                "analyses": [analysis, analysis],
            }
        )
    )
    assert draft.analyses[0] == draft.analyses[1]


@pytest.mark.scenario("message-contracts", "A newer producer")
def test_unknown_fields_of_a_newer_producer_are_dropped() -> None:
    """An open contract reads what it knows and never repeats the rest."""
    record = InvocationRecord.model_validate_json(
        '{"run_id": "r", "session_id": "s", "tool_call_id": "c", "tool_name": "query_logs",'
        ' "lifecycle": "READY", "started_at": "2026-01-02T03:04:05Z", "raw_response": "secret"}'
    )
    assert "secret" not in record.model_dump_json()


@pytest.mark.scenario("message-contracts", "Contracts alone")
def test_contracts_need_pydantic_and_nothing_else() -> None:
    """An agent team can import the contracts without the worker and what it is built on."""
    allowed = sys.stdlib_module_names | {"pydantic", "contracts"}
    imported: set[str] = set()
    for path in Path(contracts.__file__).parent.glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
    assert imported <= allowed
