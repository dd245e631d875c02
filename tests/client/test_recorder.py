"""The recorder over a store in memory: every call becomes a record of what it was."""

import asyncio
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.evidence import EvidenceStatus, Lifecycle, OutputState, Retrieval
from tests.client.recording import COMMAND, REQUESTS, RUN, SESSION, recorder_of, result_of, verified
from tests.fakes.record_store import FakeRecordStore
from worker.client import (
    Document,
    Failure,
    Finding,
    LogLine,
    Series,
    command_output,
    knowledge_documents,
    log_matches,
    metric_series,
    mysql_rows,
)
from worker.client.recorder_findings import Outcome
from worker.guards.calls import VerifiedCall
from worker.guards.violations import ViolationCode

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

HITS: dict[str, Finding] = {
    "run_command": command_output(3, "checkout.service failed\n"),
    "query_logs": log_matches([LogLine("12:00:01", "upstream timeout", "ERROR")]),
    "query_metrics": metric_series([Series({"job": "checkout"}, [(NOON, 0.0)])]),
    "query_mysql": mysql_rows(["id"], [(7,)]),
    "lookup_knowledge": knowledge_documents([Document("d1", "Timeouts", "Check the pool.")]),
}
MISSES: dict[str, Finding] = {
    "run_command": command_output(1, "", ""),
    "query_logs": log_matches([]),
    "query_metrics": metric_series([Series({"job": "checkout"}, [])]),
    "query_mysql": mysql_rows(["id"], []),
    "lookup_knowledge": knowledge_documents([]),
}
each_tool = pytest.mark.parametrize("tool", HITS)


@pytest.fixture
def store() -> FakeRecordStore:
    return FakeRecordStore()


@pytest.mark.scenario("evidence-recording", "Common fields of every call")
@pytest.mark.scenario("evidence-recording", "The recorder without a server")
@each_tool
@pytest.mark.parametrize("hits", [True, False])
def test_a_completed_call_leaves_all_common_fields(
    store: FakeRecordStore, tool: str, hits: bool
) -> None:
    """Session, tool, request, duration, success and a preview or an explicit absence."""
    finding = (HITS if hits else MISSES)[tool]
    with recorder_of(store).call(tool, REQUESTS[tool], tool_call_id="c1") as call:
        call.ended(finding)
    record = store.one()
    assert call.recorded
    assert (record.run_id, record.session_id, record.tool_name) == (RUN, SESSION, tool)
    assert record.request == REQUESTS[tool]
    assert record.duration_ms is not None
    assert record.completed_at is not None
    assert record.success is True
    assert record.error_message is None
    assert record.output_state is (OutputState.PREVIEW if hits else OutputState.NO_OUTPUT)
    assert bool(record.output_preview) == hits
    found = EvidenceStatus.EVIDENCE_FOUND if hits else EvidenceStatus.NO_EVIDENCE
    assert record.evidence_status is found


@each_tool
@pytest.mark.parametrize("hits", [True, False])
def test_what_is_recorded_can_be_cited(store: FakeRecordStore, tool: str, hits: bool) -> None:
    """The evidence check reads each projection, and finds what the tool found."""
    with recorder_of(store).call(tool, REQUESTS[tool]) as call:
        call.ended((HITS if hits else MISSES)[tool])
    checked = verified(store.one())
    assert isinstance(checked, VerifiedCall)
    assert checked.found is hits


@pytest.mark.scenario("evidence-recording", "A record's life")
def test_a_record_is_projecting_before_it_is_final(store: FakeRecordStore) -> None:
    """A process that dies inside the tool leaves a record that nobody can cite."""
    recorder = recorder_of(store)
    with recorder.call("run_command", COMMAND, tool_call_id="c1") as call:
        assert store.one().lifecycle is Lifecycle.PROJECTING
        assert verified(store.one()) is ViolationCode.RECORD_NOT_READY
        call.ended(HITS["run_command"])
    assert [record.lifecycle for record in store.written] == ["PROJECTING", "READY"]
    assert recorder.progress().completed_tool_call_ids == ("c1",)


@pytest.mark.scenario("evidence-recording", "A record's life")
def test_a_final_record_stands(store: FakeRecordStore, caplog: pytest.LogCaptureFixture) -> None:
    """A second call under the same id changes nothing; its tool runs all the same."""
    recorder = recorder_of(store)
    for output in ("first", "second"):
        with recorder.call("run_command", COMMAND, tool_call_id="c1") as call:
            call.ended(command_output(0, output))
    assert result_of(store.one())["stdout"] == "first"
    assert not call.recorded
    assert "RECORDER_CALL_ID_REUSED" in caplog.text


