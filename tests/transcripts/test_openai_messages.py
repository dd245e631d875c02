"""How a conversation is read: order, ids, tools, questions, answer, counts and times."""

import json
from datetime import timedelta

import pytest
from pydantic import ValidationError

from contracts.evidence import EvidenceStatus, Lifecycle
from tests.transcripts.chat import (
    ANSWER,
    BEGAN_AT,
    QUESTION,
    SYSTEM,
    Message,
    asks,
    call,
    part,
    read,
    read_one,
    result,
    stdout,
)
from worker.client.transcripts import AGENT_TOOLS, CommandTool, HelperTool


@pytest.mark.scenario("transcripts", "A plain investigation")
def test_a_plain_investigation_is_read_whole() -> None:
    """Question, one call, its result and the answer become one record and three counts."""
    transcript = read(SYSTEM, QUESTION, asks(call("c1")), result("c1"), ANSWER)
    assert transcript.query == "Why is checkout slow?"
    assert transcript.final_text == "The disk is full."
    assert (transcript.model_steps, transcript.evidence_calls, transcript.helper_calls) == (2, 1, 0)
    (record,) = transcript.records
    assert record.run_id == "run-1"
    assert record.session_id == "s-1"
    assert record.tool_name == "run_command"
    assert record.request == {"command": "df -h"}
    assert record.lifecycle is Lifecycle.READY
    assert record.evidence_status is EvidenceStatus.EVIDENCE_FOUND
    assert record.success is True
    assert json.loads(record.agent_result or "") == {
        "tool_call_id": "c1",
        "evidence_status": "EVIDENCE_FOUND",
        "tool_name": "run_command",
        "exit_code": 0,
        "stdout": "/dev/sda1 100%",
        "stderr": "",
    }


@pytest.mark.scenario("transcripts", "The same transcript twice")
def test_the_same_transcript_gives_the_same_records() -> None:
    """Reading is pure: nothing in a record comes from the clock or from chance."""
    messages = (QUESTION, asks(call("c1"), call("c2")), result("c2"), result("c1"), ANSWER)
    assert read(*messages) == read(*messages)


@pytest.mark.scenario("transcripts", "Parallel and late results")
def test_parallel_calls_keep_their_order_and_find_their_results() -> None:
    """Results may come in any order: the id binds them, the records stand as called."""
    transcript = read(
        QUESTION,
        asks(call("c1"), call("c2"), call("c3")),
        result("c3", "three"),
        result("c1", "one"),
        result("c2", "two"),
    )
    assert [record.tool_call_id for record in transcript.records] == ["c1", "c2", "c3"]
    assert [stdout(record) for record in transcript.records] == ["one", "two", "three"]


@pytest.mark.scenario("transcripts", "Parallel and late results")
def test_a_late_result_still_belongs_to_its_call() -> None:
    """A result may come after the model's next message."""
    transcript = read(QUESTION, asks(call("c1")), asks(call("c2")), result("c2"), result("c1", "1"))
    assert stdout(transcript.records[0]) == "1"


@pytest.mark.scenario("transcripts", "Failed calls")
def test_a_call_without_a_result_is_an_error_record() -> None:
    """A missing result is a record with its reason, never a gap."""
    (record,) = read(QUESTION, asks(call("c1")), ANSWER).records
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == "NO_RESULT"
    assert record.completed_at is None


@pytest.mark.parametrize("command", ["get pods", "kubectl get pods"])
def test_a_program_stands_in_front_of_its_arguments_once(command: str) -> None:
    """The tool ``kubectl`` is recorded as the command that ran."""
    arguments = json.dumps({"command": command, "timeout": 5})
    record = read_one(call("c1", "kubectl", arguments), "a pod")
    assert record.tool_name == "run_command"
    assert record.request == {"command": "kubectl get pods", "timeout": 5}


