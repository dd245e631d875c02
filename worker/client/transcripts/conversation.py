"""What is the same in every format: questions, steps, calls and results, in their order.

The rules:

- Parallel calls may be answered in any order, and later than at once: the id binds.
- An id names one call in the whole transcript, and one result. A result needs its
  call before it, and if it names a tool, the tool of the call.
- A call without a result is an ERROR record; so is one whose arguments are not a JSON
  object. An agent goes on after those, so does the reader.
- A call of a helper tool makes no record and is counted apart.
- Anything that is not understood is refused: a call that is silently lost would be a
  hole in the evidence.

A format's reader knows how to find these in its messages, and nothing else.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import JsonValue

from contracts.base import is_blank
from contracts.evidence import InvocationRecord
from worker.client.transcripts.recording import AgentTool, Call, HelperTool, Result, record
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError

_LONGEST_ID = 256
_TICK = timedelta(milliseconds=1)


class Conversation:
    """Gathers a transcript while its messages are read.

    Messages carry no times. Calls and results get ``began_at`` (with an offset) plus one
    millisecond for each that was read before: this keeps their order, and durations stay
    unknown. Raises ValueError for a ``began_at`` without an offset.
    """

    def __init__(self, began_at: datetime, tools: Mapping[str, AgentTool]) -> None:
        if began_at.tzinfo is None:
            raise ValueError("began_at needs an offset")
        self._now = began_at
        self._tools = tools
        self._calls: dict[str, Call] = {}
        self._results: dict[str, Result] = {}
        self._questions: list[str] = []
        self._model_steps = 0
        self._final_text: str | None = None

    def question(self, text: str) -> None:
        """A text of the user; a blank one asks nothing."""
        self._final_text = None
        if not is_blank(text):
            self._questions.append(text)

    def model_step(self) -> None:
        """An answer of the model begins."""
        self._model_steps += 1
        self._final_text = None

    def said(self, text: str | None) -> None:
        """The model's own text; the last word unless a call or a message comes after it."""
        self._final_text = None if text is None or is_blank(text) else text

    def call(
        self,
        call_id: object,
        name: object,
        request: dict[str, JsonValue] | None,
        *,
        place: str,
        id_place: str,
    ) -> None:
        """A call; ``request`` is None where the arguments are no JSON object."""
        checked = checked_id(call_id, id_place)
        if checked in self._calls:
            raise TranscriptError(Refusal.REUSED_CALL_ID, id_place)
        if not isinstance(name, str) or is_blank(name) or not is_unicode(name):
            raise TranscriptError(Refusal.NOT_A_CALL, place)
        self._final_text = None
        self._calls[checked] = Call(checked, name, request, self._tick())

    def result(
        self,
        call_id: object,
        text: str | None,
        *,
        place: str,
        name: object = None,
        name_place: str = "",
        failure: str | None = None,
    ) -> None:
        """A result; ``failure`` is the reason where the format itself says that it is one."""
        checked = checked_id(call_id, place)
        call = self._calls.get(checked)
        if call is None:
            raise TranscriptError(Refusal.RESULT_WITHOUT_CALL, place)
        if checked in self._results:
            raise TranscriptError(Refusal.REPEATED_RESULT, place)
        if name not in (None, call.tool_name):
            raise TranscriptError(Refusal.RESULT_OF_ANOTHER_TOOL, name_place)
        self._final_text = None
        self._results[checked] = Result(text, self._tick(), failure)

    def transcript(self, run_id: str, session_id: str, place: str) -> Transcript:
        """All of it; raises pydantic.ValidationError for a run id outside the contract."""
        if not self._questions:
            raise TranscriptError(Refusal.NO_QUESTION, place)
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

    def _tick(self) -> datetime:
        now = self._now
        self._now += _TICK
        return now


def items_of(value: object, place: str) -> Sequence[object]:
    """The messages of a transcript; refuses what is no list."""
    if not isinstance(value, list | tuple):
        raise TranscriptError(Refusal.NOT_MESSAGES, place)
    return value


def text_of(
    content: object,
    place: str,
    *,
    kinds: frozenset[str] = frozenset({"text"}),
    only_text: bool = True,
) -> str | None:
    """The text of a content; None where there is no content at all.

    A content is text, or a list of parts whose texts are joined by line breaks (joined
    without, two numbers could become a third). ``kinds`` are the part types that are
    text. Another part is refused, or passed over unless ``only_text``.
    """
    if content is None:
        return None
    if isinstance(content, str):
        return checked_text(content, place)
    if not isinstance(content, list):
        raise TranscriptError(Refusal.CONTENT_NOT_TEXT, place)
    texts: list[str] = []
    for index, part in enumerate(content):
        where = f"{place}[{index}]"
        known = isinstance(part, dict) and isinstance(part.get("type"), str)
        text = part.get("text") if known and part["type"] in kinds else None
        if isinstance(text, str):
            texts.append(checked_text(text, where))
        elif only_text or not isinstance(part, dict):
            raise TranscriptError(Refusal.CONTENT_NOT_TEXT, where)
    return "\n".join(texts)


def checked_id(value: object, place: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID or not is_unicode(value):
        raise TranscriptError(Refusal.BAD_CALL_ID, place)
    return value


def checked_text(text: str, place: str) -> str:
    if not is_unicode(text):
        raise TranscriptError(Refusal.TEXT_NOT_UNICODE, place)
    return text


def is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def object_of(value: Any) -> dict[str, JsonValue] | None:
    """Arguments that a format hands on as an object already; None if they are none."""
    return value if isinstance(value, dict) else None
