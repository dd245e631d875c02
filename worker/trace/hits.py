"""What a call came to, how strong it is, and the concrete piece that shows it.

A hit is DIRECT where the result shows the thing itself: a log line, a value, a row, an
output. It is INDIRECT where it only counts or tells what is known in general: a pattern
without a line, an error output, a passage of a runbook that was not found to be highly
relevant. Everything else has no level.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from contracts.base import is_blank
from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle
from contracts.strict_json import StrictJsonError, canonical, parse
from contracts.trace import EvidenceLevel, TraceOutcome
from worker.trace.bounds import cut

MOST_EXCERPT = 400
"""Bytes of an excerpt."""

_NAMES_OF_CALL = frozenset({"tool_name", "tool_call_id", "evidence_status"})
_HIGH = "HIGH"


@dataclass(frozen=True)
class Reading:
    """One call as the summary sees it; ``excerpt`` only of a hit."""

    outcome: TraceOutcome
    level: EvidenceLevel = EvidenceLevel.NONE
    excerpt: str | None = None


def read(record: InvocationRecord) -> Reading:
    """Read a record. Failed, unfinished, empty and deduplicated calls never have a level.

    A truncated call with something to show is a hit like any other.
    """
    if record.lifecycle is Lifecycle.PROJECTING:
        return Reading(TraceOutcome.UNFINISHED)
    if record.lifecycle is Lifecycle.ERROR or record.evidence_status in {
        None,
        EvidenceStatus.ERROR,
    }:
        return Reading(TraceOutcome.FAILED)
    if record.deduplicated:
        return Reading(TraceOutcome.DEDUPLICATED)
    if record.evidence_status is EvidenceStatus.NO_EVIDENCE:
        return Reading(TraceOutcome.NO_HIT)
    level, text = _concrete(record)
    if is_blank(text):
        return Reading(TraceOutcome.NO_HIT)
    return Reading(TraceOutcome.HIT, level, cut(text.strip(), MOST_EXCERPT)[0])


def _concrete(record: InvocationRecord) -> tuple[EvidenceLevel, str]:
    """The first concrete piece of a result: of its projection, else of its preview."""
    content = _content(record)
    if content is None:
        shown = record.output_preview or record.agent_result or ""
        return EvidenceLevel.DIRECT, _first_line(shown)
    try:
        level, text = _SHOWN.get(record.tool_name, _any)(content)
    except (LookupError, TypeError, AttributeError, ValueError, StopIteration):
        level, text = EvidenceLevel.DIRECT, ""  # off its shape: only the preview can show it
    if record.retrieval and (record.retrieval.relevance_level or "").upper() == _HIGH:
        level = EvidenceLevel.DIRECT
    if is_blank(text) and record.output_preview:
        text = _first_line(record.output_preview)
    return level, text


def _content(record: InvocationRecord) -> dict[str, Any] | None:
    try:
        content = parse(record.agent_result or "")
    except StrictJsonError:
        return None
    return content if isinstance(content, dict) else None


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if not is_blank(line)), "")


def _documents(content: dict[str, Any]) -> tuple[EvidenceLevel, str]:
    first = content["documents"][0]
    return EvidenceLevel.INDIRECT, f"{first['title']}: {first['excerpt']}"


def _logs(content: dict[str, Any]) -> tuple[EvidenceLevel, str]:
    if content.get("events"):
        event = content["events"][0]
        words = (event["timestamp"], event.get("level") or "", event["message"])
        return EvidenceLevel.DIRECT, " ".join(filter(None, words))
    pattern = content["patterns"][0]
    return EvidenceLevel.INDIRECT, f"{pattern['count']} times: {pattern['pattern']}"


def _metrics(content: dict[str, Any]) -> tuple[EvidenceLevel, str]:
    series = next(one for one in content["series"] if one["points"])
    point = max(series["points"], key=lambda one: one["value"])
    labels = ", ".join(f"{name}={value}" for name, value in series["labels"].items())
    unit = f" {series['unit']}" if series.get("unit") else ""
    return EvidenceLevel.DIRECT, f"{labels} {point['timestamp']} {point['value']}{unit}"


def _rows(content: dict[str, Any]) -> tuple[EvidenceLevel, str]:
    cells = zip(content["columns"], content["rows"][0], strict=True)
    return EvidenceLevel.DIRECT, ", ".join(f"{name}={cell}" for name, cell in cells)


def _command(content: dict[str, Any]) -> tuple[EvidenceLevel, str]:
    if not is_blank(content["stdout"]):
        return EvidenceLevel.DIRECT, _first_line(content["stdout"])
    return EvidenceLevel.INDIRECT, _first_line(content["stderr"])


def _any(content: dict[str, Any]) -> tuple[EvidenceLevel, str]:
    """A tool that nothing is known of: its fields as they are, if any of them holds something."""
    fields = {name: value for name, value in content.items() if name not in _NAMES_OF_CALL}
    if not any(fields.values()):
        return EvidenceLevel.NONE, ""
    return EvidenceLevel.DIRECT, canonical(fields).decode()


_SHOWN: Mapping[str, Callable[[dict[str, Any]], tuple[EvidenceLevel, str]]] = {
    "lookup_knowledge": _documents,
    "query_logs": _logs,
    "query_metrics": _metrics,
    "query_mysql": _rows,
    "run_command": _command,
}