@pytest.mark.scenario("evidence-recording", "Retrieval of knowledge")
def test_a_lookup_keeps_how_it_searched(store: FakeRecordStore) -> None:
    """Layer, counts, relevance and details are in the record, through the same contract."""
    retrieval = Retrieval(
        layer="L1", l0_count=2, l1_count=5, relevance_level="HIGH", details={"k": [0.91]}
    )
    with recorder_of(store).call("lookup_knowledge", REQUESTS["lookup_knowledge"]) as call:
        call.ended(knowledge_documents([Document("d", "T", "Text")], retrieval=retrieval))
    assert store.one().retrieval == retrieval
    assert not store.one().deduplicated


@pytest.mark.scenario("evidence-recording", "A deduplicated lookup")
def test_a_deduplicated_lookup_tells_why(store: FakeRecordStore) -> None:
    """It completed, holds its reason, and cannot be cited as a look at nothing."""
    retrieval = Retrieval(layer="L0", dedup_reason="shown in this session", relevance_level="HIGH")
    with recorder_of(store).call("lookup_knowledge", REQUESTS["lookup_knowledge"]) as call:
        call.ended(knowledge_documents([], retrieval=retrieval))
    record = store.one()
    assert record.deduplicated
    assert record.retrieval is not None
    assert record.retrieval.dedup_reason == "shown in this session"
    assert record.evidence_status is EvidenceStatus.NO_EVIDENCE


