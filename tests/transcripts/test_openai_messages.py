"""Every rule of the reader of OpenAI chat-completions messages, on small transcripts."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle, RunCommandResult
from worker.client.transcripts import (
    AGENT_TOOLS,
    CommandTool,
    HelperTool,
    Refusal,
    Transcript,
    TranscriptError,
    read_openai_messages,
)

BEGAN_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONE = "\ud800"
Message = dict[str, Any]

SYSTEM: Message = {"role": "system", "content": "You look into incidents."}
QUESTION: Message = {"role": "user", "content": "Why is checkout slow?"}
ANSWER: Message = {"role": "assistant", "content": "The disk is full."}


def call(call_id: object, name: object = "run_bash_command", arguments: object = None) -> Message:
    if arguments is None:
        arguments = json.dumps({"command": "df -h"})
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def asks(*calls: object, **more: object) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(call_id: object, content: object = "/dev/sda1 100%", **more: object) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def read(*messages: object, **more: Any) -> Transcript:
    settings = {"run_id": "run-1", "session_id": "s-1", "began_at": BEGAN_AT, **more}
    return read_openai_messages(list(messages), **settings)


def read_one(the_call: Message, content: object, **more: Any) -> InvocationRecord:
    (record,) = read(QUESTION, asks(the_call), result(the_call["id"], content), **more).records
    return record


def stdout(record: InvocationRecord) -> str:
    assert record.agent_result is not None
    return RunCommandResult.model_validate_json(record.agent_result).stdout


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


def test_the_same_transcript_gives_the_same_records() -> None:
    """Reading is pure: nothing in a record comes from the clock or from chance."""
    messages = (QUESTION, asks(call("c1"), call("c2")), result("c2"), result("c1"), ANSWER)
    assert read(*messages) == read(*messages)


@pytest.mark.parametrize("blank", ["", "  \n\t", "\u200b", []])
def test_a_blank_result_is_no_evidence(blank: object) -> None:
    """A completed call that printed nothing is neither a hit nor a failure."""
    record = read_one(call("c1"), blank)
    assert record.lifecycle is Lifecycle.READY
    assert record.evidence_status is EvidenceStatus.NO_EVIDENCE
    projection = RunCommandResult.model_validate_json(record.agent_result or "")
    assert projection.evidence_status is EvidenceStatus.NO_EVIDENCE
    assert projection.exit_code == 0


@pytest.mark.parametrize(
    "text",
    [
        "Tool call rejected for security reasons: no",
        "The tool call result is too large to return: 5 tokens.\nTry again.",
        "Error executing tool: boom",
        "Command timed out after 60 seconds",
        "Error: connection refused",
        "\nerror: You must be logged in to the server",
        'Error from server (NotFound): pods "x" not found',
        "Unable to connect to the server: dial tcp",
        "bash: line 1: kubetcl: command not found",
        "/bin/sh: 1: foo: not found",
    ],
)
def test_a_result_that_reports_a_failure_is_an_error_record(text: str) -> None:
    """Words of tool layers, shells and kubectl at the start of a result mark a failed call."""
    record = read_one(call("c1"), text)
    assert record.lifecycle is Lifecycle.ERROR
    assert record.evidence_status is EvidenceStatus.ERROR
    assert record.success is False
    assert record.agent_result is None
    assert record.error_message == text.strip().splitlines()[0]
    assert record.completed_at is not None


@pytest.mark.parametrize(
    "text", ['{"error": "no such index"}', '{"isError": true}', ' {"is_error": true, "x": 1}']
)
def test_an_error_object_is_an_error_record(text: str) -> None:
    """A result that is a JSON object with an error in it is a failed call."""
    assert read_one(call("c1"), text).evidence_status is EvidenceStatus.ERROR


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01 12:00:00 Error: the pool is exhausted",
        "ERROR:  deadlock detected",
        'Exception in thread "main" java.lang.StackOverflowError',
        '{"error": null, "items": []}',
        '{"error": "cut off',
        "errors: 0",
    ],
)
def test_an_output_that_only_speaks_of_errors_is_evidence(text: str) -> None:
    """An error that the tool found in what it looked at is a finding, not a failed call."""
    record = read_one(call("c1"), text)
    assert record.evidence_status is EvidenceStatus.EVIDENCE_FOUND
    assert stdout(record) == text


def test_a_long_failure_gives_a_bounded_reason() -> None:
    """The reason of a failure is cut at 200 characters."""
    record = read_one(call("c1"), "Error: " + "x" * 1000)
    assert record.error_message is not None
    assert len(record.error_message) == 200


def header(request: dict[str, object]) -> str:
    return (
        f"Params used for the tool call: {json.dumps(request)}."
        " The tool call output follows on the next line.\n"
    )


@pytest.mark.parametrize(
    ("content", "output"),
    [
        (header({"command": "df -h"}) + "df -h\n/dev/sda1", "/dev/sda1"),
        (header({"command": "df -h"}) + "/dev/sda1", "/dev/sda1"),
        (header({"command": "df -h"}) + "'df' \"-h\"\n/dev/sda1", "/dev/sda1"),
        ("df -h\n/dev/sda1", "/dev/sda1"),
        ("df -h /mnt\n/dev/sda1", "df -h /mnt\n/dev/sda1"),
        ("df 'h\n/dev/sda1", "df 'h\n/dev/sda1"),
        (header({"command": "ls"}) + "x", header({"command": "ls"}) + "x"),
        ("df -h\ndf -h\n", "df -h\n"),
    ],
)
def test_lines_that_repeat_the_request_are_no_output(content: str, output: str) -> None:
    """A header with the call's own parameters and the command's echo are taken off, once."""
    assert stdout(read_one(call("c1"), content)) == output


@pytest.mark.parametrize("content", [header({"command": "df -h"}) + "df -h\n", "df -h"])
def test_a_result_that_only_repeats_the_request_is_no_evidence(content: str) -> None:
    """When nothing stands behind the echo, the tool found nothing."""
    assert read_one(call("c1"), content).evidence_status is EvidenceStatus.NO_EVIDENCE


def test_a_rejection_behind_a_header_is_a_failure() -> None:
    """The header hides no failure."""
    content = header({"command": "df -h"}) + "Tool call rejected: not allowed"
    assert read_one(call("c1"), content).evidence_status is EvidenceStatus.ERROR


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


def test_a_late_result_still_belongs_to_its_call() -> None:
    """A result may come after the model's next message."""
    transcript = read(QUESTION, asks(call("c1")), asks(call("c2")), result("c2"), result("c1", "1"))
    assert stdout(transcript.records[0]) == "1"


