"""Items of the OpenAI Responses API: what was sent as input and came back as output.

Beside the rules of ``conversation``:

- ``reasoning`` items are passed over. Messages of ``system`` and ``developer`` are, too.
- A model step is an unbroken row of the model's items (reasoning, messages, calls): the
  API gives each part of one answer an item of its own.
- A call's ``call_id`` binds its output; the item's own ``id`` means nothing here.
- An output whose status is ``incomplete``, and one with null, are ERROR records.
- Calls of hosted or custom tools (web search, code, MCP, shell, ...) are refused, and so
  are compacted histories and references to items that are not there: each would be a hole.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from worker.client.transcripts.conversation import Conversation, checked_id, items_of, text_of
from worker.client.transcripts.recording import AGENT_TOOLS, AgentTool, read_arguments
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError
from worker.trace.lifecycle import ErrorCode

_TEXTS = frozenset({"input_text", "output_text", "text"})
_MODEL = frozenset({"reasoning", "function_call"})


def read_openai_responses(
    items: object,
    *,
    run_id: str,
    session_id: str,
    began_at: datetime,
    tools: Mapping[str, AgentTool] = AGENT_TOOLS,
) -> Transcript:
    """Read a list of items, input and output in one order, as parsed from JSON.

    Raises TranscriptError where reading stops, ValueError for a ``began_at``
    without an offset, pydantic.ValidationError for a run id outside the contract.
    """
    into = Conversation(began_at, tools)
    in_step = False
    for index, item in enumerate(items_of(items, "items")):
        place = f"items[{index}]"
        if not isinstance(item, dict):
            raise TranscriptError(Refusal.NOT_A_MESSAGE, place)
        by_model = _is_of_model(item)
        if by_model and not in_step:
            into.model_step()
        in_step = by_model
        _read(into, item, place)
    return into.transcript(run_id, session_id, "items")


def _kind(item: dict[str, Any]) -> object:
    """A message may come without a type."""
    return item.get("type", "message" if "role" in item else None)


def _is_of_model(item: dict[str, Any]) -> bool:
    kind = _kind(item)
    if kind == "message":
        return bool(item.get("role") == "assistant")
    return isinstance(kind, str) and kind in _MODEL


def _read(into: Conversation, item: dict[str, Any], place: str) -> None:
    match _kind(item):
        case "reasoning":
            pass
        case "message":
            _message(into, item, place)
        case "function_call":
            _call(into, item, place)
        case "function_call_output":
            call_id = checked_id(item.get("call_id"), f"{place}.call_id")
            incomplete = item.get("status") == "incomplete"
            into.result(
                call_id,
                text_of(item.get("output"), f"{place}.output", kinds=_TEXTS),
                place=f"{place}.call_id",
                name=item.get("name"),
                name_place=f"{place}.name",
                failure=ErrorCode.RESULT_INCOMPLETE if incomplete else None,
            )
        case str() as kind if kind.endswith(("_call", "_call_output")):
            raise TranscriptError(Refusal.UNSUPPORTED_CALL, f"{place}.type")
        case _:
            raise TranscriptError(Refusal.UNKNOWN_ITEM, f"{place}.type")


def _message(into: Conversation, item: dict[str, Any], place: str) -> None:
    where = f"{place}.content"
    match item.get("role"):
        case "system" | "developer":
            pass
        case "user":
            text = text_of(item.get("content"), where, kinds=_TEXTS)
            if text is None:
                raise TranscriptError(Refusal.CONTENT_NOT_TEXT, where)
            into.question(text)
        case "assistant":
            into.said(text_of(item.get("content"), where, kinds=_TEXTS, only_text=False))
        case _:
            raise TranscriptError(Refusal.UNKNOWN_ROLE, f"{place}.role")


def _call(into: Conversation, item: dict[str, Any], place: str) -> None:
    arguments = item.get("arguments")
    if not isinstance(arguments, str):
        raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.arguments")
    into.call(
        item.get("call_id"),
        item.get("name"),
        read_arguments(arguments),
        place=f"{place}.name",
        id_place=f"{place}.call_id",
    )
