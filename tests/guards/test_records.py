"""One stored record: when it is a verified call, and which code says why not."""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import COMPLETED, EMPTY, FOUND, REQUESTS, RUN_ID, TOOLS, record, stored
from tests.strategies import broken_records as any_broken_record
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.tools import BUILT_IN
from worker.guards.violations import ViolationCode as Code


def read(document: dict[str, Any]) -> VerifiedCall | Code:
    return read_call(RUN_ID, "call-1", stored(document), BUILT_IN)


def result(tool: str, *, found: bool = True, **changes: Any) -> str:
    return json.dumps({**json.loads(record(tool, found=found)["agent_result"]), **changes})


@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_ready_record_of_this_run_is_a_verified_call(tool: str, found: bool) -> None:
    """Every built-in tool is read for a hit and for an empty result."""
    call = read(record(tool, found=found))
    assert isinstance(call, VerifiedCall)
    assert call.found is found
    assert call.origin.tool == tool
    assert call.tool_call_id == "call-1"
    assert (call.values is None) is not found
    assert call.size == len(stored(record(tool, found=found)))
    assert not call.truncated
    assert not call.deduplicated


def test_the_time_of_a_call_is_its_end_or_else_its_start() -> None:
    """An observation is dated when it was complete."""
    call = read(record())
    assert isinstance(call, VerifiedCall)
    assert call.origin.observed_at.isoformat() == COMPLETED.replace("Z", "+00:00")
    call = read(record(completed_at=None))
    assert isinstance(call, VerifiedCall)
    assert call.origin.observed_at.isoformat() == "2026-05-01T14:00:00+00:00"


@pytest.mark.scenario("evidence-check", "A call that this run never made")
def test_fabricated_or_cross_run_tool_call() -> None:
    """A call that was never recorded, or belongs to another run, is refused."""
    assert read_call(RUN_ID, "call-1", None, BUILT_IN) is Code.RECORD_MISSING
    assert read(record(run_id="run-2")) is Code.RECORD_FOREIGN_RUN
    assert read(record(run_id="run-1.")) is Code.RECORD_FOREIGN_RUN
    assert read(record(tool_call_id="call-2")) is Code.RECORD_ID_MISMATCH


@pytest.mark.scenario("evidence-check", "A call that came to nothing")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lifecycle": "PROJECTING"}, Code.RECORD_NOT_READY),
        ({"lifecycle": "ERROR"}, Code.RECORD_NOT_READY),
        ({"evidence_status": "ERROR"}, Code.STATUS_NOT_CITABLE),
        ({"evidence_status": None}, Code.STATUS_NOT_CITABLE),
        ({"agent_result": None}, Code.RESULT_EMPTY),
        ({"agent_result": ""}, Code.RESULT_EMPTY),
    ],
)
def test_failed_or_incomplete_invocation(changes: dict[str, Any], code: Code) -> None:
    """Only a READY record with a result and a citable status counts."""
    assert read(record(**changes)) is code


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"null",
        b"[]",
        b"\xff",
        b"{}",
        b"NaN",
        stored(record())[:-1],
        stored(record()) + b"{}",
        stored(record()).replace(b'"run_id"', b'"run_id": "run-1", "run_id"', 1),
        stored(record()).replace(b'"session-1"', b'"\\ud800"'),
        stored(record(lifecycle="DONE")),
        stored(record(truncated="false")),
        stored(record(truncated=1)),
        stored(record(started_at="yesterday")),
        stored(record(started_at="2026-05-01T14:00:00")),
        stored(record(request=[])),
        b"[" * 100_000,
        b"9" * 5_000,
    ],
)
def test_a_record_that_is_not_a_strict_record_is_unreadable(content: bytes) -> None:
    """Leniency would let two readers see two records."""
    assert read_call(RUN_ID, "call-1", content, BUILT_IN) is Code.RECORD_UNREADABLE


def test_unknown_fields_of_a_newer_recorder_are_passed_over() -> None:
    """A record may say more than this version knows."""
    assert isinstance(read(record(raw_response="anything", region="eu")), VerifiedCall)


@pytest.mark.scenario("evidence-check", "A result at odds with its record")
@pytest.mark.parametrize("name", ["query_traces", "", "RUN_COMMAND", "run_command "])
def test_an_unknown_tool_fails_closed(name: str) -> None:
    """Nobody can say what its result means."""
    assert read(record(tool_name=name)) is Code.TOOL_UNKNOWN
    assert read_call(RUN_ID, "call-1", stored(record()), {}) is Code.TOOL_UNKNOWN


