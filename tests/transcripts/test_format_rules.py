"""What only one format has: its own items, shapes and refusals, each with its place."""

import json
from typing import Any

import pytest

from contracts.evidence import EvidenceStatus
from tests.transcripts.chat import BEGAN_AT, LONE, stdout
from tests.transcripts.formats import FORMATS, attribute, export, span
from worker.client.transcripts import Refusal, Transcript, TranscriptError, read_otel_spans

ASK: dict[str, Any] = {"role": "user", "content": "Why?"}
HUMAN: dict[str, Any] = {"type": "human", "content": "Why?"}
CALL = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command":"df"}'}
USE = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "df"}}
AI = {
    "type": "ai",
    "content": "",
    "tool_calls": [{"id": "c1", "name": "bash", "args": {"command": "df"}}],
}
EXECUTE = (
    attribute("gen_ai.operation.name", "execute_tool"),
    attribute("gen_ai.tool.name", "bash"),
    attribute("gen_ai.tool.call.arguments", '{"command": "df"}'),
)
RESULT = attribute("gen_ai.tool.call.result", "97%")


def read(name: str, data: Any) -> Transcript:
    return FORMATS[name][1](data)


def output(**fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "c1", **fields}


def results(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def tool_result(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "c1", **fields}


def uses(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


RESPONSES = "openai-responses"
REFUSED: list[tuple[str, Any, Refusal, str]] = [
    (RESPONSES, [ASK, {"type": "web_search_call"}], Refusal.UNSUPPORTED_CALL, "items[1].type"),
    (RESPONSES, [ASK, {"type": "custom_tool_call"}], Refusal.UNSUPPORTED_CALL, "items[1].type"),
    (RESPONSES, [ASK, {"type": "compaction"}], Refusal.UNKNOWN_ITEM, "items[1].type"),
    (RESPONSES, [ASK, {"type": "item_reference"}], Refusal.UNKNOWN_ITEM, "items[1].type"),
    (RESPONSES, [ASK, {}], Refusal.UNKNOWN_ITEM, "items[1].type"),
    (RESPONSES, [ASK, 3], Refusal.NOT_A_MESSAGE, "items[1]"),
    (RESPONSES, [{"role": "tool"}], Refusal.UNKNOWN_ROLE, "items[0].role"),
    (RESPONSES, [{"role": "user"}], Refusal.CONTENT_NOT_TEXT, "items[0].content"),
    (RESPONSES, [ASK, CALL | {"arguments": {}}], Refusal.NOT_A_CALL, "items[1].arguments"),
    (RESPONSES, [ASK, CALL, output(output=[{"type": "input_image"}])],
     Refusal.CONTENT_NOT_TEXT, "items[2].output[0]"),
    (RESPONSES, [ASK, CALL, output(output="x", name="kubectl")],
     Refusal.RESULT_OF_ANOTHER_TOOL, "items[2].name"),
    (RESPONSES, {"output": []}, Refusal.NOT_MESSAGES, "items"),
    ("anthropic", [ASK, uses({"type": "server_tool_use"})],
     Refusal.UNSUPPORTED_CALL, "messages[1].content[0].type"),
    ("anthropic", [results({"type": "image"})], Refusal.CONTENT_NOT_TEXT, "messages[0].content[0]"),
    ("anthropic", [results({"type": "text"})], Refusal.CONTENT_NOT_TEXT, "messages[0].content[0]"),
    ("anthropic", [results("x")], Refusal.CONTENT_NOT_TEXT, "messages[0].content[0]"),
    ("anthropic", [{"role": "user", "content": 1}],
     Refusal.CONTENT_NOT_TEXT, "messages[0].content"),
    ("anthropic", [{"role": "tool"}], Refusal.UNKNOWN_ROLE, "messages[0].role"),
    ("anthropic", [7], Refusal.NOT_A_MESSAGE, "messages[0]"),
    ("anthropic", [ASK, uses(USE), results(tool_result(content=[{"type": "image"}]))],
     Refusal.CONTENT_NOT_TEXT, "messages[2].content[0].content[0]"),
    ("anthropic", [ASK, uses(USE), results(tool_result(content=LONE))],
     Refusal.TEXT_NOT_UNICODE, "messages[2].content[0].content"),
    ("langchain", [HUMAN, {"type": "function"}], Refusal.UNKNOWN_ROLE, "messages[1].type"),
    ("langchain", [{"type": "human", "data": 3}], Refusal.NOT_A_MESSAGE, "messages[0].data"),
    ("langchain", [{"type": "constructor", "id": [[]], "kwargs": {}}],
     Refusal.UNKNOWN_ROLE, "messages[0].kwargs.type"),
    ("langchain", [{"type": "human"}], Refusal.CONTENT_NOT_TEXT, "messages[0].content"),
    ("langchain", [3], Refusal.NOT_A_MESSAGE, "messages[0]"),
    ("langchain", [HUMAN, AI | {"tool_calls": {}}], Refusal.NOT_A_CALL, "messages[1].tool_calls"),
    ("langchain", [HUMAN, AI | {"tool_calls": [3]}],
     Refusal.NOT_A_CALL, "messages[1].tool_calls[0]"),
    ("langchain", [HUMAN, AI | {"tool_calls": [{"name": "bash", "args": {}, "id": None}]}],
     Refusal.BAD_CALL_ID, "messages[1].tool_calls[0].id"),
    ("langchain",
     [HUMAN, {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [{"id": "c1"}]}}],
     Refusal.UNSUPPORTED_CALL, "messages[1].additional_kwargs.tool_calls"),
    ("otel", {"spans": []}, Refusal.NOT_MESSAGES, "resourceSpans"),
    ("otel", [export(), 3], Refusal.NOT_MESSAGES, "[1].resourceSpans"),
    ("otel", {"resourceSpans": {}}, Refusal.NO_QUESTION, "resourceSpans"),
    ("otel", {"resourceSpans": [3]}, Refusal.NOT_A_SPAN, "resourceSpans[0]"),
    ("otel", export({"traceId": "1"}), Refusal.BAD_TIME,
     "resourceSpans[0].scopeSpans[0].spans[0].startTimeUnixNano"),
    ("otel", export(span(1, 0, 1, attribute("a", "1"), attribute("a", "2"))), Refusal.NOT_A_SPAN,
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[1]"),
    ("otel", export(span(1, 0, 1, {"key": "a", "value": {"intValue": "--5"}})), Refusal.NOT_A_SPAN,
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0]"),
    ("otel", export(span(1, 0, 1) | {"spanId": 5}), Refusal.NOT_A_SPAN,
     "resourceSpans[0].scopeSpans[0].spans[0].spanId"),
    ("otel", export(span(1, 0, 1), span(1, 0, 2)), Refusal.REUSED_CALL_ID,
     "resourceSpans[0].scopeSpans[0].spans[1].spanId"),
]  # fmt: skip


@pytest.mark.scenario("transcripts", "A broken transcript")
@pytest.mark.parametrize(("name", "data", "code", "place"), REFUSED)
def test_what_is_not_understood_is_refused_with_its_place(
    name: str, data: Any, code: Refusal, place: str
) -> None:
    """Reading stops at the first flaw and names where, in the words of the format."""
    with pytest.raises(TranscriptError) as caught:
        read(name, data)
    assert (caught.value.code, caught.value.place) == (code, place)


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        (span(1, 5, 1, *EXECUTE), Refusal.BAD_TIME, "endTimeUnixNano"),
        (span(1, 0, 1, EXECUTE[0]), Refusal.NOT_A_CALL, "attributes[gen_ai.tool.name]"),
        (
            span(1, 0, 1, *EXECUTE, attribute("gen_ai.tool.call.id", "c" * 300)),
            Refusal.BAD_CALL_ID,
            "attributes[gen_ai.tool.call.id]",
        ),
    ],
)
def test_a_broken_tool_span_is_refused(data: Any, code: Refusal, place: str) -> None:
    """Times that run backwards, a call without a name, an id without an end."""
    with pytest.raises(TranscriptError) as caught:
        read_otel_spans(export(data), run_id="r", session_id="s", query="Why?")
    where = f"resourceSpans[0].scopeSpans[0].spans[0].{place}"
    assert (caught.value.code, caught.value.place) == (code, where)