@pytest.mark.scenario("transcripts", "Helper calls")
def test_a_helper_call_makes_no_record() -> None:
    """A task list is no evidence: it is counted apart, even when its arguments are broken."""
    transcript = read(
        QUESTION, asks(call("c1", "TodoWrite", "{"), call("c2")), result("c1", "ok"), result("c2")
    )
    assert [record.tool_call_id for record in transcript.records] == ["c2"]
    assert (transcript.evidence_calls, transcript.helper_calls) == (1, 1)


def test_an_unknown_tool_is_recorded_under_its_own_name() -> None:
    """What nothing is known of cannot be projected: it is shown to people and never cited."""
    record = read_one(call("c1", "search_runbooks", '{"q": "disk"}'), "a page")
    assert record.tool_name == "search_runbooks"
    assert record.request == {"q": "disk"}
    assert record.output_preview == "a page"
    assert record.error_message == "TOOL_UNKNOWN"


def test_an_agent_team_can_name_its_own_tools() -> None:
    """The table of tools is an argument; the default one is left as it is."""
    tools = {**AGENT_TOOLS, "sh": CommandTool(), "think": HelperTool()}
    transcript = read(
        QUESTION, asks(call("c1", "sh"), call("c2", "think", "{}")), result("c1"), tools=tools
    )
    assert [record.tool_name for record in transcript.records] == ["run_command"]
    assert transcript.helper_calls == 1


def test_content_in_parts_is_joined_by_line_breaks() -> None:
    """Two numbers in two parts never become a third."""
    assert stdout(read_one(call("c1"), [part("12"), part("3")])) == "12\n3"


def test_parts_that_are_no_text_in_the_models_message_are_passed_over() -> None:
    """What the model thought is no evidence; its text is kept."""
    thinking = {"type": "thinking", "thinking": "hm"}
    transcript = read(QUESTION, {"role": "assistant", "content": [thinking, part("Done.")]})
    assert transcript.final_text == "Done."


@pytest.mark.parametrize(
    "tail",
    [
        (asks(call("c1")), result("c1")),
        (ANSWER, QUESTION),
        ({"role": "assistant", "content": " "},),
        ({"role": "assistant"},),
        (asks(call("c1"), content="Let me look."),),
        (),
    ],
)
def test_a_transcript_that_stops_early_has_no_final_text(tail: tuple[Message, ...]) -> None:
    """Only a last message of the model that makes no call and says something is its answer."""
    assert read(QUESTION, *tail).final_text is None


def test_the_first_question_is_the_query_and_all_are_kept() -> None:
    """Follow-up questions do not hide what the investigation was about."""
    transcript = read(
        {"role": "developer", "content": "x"},
        QUESTION,
        ANSWER,
        {"role": "user", "content": [part("And now?")]},
        {"role": "user", "content": "Thanks!"},
        ANSWER,
    )
    assert transcript.query == "Why is checkout slow?"
    assert transcript.questions == ("Why is checkout slow?", "And now?", "Thanks!")
    assert transcript.model_steps == 2


def test_times_keep_the_order_of_calls_and_results() -> None:
    """Each call and each result is one millisecond later than the one before it."""
    transcript = read(
        QUESTION, asks(call("c1"), call("c2")), result("c2"), result("c1"), asks(call("c3"))
    )
    ticks = [BEGAN_AT + timedelta(milliseconds=number) for number in range(5)]
    times = [(record.started_at, record.completed_at) for record in transcript.records]
    assert times == [(ticks[0], ticks[3]), (ticks[1], ticks[2]), (ticks[4], None)]
    assert all(record.duration_ms is None for record in transcript.records)


def test_a_time_without_an_offset_is_refused() -> None:
    """Which moment it means cannot be told."""
    with pytest.raises(ValueError, match="offset"):
        read(QUESTION, began_at=BEGAN_AT.replace(tzinfo=None))


def test_a_run_id_outside_the_contract_is_refused() -> None:
    """A run id becomes part of keys; the reader lets none through that could not."""
    with pytest.raises(ValidationError):
        read(QUESTION, asks(call("c1")), run_id="{run}")