def test_a_call_without_a_result_is_an_error_record() -> None:
    """A missing result is a record with its reason, never a gap."""
    (record,) = read(QUESTION, asks(call("c1")), ANSWER).records
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == "NO_RESULT"
    assert record.completed_at is None


def test_a_result_with_null_content_is_an_error_record() -> None:
    """Null says nothing of what the tool found: it is not taken for an empty output."""
    record = read_one(call("c1"), None)
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == "RESULT_WITHOUT_CONTENT"


@pytest.mark.parametrize(
    "arguments",
    [
        "df -h",
        "{",
        "[1]",
        "null",
        '{"command": "a", "command": "b"}',
        '{"x": NaN}',
        '{"x": "\\ud800"}',
        r'{"command": "\u12"}',
    ],
)
def test_arguments_that_are_no_json_object_make_an_error_record(arguments: str) -> None:
    """A call whose scope cannot be read proves nothing, whatever came back."""
    record = read_one(call("c1", arguments=arguments), "output")
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == "ARGUMENTS_NOT_A_JSON_OBJECT"
    assert record.request == {}


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (r'{"command": "grep \"a\|b\" \\ x.log"}', r'grep "a\|b" \ x.log'),
        (r'{"command": "grep a\\|b"}', r"grep a\|b"),
        (r'{"command": "find -exec ls \;"}', r"find -exec ls \;"),
    ],
)
def test_a_stray_backslash_in_arguments_stands_for_itself(arguments: str, command: str) -> None:
    """An escape that JSON does not know is mended; those that it knows keep their meaning."""
    record = read_one(call("c1", arguments=arguments), "hit")
    assert record.lifecycle is Lifecycle.READY
    assert record.request == {"command": command}


@pytest.mark.parametrize("arguments", ["{}", "", '{"command": 3}', '{"command": " "}'])
def test_a_command_tool_without_its_command_makes_an_error_record(arguments: str) -> None:
    """A shell call that names no command has no scope."""
    record = read_one(call("c1", arguments=arguments), "output")
    assert record.error_message == "ARGUMENTS_WITHOUT_COMMAND"


