"""Anthropic messages with tool use: blocks in ``user`` and ``assistant`` messages.

Beside the rules of ``conversation``:

- Each ``assistant`` message is one model step; its ``thinking`` blocks are passed over.
- A ``user`` message holds questions, results, or both; its texts that stand together are
  one question. The system prompt is no message; one with the role ``system`` is passed over.
- ``is_error`` makes a result an ERROR record, its text the reason. A result without
  content is one too: it does not say that the tool found nothing.
- Calls of server tools (``server_tool_use``, ``mcp_tool_use``) and all other blocks of a
  user are refused: what was looked at there cannot be checked.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from contracts.base import is_blank
from worker.client.transcripts.conversation import (
    Conversation,
    checked_id,
    checked_text,
    items_of,
    object_of,
    text_of,
)
from worker.client.transcripts.recording import AGENT_TOOLS, AgentTool
from worker.client.transcripts.results import failure_of
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError

_PASSED_OVER = frozenset({"thinking", "redacted_thinking"})


def read_anthropic_messages(
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
    match message.get("role"):
        case "system":
            pass
        case "user":
            _user(into, _blocks(message, place), place)
        case "assistant":
            into.model_step()
            _assistant(into, _blocks(message, place), place)
        case _:
            raise TranscriptError(Refusal.UNKNOWN_ROLE, f"{place}.role")


def _blocks(message: dict[str, Any], place: str) -> list[tuple[dict[str, Any], str]]:
    """The blocks of a message with their places; a text alone is one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [({"type": "text", "text": content}, f"{place}.content")]
    if not isinstance(content, list):
        raise TranscriptError(Refusal.CONTENT_NOT_TEXT, f"{place}.content")
    blocks: list[tuple[dict[str, Any], str]] = []
    for index, block in enumerate(content):
        where = f"{place}.content[{index}]"
        if not isinstance(block, dict):
            raise TranscriptError(Refusal.CONTENT_NOT_TEXT, where)
        blocks.append((block, where))
    return blocks


def _user(into: Conversation, blocks: list[tuple[dict[str, Any], str]], place: str) -> None:
    texts: list[str] = []
    for block, where in blocks:
        match block.get("type"):
            case "text":
                texts.append(_text(block, where))
            case "tool_result":
                _result(into, block, where)
            case _:
                raise TranscriptError(Refusal.CONTENT_NOT_TEXT, where)
    if any(not is_blank(text) for text in texts):
        into.question("\n".join(texts))


def _assistant(into: Conversation, blocks: list[tuple[dict[str, Any], str]], place: str) -> None:
    texts: list[str] = []
    calls = 0
    for block, where in blocks:
        match block.get("type"):
            case "text":
                texts.append(_text(block, where))
            case "tool_use":
                calls += 1
                into.call(
                    block.get("id"),
                    block.get("name"),
                    object_of(block.get("input")),
                    place=f"{where}.name",
                    id_place=f"{where}.id",
                )
            case str() as kind if kind in _PASSED_OVER:
                pass
            case _:
                raise TranscriptError(Refusal.UNSUPPORTED_CALL, f"{where}.type")
    into.said(None if calls else "\n".join(texts))


def _result(into: Conversation, block: dict[str, Any], where: str) -> None:
    call_id = checked_id(block.get("tool_use_id"), f"{where}.tool_use_id")
    text = text_of(block.get("content"), f"{where}.content")
    into.result(
        call_id,
        text,
        place=f"{where}.tool_use_id",
        failure=failure_of(text) if block.get("is_error") else None,
    )


def _text(block: dict[str, Any], where: str) -> str:
    text = block.get("text")
    if not isinstance(text, str):
        raise TranscriptError(Refusal.CONTENT_NOT_TEXT, where)
    return checked_text(text, where)
