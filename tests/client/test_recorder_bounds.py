"""Records are bounded, valid UTF-8, and say what was cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import EvidenceStatus, InvocationRecord, Retrieval
from tests.client.recording import COMMAND, REQUESTS, recorder_of, result_of, verified
from tests.fakes.record_store import FakeRecordStore
from worker.client import (
    Document,
    LogLine,
    command_output,
    knowledge_documents,
    log_matches,
    mysql_rows,
)
from worker.client.recorder_findings import MOST_OUTPUT, Finding
from worker.guards.calls import VerifiedCall
from worker.guards.violations import ViolationCode
from worker.trace.lifecycle import MOST_ERROR, MOST_PREVIEW, MOST_RESULT

LONG = "ä€🙂 word " * 20_000
LARGE: dict[str, Finding] = {
    "run_command": command_output(0, LONG, LONG),
    "query_logs": log_matches([LogLine("12:00", LONG)] * 500, patterns={LONG: 3}),
    "query_mysql": mysql_rows(["id", "text"], [(number, LONG) for number in range(500)]),
    "lookup_knowledge": knowledge_documents([Document("d", "Title", LONG)] * 500),
}


def record_of(tool: str, finding: Finding, request: Any = None) -> InvocationRecord:
    store = FakeRecordStore()
    with recorder_of(store).call(tool, request or REQUESTS[tool]) as call:
        call.ended(finding)
    return store.one()


@pytest.mark.scenario("evidence-recording", "Large results")
@pytest.mark.parametrize("tool", LARGE)
def test_a_large_result_is_cut_marked_and_citable(tool: str) -> None:
    """No bound is passed, nothing is broken in the middle, and the guard can read it."""
    record = record_of(tool, LARGE[tool])
    assert record.truncated
    assert record.preview_truncated
    assert len(str(record.agent_result).encode()) <= MOST_RESULT
    assert len(str(record.output_preview).encode()) <= MOST_PREVIEW
    assert "\ufffd" not in str(record.agent_result)
    checked = verified(record)
    assert isinstance(checked, VerifiedCall)
    assert checked.found


def test_a_large_error_message_is_cut() -> None:
    """A tool that dumps pages into its exception keeps only their beginning."""
    store = FakeRecordStore()
    with pytest.raises(RuntimeError), recorder_of(store).call("run_command", COMMAND):
        raise RuntimeError(LONG)
    assert len(str(store.one().error_message).encode()) <= MOST_ERROR


@pytest.mark.parametrize("detail", [LONG, "\ud800"], ids=["long", "no-unicode"])
def test_unfit_retrieval_details_are_left_out(detail: str) -> None:
    """The call is recorded without them, and says so."""
    retrieval = Retrieval(layer="L1", details={"text": detail})
    record = record_of("lookup_knowledge", knowledge_documents([], retrieval=retrieval))
    assert record.retrieval is not None
    assert record.retrieval.layer == "L1"
    assert record.retrieval.details == {"left_out": True}


def test_a_cut_look_that_shows_nothing_is_no_negative_observation() -> None:
    """The mark is the guard's: a look that did not see everything excludes nothing."""
    record = record_of("query_logs", log_matches([], truncated=True))
    checked = verified(record)
    assert isinstance(checked, VerifiedCall)
    assert checked.truncated
    assert not checked.found


@given(st.text(), st.integers(0, 50), st.binary(max_size=200))
def test_any_output_becomes_a_record(text: str, exit_code: int, raw: bytes) -> None:
    """Whatever a command prints, its record can be written and read."""
    for out in (text, raw):
        record = record_of("run_command", command_output(exit_code, out, text))
        again = InvocationRecord.model_validate_json(record.model_dump_json())
        assert again == record
        assert verified(record) is not ViolationCode.RECORD_UNREADABLE
        if record.agent_result is not None:
            assert json.loads(record.agent_result)["exit_code"] == exit_code


@given(st.text(alphabet="ab€🙂\ud800", max_size=40))
def test_output_is_cut_between_characters(text: str) -> None:
    """The recorded output is the beginning of the output, to the last whole character."""
    whole = text + "x" * MOST_OUTPUT + "€€€€"
    finding = command_output(0, whole)
    kept = finding.fields["stdout"]
    assert finding.truncated
    assert MOST_OUTPUT - 3 <= len(kept.encode()) <= MOST_OUTPUT
    cleaned = whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert cleaned.startswith(kept)


@pytest.mark.scenario("evidence-recording", "Secrets in parameters")
def test_a_secret_in_a_parameter_is_nowhere_in_the_record() -> None:
    """Neither request, result, preview nor error holds what was masked."""
    request = {"command": "mysql --password=hunter2 -e 'SELECT 1'", "host": "db-1"}
    record = record_of(
        "run_command", command_output(1, "using hunter2", "denied: hunter2"), request
    )
    assert "hunter2" not in record.model_dump_json()
    assert record.request["command"] == "mysql --password=*** -e 'SELECT 1'"
    assert result_of(record)["stdout"] == "using ***"

    store = FakeRecordStore()
    with pytest.raises(RuntimeError), recorder_of(store).call("run_command", request):
        raise RuntimeError("cannot run with hunter2 and token=abcdefgh")
    assert "hunter2" not in store.one().model_dump_json()
    assert "abcdefgh" not in store.one().model_dump_json()


@pytest.mark.scenario("evidence-recording", "A mask is no hiding place")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo token=disk-is-full-on-db-1", "token=disk-is-full-on-db-1"),
        ("echo password=97%", "password=97%"),
        ("echo 'secret: payments' down", "secret: payments down"),
        ("printf https://u:outage@h", "https://u:outage@h"),
    ],
)
def test_a_masked_word_is_still_the_agents_own(command: str, output: str) -> None:
    """What a command prints of itself stays self-authored though its own words are masked."""
    record = record_of("run_command", command_output(0, output), {"command": command})
    assert "***" in str(record.request["command"])
    assert verified(record) is ViolationCode.EVIDENCE_SELF_AUTHORED


@pytest.mark.scenario("evidence-recording", "Old records")
def test_a_record_of_before_is_read_as_before() -> None:
    """Fields that came later are absent in old records, and the guard asks for none of them."""
    new = {"output_state", "output_preview", "preview_truncated", "retrieval"}
    record = record_of("run_command", command_output(0, "disk is 97% full"))
    old = json.loads(record.model_dump_json(exclude=new))
    assert not new & old.keys()
    again = InvocationRecord.model_validate_json(json.dumps(old))
    assert again.output_state is None
    assert isinstance(verified(again), VerifiedCall)
    assert again.evidence_status is EvidenceStatus.EVIDENCE_FOUND