@pytest.mark.parametrize("command", ["get pods", "kubectl get pods"])
def test_a_program_stands_in_front_of_its_arguments_once(command: str) -> None:
    """The tool ``kubectl`` is recorded as the command that ran."""
    arguments = json.dumps({"command": command, "timeout": 5})
    record = read_one(call("c1", "kubectl", arguments), "a pod")
    assert record.tool_name == "run_command"
    assert record.request == {"command": "kubectl get pods", "timeout": 5}


def test_a_helper_call_makes_no_record() -> None:
    """A task list is no evidence: it is counted apart, even when its arguments are broken."""
    transcript = read(
        QUESTION, asks(call("c1", "TodoWrite", "{"), call("c2")), result("c1", "ok"), result("c2")
    )
    assert [record.tool_call_id for record in transcript.records] == ["c2"]
    assert (transcript.evidence_calls, transcript.helper_calls) == (1, 1)


def test_an_unknown_tool_is_recorded_under_its_own_name() -> None:
    """The reader claims no projection for a tool that it does not know; the guard decides."""
    record = read_one(call("c1", "search_runbooks", '{"q": "disk"}'), "a page")
    assert record.tool_name == "search_runbooks"
    assert record.request == {"q": "disk"}
    assert record.agent_result == "a page"
    assert record.evidence_status is EvidenceStatus.EVIDENCE_FOUND


def test_an_agent_team_can_name_its_own_tools() -> None:
    """The table of tools is an argument; the default one is left as it is."""
    tools = {**AGENT_TOOLS, "sh": CommandTool(), "think": HelperTool()}
    transcript = read(
        QUESTION, asks(call("c1", "sh"), call("c2", "think", "{}")), result("c1"), tools=tools
    )
    assert [record.tool_name for record in transcript.records] == ["run_command"]
    assert transcript.helper_calls == 1


def part(text: object) -> Message:
    return {"type": "text", "text": text}


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