def test_responses_count_one_step_for_one_row_of_items() -> None:
    """The API writes an item for each part of one answer; it stays one answer."""
    second = CALL | {"call_id": "c2"}
    said = {"role": "assistant", "content": "Done."}
    transcript = read(
        "openai-responses",
        [ASK, {"type": "reasoning"}, CALL, second, output(output="1"),
         output(output="2", call_id="c2"), {"type": "reasoning"}, said],
    )  # fmt: skip
    assert (transcript.model_steps, transcript.evidence_calls) == (2, 2)
    assert transcript.final_text == "Done."


def test_a_step_before_any_question_is_a_step() -> None:
    """A history may open with the model's own words."""
    said = {"role": "assistant", "content": "Hello."}
    assert read("openai-responses", [said, ASK, said]).model_steps == 2


def test_an_incomplete_output_is_an_error_record() -> None:
    """A result of which only a part came excludes nothing and proves nothing."""
    data = [ASK, CALL, output(output="97", status="incomplete")]
    (record,) = read("openai-responses", data).records
    assert record.error_message == "RESULT_INCOMPLETE"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("openai-responses", [ASK, CALL, output(output=None)]),
        ("anthropic", [ASK, uses(USE), results(tool_result())]),
        ("langchain", [HUMAN, AI, {"type": "tool", "tool_call_id": "c1"}]),
    ],
)
def test_a_result_without_content_is_an_error_record(name: str, data: Any) -> None:
    """It does not say that the tool found nothing."""
    (record,) = read(name, data).records
    assert record.error_message == "RESULT_WITHOUT_CONTENT"