@pytest.mark.parametrize(
    ("tool", "changes"),
    [
        ("run_command", {"command": None}),
        ("run_command", {"command": ""}),
        ("run_command", {"command": " \u200b"}),
        ("run_command", {"host": "not a name"}),
        ("run_command", {"host": "web-1\n"}),
        ("query_mysql", {"sql": "\n"}),
        ("query_mysql", {"data_source": ""}),
        ("query_mysql", {"params": "x"}),
        ("query_metrics", {"query": ""}),
        ("query_metrics", {"start": "2026-05-01T14:00:00.001Z"}),
        ("query_metrics", {"end": "2026-05-01T13:00:00"}),
        ("query_logs", {"start": "2026-05-01T14:00:00.001Z"}),
        ("query_logs", {"end": None}),
        ("query_logs", {"source": None}),
        ("query_logs", {"level": 5}),
        ("lookup_knowledge", {"query": "\t"}),
    ],
)
@pytest.mark.parametrize("found", [True, False])
def test_a_request_without_a_scope_is_refused(
    tool: str, changes: dict[str, Any], found: bool
) -> None:
    """Where and for what a call looked must be known before its result means anything."""
    request = {**REQUESTS[tool], **changes}
    assert read(record(tool, found=found, request=request)) is Code.REQUEST_INVALID


def test_a_window_of_one_moment_and_an_empty_log_query_are_scopes() -> None:
    """An empty query asks for everything in the window."""
    for tool in ("query_logs", "query_metrics"):
        request = {**REQUESTS[tool], "start": "2026-05-01T14:00:00Z"}
        assert isinstance(read(record(tool, request=request)), VerifiedCall)
    request = {**REQUESTS["query_logs"], "query": "", "level": None}
    assert isinstance(read(record("query_logs", request=request)), VerifiedCall)


@pytest.mark.scenario("evidence-check", "A result at odds with its record")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tool_call_id": "call-2"}, Code.PROJECTION_MISMATCH),
        ({"tool_call_id": None}, Code.PROJECTION_MISMATCH),
        ({"tool_name": "query_traces"}, Code.PROJECTION_MISMATCH),
        ({"evidence_status": "NO_EVIDENCE"}, Code.PROJECTION_MISMATCH),
        ({"evidence_status": "ERROR"}, Code.PROJECTION_MISMATCH),
        ({"evidence_status": ["EVIDENCE_FOUND"]}, Code.PROJECTION_MISMATCH),
        ({"note": "one field more"}, Code.PROJECTION_INVALID),
    ],
)
def test_projection_contract_mismatch(tool: str, changes: dict[str, Any], code: Code) -> None:
    """What the result says of itself must be what its record says."""
    assert read(record(tool, agent_result=result(tool, **changes))) is code


@pytest.mark.scenario("evidence-check", "A result at odds with its record")
@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        '"text"',
        "null",
        "```json\n{}\n```",
        result("run_command") + " {}",
        result("run_command").replace('"stdout"', '"stdout": "x", "stdout"'),
        result("run_command", exit_code="3"),
        result("run_command", exit_code=True),
        result("run_command", exit_code=3.0),
        result("run_command", stdout=None),
        result("run_command").replace("inactive", "\\ud800"),
        result("run_command").replace(": 3", ": NaN"),
        result("run_command").replace(": 3", ": 1e999"),
    ],
)
def test_a_result_that_is_not_strictly_its_projection_is_invalid(text: str) -> None:
    """Nothing is guessed, coerced or cut."""
    assert read(record(agent_result=text)) is Code.PROJECTION_INVALID


LOG = FOUND["query_logs"]
SQL = FOUND["query_mysql"]
DOC = FOUND["lookup_knowledge"]["documents"][0]
SERIES = FOUND["query_metrics"]["series"][0]
PATTERN = {"pattern": "x", "count": 1}

