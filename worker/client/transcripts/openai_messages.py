"""OpenAI chat-completions messages, as an agent holds them or saved them.

The rules, in the order of reading:

- ``system`` and ``developer`` messages are passed over. ``user`` messages are the
  questions. Each ``assistant`` message is one model step.
- Content is text, or a list of parts whose texts are joined by line breaks (joined
  without, two numbers could become a third). A part that is no text is refused in
  a question and in a result; in the model's own message it is passed over.
- Parallel calls may be answered in any order, and later than at once: the id binds.
- An id names one call in the whole transcript, and one result. A result needs its
  call before it, and if it names a tool, the tool of the call.
- A call without a result, or with null content, is an ERROR record; so is one whose
  arguments are not a JSON object. An agent goes on after those, so does the reader.
- A call of a helper tool makes no record and is counted apart.
- Anything else that is not understood is refused: a call that is silently lost
  would be a hole in the evidence.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from contracts.base import is_blank
from contracts.evidence import InvocationRecord
from worker.client.transcripts.recording import (
    AGENT_TOOLS,
    AgentTool,
    Call,
    HelperTool,
    Result,
    read_arguments,
    record,
)
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError

_LONGEST_ID = 256
_TICK = timedelta(milliseconds=1)


def read_openai_messages(
    messages: object,
    *,
    run_id: str,
    session_id: str,
    began_at: datetime,
    tools: Mapping[str, AgentTool] = AGENT_TOOLS,
) -> Transcript:
    """Read a conversation: a list of message objects, as parsed from JSON.

    Such messages carry no times. Calls and results get ``began_at`` (with an
    offset) plus one millisecond for each that was read before: this keeps their
    order, and durations stay unknown.
    Raises TranscriptError where reading stops, ValueError for a ``began_at``
    without an offset, pydantic.ValidationError for a run id outside the contract.
    """
    if began_at.tzinfo is None:
        raise ValueError("began_at needs an offset")
    if not isinstance(messages, list | tuple):
        raise TranscriptError(Refusal.NOT_MESSAGES, "messages")
    reader = _Reader(began_at, tools)
    for index, message in enumerate(messages):
        reader.read(message, f"messages[{index}]")
    return reader.transcript(run_id, session_id)


class _Reader:
    def __init__(self, began_at: datetime, tools: Mapping[str, AgentTool]) -> None:
        self._now = began_at
        self._tools = tools
        self._calls: dict[str, Call] = {}
        self._results: dict[str, Result] = {}
        self._questions: list[str] = []
        self._model_steps = 0
        self._final_text: str | None = None

    def read(self, message: object, place: str) -> None:
        if not isinstance(message, dict):
            raise TranscriptError(Refusal.NOT_A_MESSAGE, place)
        match message.get("role"):
            case "system" | "developer":
                pass
            case "user":
                self._question(message, place)
            case "assistant":
                self._model_step(message, place)
            case "tool":
                self._result(message, place)
            case _:
                raise TranscriptError(Refusal.UNKNOWN_ROLE, f"{place}.role")

    def transcript(self, run_id: str, session_id: str) -> Transcript:
        if not self._questions:
            raise TranscriptError(Refusal.NO_QUESTION, "messages")
        records: list[InvocationRecord] = []
        for call in self._calls.values():
            tool = self._tools.get(call.tool_name)
            if not isinstance(tool, HelperTool):
                result = self._results.get(call.call_id)
                records.append(record(call, result, tool, run_id=run_id, session_id=session_id))
        return Transcript(
            records=tuple(records),
            questions=tuple(self._questions),
            final_text=self._final_text,
            model_steps=self._model_steps,
            helper_calls=len(self._calls) - len(records),
        )

    def _question(self, message: dict[str, Any], place: str) -> None:
        text = _text(message.get("content"), f"{place}.content")
        if text is None:
            raise TranscriptError(Refusal.CONTENT_NOT_TEXT, f"{place}.content")
        self._final_text = None
        if not is_blank(text):
            self._questions.append(text)

    def _model_step(self, message: dict[str, Any], place: str) -> None:
        self._model_steps += 1
        text = _text(message.get("content"), f"{place}.content", only_text=False)
        if message.get("function_call") is not None:
            raise TranscriptError(Refusal.UNSUPPORTED_CALL, f"{place}.function_call")
        calls = message.get("tool_calls")
        if not isinstance(calls, list | None):
            raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.tool_calls")
        for index, call in enumerate(calls or ()):
            self._call(call, f"{place}.tool_calls[{index}]")
        self._final_text = None if calls or text is None or is_blank(text) else text

    def _call(self, call: object, place: str) -> None:
        if not isinstance(call, dict):
            raise TranscriptError(Refusal.NOT_A_CALL, place)
        if call.get("type", "function") != "function":
            raise TranscriptError(Refusal.UNSUPPORTED_CALL, f"{place}.type")
        call_id = _call_id(call.get("id"), f"{place}.id")
        if call_id in self._calls:
            raise TranscriptError(Refusal.REUSED_CALL_ID, f"{place}.id")
        function = call.get("function")
        if not isinstance(function, dict):
            raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.function")
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or is_blank(name) or not _is_unicode(name):
            raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.function.name")
        if not isinstance(arguments, str):
            raise TranscriptError(Refusal.NOT_A_CALL, f"{place}.function.arguments")
        self._calls[call_id] = Call(call_id, name, read_arguments(arguments), self._tick())

    def _result(self, message: dict[str, Any], place: str) -> None:
        call_id = _call_id(message.get("tool_call_id"), f"{place}.tool_call_id")
        call = self._calls.get(call_id)
        if call is None:
            raise TranscriptError(Refusal.RESULT_WITHOUT_CALL, f"{place}.tool_call_id")
        if call_id in self._results:
            raise TranscriptError(Refusal.REPEATED_RESULT, f"{place}.tool_call_id")
        if message.get("name") not in (None, call.tool_name):
            raise TranscriptError(Refusal.RESULT_OF_ANOTHER_TOOL, f"{place}.name")
        text = _text(message.get("content"), f"{place}.content")
        self._final_text = None
        self._results[call_id] = Result(text, self._tick())

    def _tick(self) -> datetime:
        now = self._now
        self._now += _TICK
        return now


def _text(content: object, place: str, *, only_text: bool = True) -> str | None:
    if content is None:
        return None
    if isinstance(content, str):
        return _unicode(content, place)
    if not isinstance(content, list):
        raise TranscriptError(Refusal.CONTENT_NOT_TEXT, place)
    texts: list[str] = []
    for index, part in enumerate(content):
        where = f"{place}[{index}]"
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if isinstance(text, str):
            texts.append(_unicode(text, where))
        elif only_text or not isinstance(part, dict):
            raise TranscriptError(Refusal.CONTENT_NOT_TEXT, where)
    return "\n".join(texts)


def _call_id(value: object, place: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID or not _is_unicode(value):
        raise TranscriptError(Refusal.BAD_CALL_ID, place)
    return value


def _unicode(text: str, place: str) -> str:
    if not _is_unicode(text):
        raise TranscriptError(Refusal.TEXT_NOT_UNICODE, place)
    return text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
