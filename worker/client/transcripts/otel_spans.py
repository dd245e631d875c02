"""OpenTelemetry GenAI spans in OTLP JSON, as a file exporter or a collector writes them.

The rules:

- A span whose ``gen_ai.operation.name`` is ``execute_tool`` is a tool call; ``chat``,
  ``text_completion`` and ``generate_content`` are model steps; all others are passed over.
- Calls stand by their start, whatever the order of the export. Times and durations are the
  spans' own. A span that stands twice in the same words is one span.
- ``gen_ai.tool.call.id`` is the call's id, else the span's. An id names one call.
- Arguments and results are recorded by an instrumentation only if asked: a call without
  its arguments or its result is an ERROR record. A result that is a quoted JSON string is
  the string inside.
- A span with an error status or an ``error.type`` is an ERROR record, and so is one that
  has no end.
- The question is the first text of a user in ``gen_ai.input.messages``, or ``query`` where
  messages were not recorded. The last model step's ``gen_ai.output.messages`` are the
  final text unless a call came after it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from contracts.base import is_blank
from contracts.strict_json import StrictJsonError, canonical, parse
from worker.client.transcripts.conversation import checked_id, checked_text, is_unicode
from worker.client.transcripts.otel_values import attributes_of, parts_of
from worker.client.transcripts.recording import (
    AGENT_TOOLS,
    AgentTool,
    Call,
    HelperTool,
    Result,
    read_arguments,
    record,
)
from worker.client.transcripts.results import failure_of
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError

_MODEL_STEPS = frozenset({"chat", "text_completion", "generate_content"})
_ERROR_STATUS = frozenset({2, "2", "STATUS_CODE_ERROR"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Span:
    place: str
    raw: dict[str, Any]
    attributes: dict[str, Any]
    started: int

    @property
    def operation(self) -> object:
        return self.attributes.get("gen_ai.operation.name")

    def text(self, name: str) -> str | None:
        """An attribute as text; a structured one as its JSON."""
        value = self.attributes.get(name)
        if value is None or isinstance(value, str):
            return value
        return canonical(value).decode()


def read_otel_spans(
    export: object,
    *,
    run_id: str,
    session_id: str,
    query: str = "",
    tools: Mapping[str, AgentTool] = AGENT_TOOLS,
) -> Transcript:
    """Read an object with ``resourceSpans``, or a list of such objects, as parsed from JSON.

    Raises TranscriptError where reading stops, pydantic.ValidationError for a run id
    outside the contract.
    """
    spans = sorted(_unique(_spans(export)), key=lambda span: (span.started, span.place))
    calls = [span for span in spans if span.operation == "execute_tool"]
    steps = [span for span in spans if span.operation in _MODEL_STEPS]
    question = query if not is_blank(query) else _question(spans)
    if is_blank(question):
        raise TranscriptError(Refusal.NO_QUESTION, "resourceSpans")
    records, helpers = [], 0
    seen: set[str] = set()
    for span in calls:
        call, result = _call(span, seen), _result(span)
        tool = tools.get(call.tool_name)
        if isinstance(tool, HelperTool):
            helpers += 1
        else:
            records.append(record(call, result, tool, run_id=run_id, session_id=session_id))
    last_step = steps[-1] if steps else None
    if last_step is not None and calls and calls[-1].started > last_step.started:
        last_step = None
    return Transcript(
        records=tuple(records),
        questions=(question,),
        final_text=_final(last_step) if last_step else None,
        model_steps=len(steps),
        helper_calls=helpers,
    )


def _spans(export: object) -> Iterator[_Span]:
    exports = export if isinstance(export, list | tuple) else [export]
    for number, one in enumerate(exports):
        top = f"[{number}]." if isinstance(export, list | tuple) else ""
        if not isinstance(one, dict) or "resourceSpans" not in one:
            raise TranscriptError(Refusal.NOT_MESSAGES, f"{top}resourceSpans")
        for resource, where in _items(one, "resourceSpans", top):
            for scope, inner in _items(resource, "scopeSpans", f"{where}."):
                for raw, place in _items(scope, "spans", f"{inner}."):
                    yield _span(raw, place)


def _items(owner: dict[str, Any], name: str, before: str) -> Iterator[tuple[dict[str, Any], str]]:
    value = owner.get(name) or []
    if not isinstance(value, list):
        raise TranscriptError(Refusal.NOT_MESSAGES, f"{before}{name}")
    for index, item in enumerate(value):
        place = f"{before}{name}[{index}]"
        if not isinstance(item, dict):
            raise TranscriptError(Refusal.NOT_A_SPAN, place)
        yield item, place


def _span(raw: dict[str, Any], place: str) -> _Span:
    attributes = attributes_of(raw.get("attributes"), f"{place}.attributes")
    started = _nanoseconds(raw.get("startTimeUnixNano"), f"{place}.startTimeUnixNano")
    if not started:
        raise TranscriptError(Refusal.BAD_TIME, f"{place}.startTimeUnixNano")
    return _Span(place, raw, attributes, started)


def _unique(spans: Iterator[_Span]) -> list[_Span]:
    """Exporters send again what was not acknowledged: the same span in the same words is one."""
    known: dict[tuple[str, str], _Span] = {}
    for span in spans:
        trace, id_ = span.raw.get("traceId"), span.raw.get("spanId")
        if not isinstance(trace, str) or not isinstance(id_, str) or not id_:
            raise TranscriptError(Refusal.NOT_A_SPAN, f"{span.place}.spanId")
        twin = known.setdefault((trace, id_), span)
        if twin.raw != span.raw:
            raise TranscriptError(Refusal.REUSED_CALL_ID, f"{span.place}.spanId")
    return list(known.values())


def _call(span: _Span, seen: set[str]) -> Call:
    place = f"{span.place}.attributes"
    call_id = span.attributes.get("gen_ai.tool.call.id") or span.raw.get("spanId")
    checked = checked_id(call_id, f"{place}[gen_ai.tool.call.id]")
    if checked in seen:
        raise TranscriptError(Refusal.REUSED_CALL_ID, f"{place}[gen_ai.tool.call.id]")
    seen.add(checked)
    name = span.attributes.get("gen_ai.tool.name")
    if not isinstance(name, str) or is_blank(name) or not is_unicode(name):
        raise TranscriptError(Refusal.NOT_A_CALL, f"{place}[gen_ai.tool.name]")
    arguments = span.text("gen_ai.tool.call.arguments")
    request = None if arguments is None else read_arguments(arguments)
    return Call(checked, name, request, _moment(span.started))


def _result(span: _Span) -> Result | None:
    """None for a span without an end."""
    place = f"{span.place}.endTimeUnixNano"
    ended = _nanoseconds(span.raw.get("endTimeUnixNano"), place)
    if not ended:
        return None
    if ended < span.started:
        raise TranscriptError(Refusal.BAD_TIME, place)
    text = span.text("gen_ai.tool.call.result")
    if text is not None:
        text = _unquoted(checked_text(text, f"{span.place}.attributes[gen_ai.tool.call.result]"))
    duration = round((ended - span.started) / 1e6)
    return Result(text, _moment(ended), _failure(span, text), duration)


def _failure(span: _Span, text: str | None) -> str | None:
    status = span.raw.get("status")
    status = status if isinstance(status, dict) else {}
    kind = span.attributes.get("error.type")
    code = status.get("code")
    if kind is None and not (isinstance(code, int | str) and code in _ERROR_STATUS):
        return None
    message = status.get("message")
    told = (part for part in (kind, message) if isinstance(part, str) and is_unicode(part))
    return failure_of(" ".join(told) or text)


def _question(spans: list[_Span]) -> str:
    for span in spans:
        for text in parts_of(span.attributes.get("gen_ai.input.messages"), "user"):
            return text
    return ""


def _final(span: _Span) -> str | None:
    text = "\n".join(parts_of(span.attributes.get("gen_ai.output.messages"), "assistant"))
    return None if is_blank(text) else text


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        inner = parse(text)
    except StrictJsonError:
        return text
    return inner if isinstance(inner, str) else text


def _nanoseconds(value: object, place: str) -> int:
    """OTLP JSON writes 64-bit numbers as text; 0 where there is none."""
    if value is None or value == "":
        return 0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise TranscriptError(Refusal.BAD_TIME, place)
    return value


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