# tool, content, what the content bears out: found, empty, or neither
CONTENTS: list[tuple[str, dict[str, Any], bool | None]] = [
    ("lookup_knowledge", {"documents": [DOC, DOC]}, True),
    ("lookup_knowledge", {"documents": [DOC, {**DOC, "excerpt": " "}]}, None),
    ("lookup_knowledge", {"documents": [{**DOC, "excerpt": ""}]}, None),
    ("lookup_knowledge", {"documents": []}, False),
    ("query_logs", {"total_matches": 1, "patterns": [PATTERN]}, True),
    ("query_logs", {"total_matches": 1, "events": LOG["events"]}, True),
    ("query_logs", {"total_matches": 1, "events": LOG["events"] * 2}, None),
    ("query_logs", {"total_matches": 2, "events": LOG["events"] * 2}, True),
    ("query_logs", {"total_matches": 1, "patterns": [{**PATTERN, "count": 2}]}, None),
    ("query_logs", {"total_matches": 2, "patterns": [{**PATTERN, "count": 2}]}, True),
    ("query_logs", {"total_matches": 1}, None),
    ("query_logs", {"total_matches": 0, "events": LOG["events"]}, None),
    ("query_logs", {"total_matches": 0, "patterns": [PATTERN]}, None),
    ("query_logs", {"total_matches": 0}, False),
    ("query_metrics", {"series": [{**SERIES, "points": []}, SERIES]}, True),
    ("query_metrics", {"series": [{**SERIES, "points": []}]}, False),
    ("query_metrics", {"series": []}, False),
    ("query_mysql", {**SQL, "row_count": 2}, True),
    ("query_mysql", {**SQL, "row_count": 3}, True),
    ("query_mysql", {**SQL, "row_count": 1}, None),
    ("query_mysql", {**SQL, "rows": []}, None),
    ("query_mysql", {**SQL, "rows": [["DEAD"], []]}, None),
    ("query_mysql", {**SQL, "rows": [["DEAD"], ["DEAD", 1]]}, None),
    ("query_mysql", {"columns": [], "rows": [[]], "row_count": 1}, None),
    ("query_mysql", {**SQL, "row_count": 0}, None),
    ("query_mysql", {"columns": [], "rows": [], "row_count": 0}, False),
    ("run_command", {"exit_code": 0, "stdout": "up"}, True),
    ("run_command", {"exit_code": 2, "stdout": "up", "stderr": "warning"}, True),
    ("run_command", {"exit_code": 1, "stdout": "", "stderr": "no such file"}, True),
    ("run_command", {"exit_code": -9, "stdout": "\n", "stderr": "Killed"}, True),
    ("run_command", {"exit_code": 0, "stdout": "", "stderr": "warning"}, False),
    ("run_command", {"exit_code": 0, "stdout": " \n\u200b"}, False),
    ("run_command", {"exit_code": 1, "stdout": "", "stderr": " "}, False),
    ("run_command", {"exit_code": 2, "stdout": ""}, None),
    ("run_command", {"exit_code": -1, "stdout": ""}, None),
    ("run_command", {"exit_code": 137, "stdout": "\n", "stderr": "\n"}, None),
]


@pytest.mark.scenario("evidence-check", "A result at odds with its record")
@pytest.mark.parametrize("claimed", [True, False])
@pytest.mark.parametrize(("tool", "content", "borne_out"), CONTENTS)
def test_a_status_must_be_borne_out_by_the_content(
    tool: str, content: dict[str, Any], borne_out: bool | None, claimed: bool
) -> None:
    """A hit without content, or an empty result with some, is inconsistent."""
    call = read(record(tool, found=claimed, content=content))
    if borne_out is claimed:
        assert isinstance(call, VerifiedCall)
        assert call.found is claimed
    else:
        assert call is Code.STATUS_INCONSISTENT


@pytest.mark.scenario("evidence-check", "A result that repeats its request")
@pytest.mark.parametrize(
    ("tool", "request_changes", "content"),
    [
        ("run_command", {"command": "echo inactive"}, FOUND["run_command"]),
        (
            "run_command",
            {"command": "echo inactive >&2; exit 3"},
            {"exit_code": 3, "stdout": "", "stderr": "inactive"},
        ),
        ("query_mysql", {"sql": "SELECT 'DEAD' AS state"}, SQL),
        ("query_mysql", {"sql": "SELECT ? AS state", "params": ["DEAD"]}, SQL),
        ("query_metrics", {"query": "vector(4)"}, FOUND["query_metrics"]),
    ],
)
def test_a_result_that_repeats_its_request_is_self_authored(
    tool: str, request_changes: dict[str, Any], content: dict[str, Any]
) -> None:
    """An agent cannot cite itself by way of a tool."""
    request = {**REQUESTS[tool], **request_changes}
    assert read(record(tool, request=request, content=content)) is Code.EVIDENCE_SELF_AUTHORED


def test_output_on_either_stream_that_the_command_did_not_say_is_a_look() -> None:
    """Both streams are compared."""
    request = {"command": "echo inactive; probe"}
    content = {"exit_code": 0, "stdout": "inactive", "stderr": "refused"}
    assert isinstance(read(record(request=request, content=content)), VerifiedCall)


def test_an_empty_result_is_never_self_authored() -> None:
    """Nothing was said, so nothing was repeated."""
    for tool, changes in (
        ("run_command", {"command": "true"}),
        ("query_mysql", {"sql": "SELECT 'x' WHERE 1 = 0"}),
        ("query_metrics", {"query": "vector(1) > 2"}),
    ):
        request = {**REQUESTS[tool], **changes}
        assert isinstance(
            read(record(tool, found=False, request=request, content=EMPTY[tool])), VerifiedCall
        )


def test_a_query_that_repeats_its_passage_is_still_a_look() -> None:
    """Stores of passages and logs answer with their own words."""
    request = {"query": DOC["excerpt"]}
    assert isinstance(read(record("lookup_knowledge", request=request)), VerifiedCall)
    request = {**REQUESTS["query_logs"], "query": "upstream db timed out"}
    assert isinstance(read(record("query_logs", request=request)), VerifiedCall)


@given(any_broken_record())
def test_no_record_ever_raises(content: bytes | None) -> None:
    """Whatever is stored is a verified call or a code."""
    assert isinstance(read_call(RUN_ID, "call-1", content, BUILT_IN), VerifiedCall | Code)
