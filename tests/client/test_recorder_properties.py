"""Whatever a tool is given and returns: a READY record can be cited, all else is an ERROR."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import InvocationRecord, Lifecycle
from tests.client.recording import REQUESTS, recorder_of, verified
from tests.fakes.record_store import FakeRecordStore
from worker.client import Failure, Finding, LogLine, log_matches, mysql_rows
from worker.guards.calls import VerifiedCall
from worker.guards.violations import ViolationCode

texts = st.text(st.characters(codec=None), max_size=12)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
FIELDS = """stdout stderr exit_code events patterns total_matches series rows columns row_count
documents tool_name tool_call_id evidence_status"""
names = st.sampled_from(FIELDS.split())
requests = st.dictionaries(
    st.sampled_from(("command", "host", "source", "query", "start", "end", "sql", "password"))
    | texts,
    anything | st.sampled_from(("gateway", "df -h", "2026-01-01T12:00:00Z", "SELECT 1 FROM t")),
    max_size=5,
)


def record_of(tool: str, request: Any, outcome: Any) -> InvocationRecord:
    store = FakeRecordStore()
    with recorder_of(store).call(tool, request, tool_call_id="c1") as call:
        call.ended(outcome)
    return store.one()


def check(record: InvocationRecord) -> None:
    checked = verified(record)
    if record.lifecycle is Lifecycle.READY:
        assert isinstance(checked, VerifiedCall) or (
            checked is ViolationCode.EVIDENCE_SELF_AUTHORED
        )
    else:
        assert record.error_message
        assert record.agent_result is None
        assert checked is ViolationCode.RECORD_NOT_READY


@given(
    st.sampled_from(sorted(REQUESTS)),
    requests | anything,
    st.dictionaries(names, anything, max_size=5),
    st.booleans(),
)
def test_any_request_and_result_become_a_record(
    tool: str, request: Any, fields: dict[str, Any], own: bool
) -> None:
    """No record is READY that the evidence check could not read, and none is lost."""
    check(record_of(tool, REQUESTS[tool] if own else request, Finding(fields, shown=str(fields))))


@given(st.lists(st.tuples(texts, texts, st.none() | texts), max_size=4), st.integers(0, 5))
def test_any_log_lines_become_a_record(lines: list[Any], more: int) -> None:
    """A builder's findings are read back as they were given."""
    found = log_matches([LogLine(*line) for line in lines], total_matches=len(lines) + more)
    check(record_of("query_logs", REQUESTS["query_logs"], found))


@given(st.lists(st.lists(anything, min_size=2, max_size=2), max_size=4))
def test_any_rows_become_a_record(rows: list[Any]) -> None:
    """Cells of any kind are written as JSON, or the record says that they cannot be."""
    store = FakeRecordStore()
    tool = recorder_of(store).tool(
        "query_mysql",
        request=lambda: REQUESTS["query_mysql"],
        outcome=lambda found: mysql_rows(["a", "b"], found),
    )(lambda: rows)
    assert tool() is rows
    check(store.one())


@pytest.mark.parametrize("request_", [None, {}, {"command": "df"}])
@given(texts, texts)
def test_any_failure_becomes_a_record(request_: Any, message: str, shown: str) -> None:
    """A failure needs no words, and may have any."""
    check(record_of("run_command", request_, Failure(message, shown=shown)))