@pytest.mark.scenario("evidence-recording", "Failures are records")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("disk on fire"), "TOOL_FAILED: RuntimeError disk on fire"),
        (TimeoutError("10 s"), "TOOL_TIMED_OUT: TimeoutError 10 s"),
        (subprocess.TimeoutExpired("df", 3), "TOOL_TIMED_OUT: TimeoutExpired"),
        (asyncio.CancelledError(), "TOOL_CANCELLED: CancelledError"),
        (KeyboardInterrupt(), "TOOL_INTERRUPTED: KeyboardInterrupt"),
        (SystemExit(3), "TOOL_INTERRUPTED: SystemExit 3"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_tool_that_raises_is_recorded_and_raises(
    store: FakeRecordStore, error: BaseException, code: str
) -> None:
    """The very exception reaches the caller, and the record tells what it was."""
    with (
        pytest.raises(type(error)) as raised,
        recorder_of(store).call("run_command", COMMAND),
    ):
        raise error
    assert raised.value is error
    record = store.one()
    assert record.lifecycle is Lifecycle.ERROR
    assert record.evidence_status is EvidenceStatus.ERROR
    assert record.success is False
    assert record.output_state is OutputState.NO_OUTPUT
    assert str(record.error_message).startswith(code)
    assert verified(record) is ViolationCode.RECORD_NOT_READY


@pytest.mark.scenario("evidence-recording", "Failures are records")
def test_an_error_that_a_tool_returns_is_a_failure(store: FakeRecordStore) -> None:
    """A tool need not raise to have failed."""
    with recorder_of(store).call("query_logs", REQUESTS["query_logs"]) as call:
        call.ended(Failure("the store answered 503", shown="503 Service Unavailable"))
    record = store.one()
    assert record.success is False
    assert record.error_message == "TOOL_FAILED: the store answered 503"
    assert record.output_preview == "503 Service Unavailable"


@pytest.mark.scenario("evidence-recording", "No usable evidence")
@each_tool
def test_no_evidence_is_neither_hit_nor_failure(store: FakeRecordStore, tool: str) -> None:
    """The call completed, and its status says that nothing was found."""
    with recorder_of(store).call(tool, REQUESTS[tool]) as call:
        call.ended(MISSES[tool])
    record = store.one()
    assert record.lifecycle is Lifecycle.READY
    assert record.evidence_status is EvidenceStatus.NO_EVIDENCE
    assert record.error_message is None
    assert record.completed_at is not None


@pytest.mark.scenario("evidence-recording", "What cannot be projected")
@pytest.mark.parametrize(
    ("tool", "request_", "outcome", "code"),
    [
        ("run_command", COMMAND, None, "NOTHING_REPORTED"),
        ("run_command", COMMAND, Finding({"stdout": 5}), "PROJECTION_INVALID"),
        ("run_command", COMMAND, command_output(2, ""), "PROJECTION_CONTRADICTORY"),
        ("run_command", COMMAND, Finding({"x": object()}), "PROJECTION_INVALID"),
        ("query_logs", COMMAND, MISSES["query_logs"], "REQUEST_INVALID"),
        ("run_command", {"command": " "}, HITS["run_command"], "REQUEST_INVALID"),
        ("run_command", ["df"], HITS["run_command"], "REQUEST_INVALID"),
        ("run_command", {"command": object()}, HITS["run_command"], "REQUEST_INVALID"),
        ("run_command", {"command": "a" * 40_000}, HITS["run_command"], "REQUEST_TOO_LARGE"),
        ("query_traces", COMMAND, HITS["run_command"], "TOOL_UNKNOWN"),
        (
            "run_command",
            COMMAND,
            Finding({"exit_code": 0, "stdout": "x" * 300_000}),
            "RESULT_TOO_LARGE",
        ),
    ],
)
def test_what_cannot_be_projected_is_an_error_with_its_reason(
    store: FakeRecordStore, tool: str, request_: Any, outcome: Outcome | None, code: str
) -> None:
    """A result that the guard could not read is told now, not when a draft is refused."""
    with recorder_of(store).call(tool, request_) as call:
        if outcome is not None:
            call.ended(outcome)
    record = store.one()
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == code


def test_a_decorated_tool_is_the_same_tool(store: FakeRecordStore) -> None:
    """It returns the very object, keeps its name, and its call is recorded under the given id."""
    recorder, answer = recorder_of(store), object()

    @recorder.tool("run_command", request=lambda c: {"command": c}, outcome=lambda _: finding)
    def run(command: str) -> object:
        """Run it."""
        return answer

    finding = command_output(0, "all is well here")
    with recorder.answering("model-call-7"):
        assert run("uptime") is answer
    run("uptime")
    assert run.__name__ == "run"
    first, second = store.records
    assert first.tool_call_id == "model-call-7"
    assert second.tool_call_id.startswith("call-")
    assert first.request == {"command": "uptime"}


@pytest.mark.parametrize("broken", ["request", "outcome"])
def test_broken_glue_loses_no_result(store: FakeRecordStore, broken: str) -> None:
    """What a team wrote around its tool may fail; the tool's own result comes back."""

    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    glue: dict[str, Any] = {
        "request": lambda: COMMAND,
        "outcome": lambda _: HITS["run_command"],
        broken: fail,
    }
    tool = recorder_of(store).tool("run_command", **glue)(lambda: "the result")
    assert tool() == "the result"
    code = {"request": "REQUEST_INVALID", "outcome": "PROJECTION_FAILED"}[broken]
    assert store.one().error_message == code


def test_a_generator_is_refused(store: FakeRecordStore) -> None:
    """A generator has no one result, so decorating it is told at once."""
    decorate = recorder_of(store).tool(
        "run_command", request=dict, outcome=lambda _: HITS["run_command"]
    )

    async def many() -> Any:
        yield 1

    def some() -> Any:
        yield 1

    for generator in (many, some):
        with pytest.raises(TypeError):
            decorate(generator)


@pytest.mark.parametrize("call_id", ["", "c" * 300, 7])
def test_an_unrecordable_id_loses_no_result(store: FakeRecordStore, call_id: Any) -> None:
    """A call that cannot be recorded is made all the same; an empty id is made up."""
    with recorder_of(store).call("run_command", COMMAND, tool_call_id=call_id) as call:
        call.ended(HITS["run_command"])
    assert call.recorded == (call_id == "")


def test_a_run_id_outside_the_contract_is_told_at_once(store: FakeRecordStore) -> None:
    """Nothing could ever be released under it."""
    with pytest.raises(ValueError, match="pattern"):
        recorder_of(store, run_id="a b")


@pytest.mark.scenario("evidence-recording", "Steps and calls apart")
def test_model_steps_helpers_and_evidence_calls_are_counted_apart(store: FakeRecordStore) -> None:
    """Neither inflates the other."""
    recorder = recorder_of(store)
    recorder.model_step()
    recorder.helper_call()
    recorder.model_step(2)
    with recorder.call("run_command", COMMAND) as call:
        call.ended(HITS["run_command"])
    assert store.counts == {(SESSION, "model_steps"): 3, (SESSION, "helper_calls"): 1}
    assert len(store.records) == 1