REFUSED: list[tuple[str, list[object], Refusal, str]] = [
    ("a message that is no object", [QUESTION, "x"], Refusal.NOT_A_MESSAGE, "messages[1]"),
    ("no role", [{"content": "x"}], Refusal.UNKNOWN_ROLE, "messages[0].role"),
    (
        "a legacy function result",
        [QUESTION, {"role": "function", "name": "f", "content": "x"}],
        Refusal.UNKNOWN_ROLE,
        "messages[1].role",
    ),
    ("a role that is a list", [{"role": []}], Refusal.UNKNOWN_ROLE, "messages[0].role"),
    ("no messages", [], Refusal.NO_QUESTION, "messages"),
    (
        "a blank question",
        [{"role": "user", "content": "\u200b "}, ANSWER],
        Refusal.NO_QUESTION,
        "messages",
    ),
    (
        "a question without content",
        [{"role": "user", "content": None}],
        Refusal.CONTENT_NOT_TEXT,
        "messages[0].content",
    ),
    (
        "an image in a question",
        [{"role": "user", "content": [part("see"), {"type": "image_url", "image_url": {}}]}],
        Refusal.CONTENT_NOT_TEXT,
        "messages[0].content[1]",
    ),
    (
        "an image in a result",
        [QUESTION, asks(call("c1")), result("c1", [{"type": "image_url"}])],
        Refusal.CONTENT_NOT_TEXT,
        "messages[2].content[0]",
    ),
    (
        "a text part without text",
        [QUESTION, asks(call("c1")), result("c1", [part(None)])],
        Refusal.CONTENT_NOT_TEXT,
        "messages[2].content[0]",
    ),
    (
        "a result that is a number",
        [QUESTION, asks(call("c1")), result("c1", 7)],
        Refusal.CONTENT_NOT_TEXT,
        "messages[2].content",
    ),
    (
        "a model's message in something else",
        [QUESTION, {"role": "assistant", "content": ["x"]}],
        Refusal.CONTENT_NOT_TEXT,
        "messages[1].content[0]",
    ),
    (
        "a lone surrogate in a result",
        [QUESTION, asks(call("c1")), result("c1", LONE)],
        Refusal.TEXT_NOT_UNICODE,
        "messages[2].content",
    ),
    (
        "a lone surrogate in a part",
        [{"role": "user", "content": [part(LONE)]}],
        Refusal.TEXT_NOT_UNICODE,
        "messages[0].content[0]",
    ),
    (
        "calls that are no list",
        [QUESTION, {"role": "assistant", "tool_calls": {}}],
        Refusal.NOT_A_CALL,
        "messages[1].tool_calls",
    ),
    (
        "a call that is no object",
        [QUESTION, asks("c1")],
        Refusal.NOT_A_CALL,
        "messages[1].tool_calls[0]",
    ),
    (
        "a call without its function",
        [QUESTION, asks({"id": "c1"})],
        Refusal.NOT_A_CALL,
        "messages[1].tool_calls[0].function",
    ),
    (
        "a blank tool name",
        [QUESTION, asks(call("c1", " "))],
        Refusal.NOT_A_CALL,
        "messages[1].tool_calls[0].function.name",
    ),
    (
        "a tool name that is no Unicode",
        [QUESTION, asks(call("c1", LONE))],
        Refusal.NOT_A_CALL,
        "messages[1].tool_calls[0].function.name",
    ),
    (
        "arguments that are no text",
        [QUESTION, asks(call("c1", arguments={"command": "df"}))],
        Refusal.NOT_A_CALL,
        "messages[1].tool_calls[0].function.arguments",
    ),
    (
        "a custom tool's call",
        [QUESTION, asks(call("c1"), {"id": "c2", "type": "custom", "custom": {}})],
        Refusal.UNSUPPORTED_CALL,
        "messages[1].tool_calls[1].type",
    ),
    (
        "a legacy function call",
        [QUESTION, {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}],
        Refusal.UNSUPPORTED_CALL,
        "messages[1].function_call",
    ),
    (
        "an empty id",
        [QUESTION, asks(call(""))],
        Refusal.BAD_CALL_ID,
        "messages[1].tool_calls[0].id",
    ),
    (
        "an endless id",
        [QUESTION, asks(call("c" * 257))],
        Refusal.BAD_CALL_ID,
        "messages[1].tool_calls[0].id",
    ),
    (
        "a number as id",
        [QUESTION, asks(call("1")), result(1)],
        Refusal.BAD_CALL_ID,
        "messages[2].tool_call_id",
    ),
    (
        "an id twice in one message",
        [QUESTION, asks(call("c1"), call("c1"))],
        Refusal.REUSED_CALL_ID,
        "messages[1].tool_calls[1].id",
    ),
    (
        "an id used again later",
        [QUESTION, asks(call("c1")), result("c1"), asks(call("c1", "TodoWrite"))],
        Refusal.REUSED_CALL_ID,
        "messages[3].tool_calls[0].id",
    ),
    (
        "a result before its call",
        [QUESTION, result("c1"), asks(call("c1"))],
        Refusal.RESULT_WITHOUT_CALL,
        "messages[1].tool_call_id",
    ),
    (
        "a second result of one call",
        [QUESTION, asks(call("c1")), result("c1"), result("c1")],
        Refusal.REPEATED_RESULT,
        "messages[3].tool_call_id",
    ),
    (
        "a result that names another tool",
        [QUESTION, asks(call("c1")), result("c1", name="kubectl")],
        Refusal.RESULT_OF_ANOTHER_TOOL,
        "messages[2].name",
    ),
]


@pytest.mark.parametrize(
    ("messages", "code", "place"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_not_understood_is_refused_with_its_place(
    messages: list[object], code: Refusal, place: str
) -> None:
    """Reading stops at the first flaw and names where."""
    with pytest.raises(TranscriptError) as caught:
        read(*messages)
    assert (caught.value.code, caught.value.place) == (code, place)


@pytest.mark.parametrize("messages", [None, "messages", {"messages": []}])
def test_what_is_no_list_of_messages_is_refused(messages: object) -> None:
    """A whole that is no list has no message to point at."""
    with pytest.raises(TranscriptError) as caught:
        read_openai_messages(messages, run_id="r", session_id="s", began_at=BEGAN_AT)
    assert (caught.value.code, caught.value.place) == (Refusal.NOT_MESSAGES, "messages")


def test_a_refusal_quotes_nothing() -> None:
    """The error says code and place and no word of the transcript."""
    with pytest.raises(TranscriptError) as caught:
        read(QUESTION, asks(call("secret-id")), result("other-secret", "secret text"))
    assert str(caught.value) == "RESULT_WITHOUT_CALL at messages[2].tool_call_id"
