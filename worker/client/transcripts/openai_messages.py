"""OpenAI chat-completions messages, as an agent holds them or saved them.

Beside the rules of ``conversation``:

- ``system`` and ``developer`` messages are passed over. ``user`` messages are the
  questions. Each ``assistant`` message is one model step.
- A part that is no text is refused in a question and in a result; in the model's own
  message it is passed over.
- A result with null content is an ERROR record.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from worker.client.transcripts.conversation import (
    Conversation,
    checked_id,
    items_of,
    text_of,
)
from worker.client.transcripts.recording import AGENT_TOOLS, AgentTool, read_arguments
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError


def read_openai_messages(
    messages: object,
    *,
    run_id: str,
    session_id: str,
    began_at: datetime,
    tools: Mapping[str, AgentTool] = AGENT_TOOLS,
) -> Transcript:
    """Read a conversation: a list of message objects, as parsed from JSON.

    Raises TranscriptError where reading stops, ValueError for a ``began_at``
    without an offset, pydantic.ValidationError for a run id outside the contract.
    """
    into = Conversation(began_at, tools)
    for index, message in enumerate(items_of(messages, "messages")):
        _read(into, message, f"messages[{index}]")
    return into.transcript(run_id, session_id, "messages")


def _read(into: Conversation, message: object, place: str) -> None:
    if not isinstance(message, dict):
        raise TranscriptError(Refusal.NOT_A_MESSAGE, place)
    match message.get("role"):
        case "system" | "developer":
            pass
        case "user":
            text = text_of(message.get("content"), f"{place}.content")
            if text is None:
                raise TranscriptError(Refusal.CONTENT_NOT_TEXT, f"{place}.content")
            into.question(text)
        case "assistant":
            _model_step(into, message, place)
        case "tool":
            call_id = checked_id(message.get("tool_call_id"), f"{place}.tool_call_id")
            into.result(
                call_id,
                text_of(message.get("content"), f"{place}.content"),
                place=f"{place}.tool_call_id",
                name=message.get("name"),
                name_place=f"{place}.name",
            )
        case _:
            raise TranscriptError(Refusal.UNKNOWN_ROLE, f"{place}.role")


def _model_step(into: Conversation, message: dict[str, Any], place: str) -> None:
    into.model_step()
    text = text_of(message.get("content"), f"{place}.content", only_text=False)
    if message.get("function_call") is not None:
        raise TranscriptError(Refusal.UNSUPPORTED_CALL, f"{place}.function_call")
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None):
        raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.tool_calls")
    into.said(text)
    for index, call in enumerate(calls or ()):
        _call(into, call, f"{place}.tool_calls[{index}]")


def _call(into: Conversation, call: object, place: str) -> None:
    if not isinstance(call, dict):
        raise TranscriptError(Refusal.NOT_A_CALL, place)
    if call.get("type", "function") != "function":
        raise TranscriptError(Refusal.UNSUPPORTED_CALL, f"{place}.type")
    call_id = checked_id(call.get("id"), f"{place}.id")
    function = call.get("function")
    if not isinstance(function, dict):
        raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.function")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.function.arguments")
    into.call(
        call_id,
        function.get("name"),
        read_arguments(arguments),
        place=f"{place}.function.name",
        id_place=f"{place}.id",
    )
