"""LangChain message lists as JSON; the package is not needed.

Three forms are read, mixed if they come mixed: a message's own fields (``model_dump``),
``{"type", "data"}`` (``messages_to_dict``) and the constructor form (``dumpd``).

Beside the rules of ``conversation``:

- ``human`` messages are the questions, ``ai`` messages the model steps, ``tool`` messages
  the results; ``system`` messages are passed over. Chunks of messages count as messages.
- ``invalid_tool_calls`` are calls whose arguments are no JSON: ERROR records.
- A result with the status ``error`` is an ERROR record, its text the reason.
- ``function``, ``chat`` and ``remove`` messages, and calls that stand in
  ``additional_kwargs`` alone, are refused: they are older or change the history.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from worker.client.transcripts.conversation import (
    Conversation,
    checked_id,
    items_of,
    object_of,
    text_of,
)
from worker.client.transcripts.recording import AGENT_TOOLS, AgentTool, read_arguments
from worker.client.transcripts.results import failure_of
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError

_KINDS = {
    "human": "human",
    "HumanMessage": "human",
    "HumanMessageChunk": "human",
    "ai": "ai",
    "AIMessage": "ai",
    "AIMessageChunk": "ai",
    "tool": "tool",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "system": "system",
    "SystemMessage": "system",
    "SystemMessageChunk": "system",
}


def read_langchain_messages(
    messages: object,
    *,
    run_id: str,
    session_id: str,
    began_at: datetime,
    tools: Mapping[str, AgentTool] = AGENT_TOOLS,
) -> Transcript:
    """Read a list of message objects, as parsed from JSON.

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
    kind, fields, place = _opened(message, place)
    where = f"{place}.content"
    match kind:
        case "system":
            pass
        case "human":
            text = _text(fields.get("content"), where)
            if text is None:
                raise TranscriptError(Refusal.CONTENT_NOT_TEXT, where)
            into.question(text)
        case "ai":
            _model_step(into, fields, place)
        case "tool":
            call_id = checked_id(fields.get("tool_call_id"), f"{place}.tool_call_id")
            content = _text(fields.get("content"), where)
            into.result(
                call_id,
                content,
                place=f"{place}.tool_call_id",
                name=fields.get("name"),
                name_place=f"{place}.name",
                failure=failure_of(content) if fields.get("status") == "error" else None,
            )
        case _:
            raise TranscriptError(Refusal.UNKNOWN_ROLE, f"{place}.type")


def _opened(message: dict[str, Any], place: str) -> tuple[str | None, dict[str, Any], str]:
    """The kind of a message, its fields, and where those stand."""
    kind, inner = message.get("type"), ""
    if kind == "constructor":
        path = message.get("id")
        kind, inner = path[-1] if isinstance(path, list) and path else None, "kwargs"
    elif "data" in message:
        inner = "data"
    fields = message.get(inner) if inner else message
    if not isinstance(fields, dict):
        raise TranscriptError(Refusal.NOT_A_MESSAGE, f"{place}.{inner}")
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    return known, fields, f"{place}.{inner}" if inner else place


def _model_step(into: Conversation, fields: dict[str, Any], place: str) -> None:
    into.model_step()
    text = _text(fields.get("content"), f"{place}.content", only_text=False)
    calls = _list(fields, "tool_calls", place)
    invalid = _list(fields, "invalid_tool_calls", place)
    older = fields.get("additional_kwargs")
    if isinstance(older, dict) and not calls and not invalid:
        for name in ("tool_calls", "function_call"):
            if older.get(name):
                where = f"{place}.additional_kwargs.{name}"
                raise TranscriptError(Refusal.UNSUPPORTED_CALL, where)
    into.said(text)
    for index, call in enumerate(calls):
        where = f"{place}.tool_calls[{index}]"
        _call(into, call, object_of(call.get("args")) if isinstance(call, dict) else None, where)
    for index, call in enumerate(invalid):
        where = f"{place}.invalid_tool_calls[{index}]"
        args = call.get("args") if isinstance(call, dict) else None
        _call(into, call, read_arguments(args) if isinstance(args, str) else None, where)


def _list(fields: dict[str, Any], name: str, place: str) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list | None):
        raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.{name}")
    return value or []


def _call(into: Conversation, call: object, request: dict[str, Any] | None, where: str) -> None:
    if not isinstance(call, dict):
        raise TranscriptError(Refusal.NOT_A_CALL, where)
    into.call(
        call.get("id"), call.get("name"), request, place=f"{where}.name", id_place=f"{where}.id"
    )


def _text(content: object, place: str, *, only_text: bool = True) -> str | None:
    """A part may be a bare text here."""
    if isinstance(content, list):
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else part for part in content
        ]
    return text_of(content, place, only_text=only_text)