def test_a_failure_without_words_has_a_reason() -> None:
    """An error that says nothing is told as such."""
    data = [ASK, uses(USE), results(tool_result(is_error=True))]
    (record,) = read("anthropic", data).records
    assert record.error_message == "The tool failed and said nothing."


def test_a_user_may_ask_beside_results() -> None:
    """Results and a follow-up question can share a message."""
    data = [ASK, uses(USE), results(tool_result(content="97%"), {"type": "text", "text": "And?"})]
    transcript = read("anthropic", data)
    assert transcript.questions == ("Why?", "And?")
    assert stdout(transcript.records[0]) == "97%"


def test_langchain_parts_may_be_bare_texts() -> None:
    """A content list may mix texts and parts; chunks and data forms are messages too."""
    data = [
        {"type": "human", "content": ["Why", {"type": "text", "text": "now?"}]},
        AI | {"type": "AIMessageChunk", "content": [{"type": "tool_use", "id": "c1"}]},
        {"type": "tool", "data": {"tool_call_id": "c1", "content": ["9", "7"], "name": "bash"}},
        {"type": "system", "content": "x"},
    ]
    transcript = read("langchain", data)
    assert transcript.query == "Why\nnow?"
    assert stdout(transcript.records[0]) == "9\n7"


def test_spans_tell_their_own_times() -> None:
    """Start, end and duration are the span's; the span's id stands in for a missing one."""
    data = export(span(7, 100, 1350, *EXECUTE, RESULT))
    transcript = read_otel_spans(data, run_id="r", session_id="s", query="Why?")
    (record,) = transcript.records
    assert record.tool_call_id == f"{7:016x}"
    assert (record.started_at - BEGAN_AT).total_seconds() == 0.1
    assert record.duration_ms == 1250
    assert record.completed_at is not None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"stringValue": json.dumps("97%")}, "97%"),
        ({"stringValue": '"unclosed'}, '"unclosed'),
        ({"kvlistValue": {"values": [{"key": "n", "value": {"intValue": "97"}}]}}, '{"n":97}'),
        ({"arrayValue": {"values": [{"doubleValue": 0.5}, {"boolValue": True}]}}, "[0.5,true]"),
    ],
)  # fmt: skip
def test_results_of_spans_come_quoted_or_structured(value: Any, text: str) -> None:
    """Instrumentations write a result as text, as quoted JSON, or as typed values."""
    data = export(span(1, 0, 1, *EXECUTE, {"key": "gen_ai.tool.call.result", "value": value}))
    (record,) = read_otel_spans(data, run_id="r", session_id="s", query="Why?").records
    assert stdout(record) == text


@pytest.mark.parametrize(
    ("attributes", "more", "message"),
    [
        (EXECUTE, {}, "RESULT_WITHOUT_CONTENT"),
        ((*EXECUTE[:2], RESULT), {}, "ARGUMENTS_NOT_A_JSON_OBJECT"),
        ((*EXECUTE, RESULT), {"status": {"code": 2, "message": "exit 137"}}, "exit 137"),
        ((*EXECUTE, attribute("error.type", "Timeout")), {"status": {"code": 2}}, "Timeout"),
        ((*EXECUTE, RESULT), {"status": {"code": "STATUS_CODE_ERROR"}}, "97%"),
    ],
)
def test_spans_that_tell_no_result_are_error_records(
    attributes: Any, more: Any, message: str
) -> None:
    """Content is recorded only if asked for: its absence is no empty result."""
    data = export(span(1, 0, 1, *attributes, **more))
    (record,) = read_otel_spans(data, run_id="r", session_id="s", query="Why?").records
    assert record.evidence_status is EvidenceStatus.ERROR
    assert record.error_message == message


def test_a_span_sent_twice_is_one_call() -> None:
    """An exporter repeats what was not acknowledged; the lines of a file are one export."""
    twice = [export(span(1, 0, 1, *EXECUTE, RESULT)), export(span(1, 0, 1, *EXECUTE, RESULT))]
    transcript = read_otel_spans(twice, run_id="r", session_id="s", query="Why?")
    assert transcript.evidence_calls == 1
