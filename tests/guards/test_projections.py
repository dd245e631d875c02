"""What each tool shows in the snapshot and tells as typed facts."""

from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from contracts.base import OpenContract, SourceName
from contracts.evidence import EvidenceStatus, Projection
from tests.strategies import FOUND, REQUESTS, RUN_ID, WINDOW, record, stored
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.tools import BUILT_IN, ENTRY_POINT_GROUP, Observed, ToolProjection
from worker.guards.violations import ViolationCode as Code

START = datetime(2026, 5, 1, 13, tzinfo=UTC)
END = datetime(2026, 5, 1, 14, tzinfo=UTC)


def verified(document: dict[str, Any], tools: Any = BUILT_IN) -> VerifiedCall:
    call = read_call(RUN_ID, "call-1", stored(document), tools)
    assert isinstance(call, VerifiedCall), call
    return call


@pytest.mark.parametrize(
    ("tool", "source", "scope", "observed"),
    [
        (
            "lookup_knowledge",
            "knowledge",
            {"query": "redis out of memory"},
            Observed(count=1),
        ),
        (
            "query_logs",
            "gateway",
            {"query": "upstream timed out", "level": "ERROR", **WINDOW},
            Observed(start=START, end=END, level="ERROR", count=3),
        ),
        (
            "query_metrics",
            "prometheus",
            {"query": "rate(http_errors[5m])", **WINDOW},
            Observed(start=START, end=END, count=1),
        ),
        (
            "query_mysql",
            "orders",
            {"sql": "SELECT state FROM jobs WHERE state = 'DEAD'"},
            Observed(count=2),
        ),
        (
            "run_command",
            "web-1",
            {"command": "systemctl is-active redis"},
            Observed(exit_code=3),
        ),
    ],
)
def test_a_hit_shows_its_exact_scope_and_its_result(
    tool: str, source: str, scope: dict[str, Any], observed: Observed
) -> None:
    """Command, query and window stand as they were sent; so does what was found."""
    call = verified(record(tool))
    assert call.origin.source == source
    assert call.scope == scope
    assert call.observed == observed
    content = dict(FOUND[tool])
    assert call.excerpt == (content.pop("stdout") if tool == "run_command" else None)
    assert call.values == content


def test_an_empty_result_shows_its_scope_and_nothing_else() -> None:
    """Zero matches are told by the status and the scope."""
    call = verified(record("query_logs", found=False))
    assert call.scope == {"query": "upstream timed out", "level": "ERROR", **WINDOW}
    assert (call.excerpt, call.values) == (None, None)
    assert call.observed.count == 0
    assert verified(record("run_command", found=False)).excerpt is None


def test_supplied_parameters_belong_to_the_scope_and_absent_fields_do_not() -> None:
    """A null or a field of no meaning for the scope is left out."""
    request = {**REQUESTS["query_mysql"], "params": ["x", 1], "trace": "abc"}
    assert verified(record("query_mysql", request=request)).scope["params"] == ["x", 1]
    assert "trace" not in verified(record("query_mysql", request=request)).scope
    request = {**REQUESTS["query_logs"], "level": None}
    assert "level" not in verified(record("query_logs", request=request)).scope


def test_numbers_are_copied_and_not_rewritten() -> None:
    """An integer beyond the precision of a float stays exact."""
    large = 2**63 + 1
    point = {"timestamp": "2026-05-01T13:30:00.123456789Z", "value": large}
    content = {"series": [{"labels": {}, "points": [point]}]}
    call = verified(record("query_metrics", content=content))
    assert call.values == content


def test_points_are_counted_over_all_series() -> None:
    """The count of a metric query is its number of points."""
    series = FOUND["query_metrics"]["series"][0]
    content = {"series": [{**series, "points": series["points"] * 2}, series]}
    assert verified(record("query_metrics", content=content)).observed.count == 3


class TraceRequest(OpenContract):
    service: SourceName
    operation: str


class LooseRequest(OpenContract):
    service: str
    operation: str


class TraceResult(Projection):
    tool_name: Literal["query_traces"]
    spans: tuple[str, ...]


def traces(request: type[Any]) -> ToolProjection[Any, TraceResult]:
    return ToolProjection(
        request=request,
        result=TraceResult,
        source=lambda asked: str(asked.service),
        scope=("operation",),
        asks=lambda _: True,
        status=lambda result: (
            EvidenceStatus.EVIDENCE_FOUND if result.spans else EvidenceStatus.NO_EVIDENCE
        ),
        self_authored=lambda _, __: False,
        observed=lambda _, result: Observed(count=len(result.spans)),
    )


def trace_record(service: str) -> dict[str, Any]:
    return record(
        "run_command",
        tool_name="query_traces",
        request={"service": service, "operation": "checkout"},
        agent_result=(
            '{"tool_name": "query_traces", "tool_call_id": "call-1",'
            ' "evidence_status": "EVIDENCE_FOUND", "spans": ["a"]}'
        ),
    )


def test_a_further_tool_is_known_once_it_is_in_the_mapping() -> None:
    """The composition root registers projections from an entry point group."""
    assert ENTRY_POINT_GROUP == "release_stage.tools"
    tools = {**BUILT_IN, "query_traces": traces(TraceRequest)}
    call = verified(trace_record("checkout"), tools)
    assert (call.origin.tool, call.origin.source) == ("query_traces", "checkout")
    assert (call.scope, call.values) == ({"operation": "checkout"}, {"spans": ["a"]})


def test_a_further_tools_source_must_be_a_name() -> None:
    """A source may appear in a fallback, so it can hold no prose, whoever typed it."""
    tools = {"query_traces": traces(LooseRequest)}
    content = stored(trace_record("redis is down"))
    assert read_call(RUN_ID, "call-1", content, tools) is Code.REQUEST_INVALID


def test_the_built_in_mapping_cannot_be_changed() -> None:
    """Nobody registers a tool behind the composition root's back."""
    with pytest.raises(TypeError):
        BUILT_IN["query_traces"] = traces(TraceRequest)  # type: ignore[index]
