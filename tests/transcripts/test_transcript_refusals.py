"""What the reader refuses, and where it says that reading stopped."""

import pytest

from tests.transcripts.chat import ANSWER, BEGAN_AT, LONE, QUESTION, asks, call, part, read, result
from worker.client.transcripts import Refusal, TranscriptError, read_openai_messages

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


@pytest.mark.scenario("transcripts", "A broken transcript")
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


@pytest.mark.scenario("transcripts", "A refusal without content")
def test_a_refusal_quotes_nothing() -> None:
    """The error says code and place and no word of the transcript."""
    with pytest.raises(TranscriptError) as caught:
        read(QUESTION, asks(call("secret-id")), result("other-secret", "secret text"))
    assert str(caught.value) == "RESULT_WITHOUT_CALL at messages[2].tool_call_id"
