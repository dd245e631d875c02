"""The trace summary: what the calls of a run came to, by tool and topic.

The rules, all of them of the evidence trace's specification:

- Each call is counted once, as hit, no hit, deduplicated, failed or unfinished.
- The level is that of the strongest hit; calls that did not hit never raise it.
- The excerpt is of the strongest hit, of the first one among equals, and names its call.
- Failed and unfinished calls stay visible as gaps with their reason.
- All calls that were merged keep their ids.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from contracts.evidence import InvocationRecord
from contracts.trace import EvidenceLevel, TraceEntry, TraceGap, TraceOutcome
from worker.trace.bounds import cut
from worker.trace.hits import Reading, read
from worker.trace.topics import topic_of

MOST_GAPS = 20
"""Gaps that an entry tells; all of them are counted."""
MOST_REASON = 200

_RANK = {level: rank for rank, level in enumerate(EvidenceLevel)}
_BY_WEIGHT = (
    TraceOutcome.HIT,
    TraceOutcome.NO_HIT,
    TraceOutcome.DEDUPLICATED,
    TraceOutcome.UNFINISHED,
    TraceOutcome.FAILED,
)
"""What an entry is as a whole: the first of these that any of its calls is."""


def summarise(records: Iterable[InvocationRecord]) -> tuple[TraceEntry, ...]:
    """Summarise records in the order of the calls; entries stand by their first call.

    Linear in the records. A record that stands twice is counted once.
    """
    merged: dict[tuple[str, str], dict[str, InvocationRecord]] = {}
    for record in records:
        key = record.tool_name, topic_of(record.tool_name, record.request)
        merged.setdefault(key, {})[record.tool_call_id] = record
    return tuple(
        _entry(tool, topic, tuple(calls.values())) for (tool, topic), calls in merged.items()
    )


def _entry(tool: str, topic: str, records: Sequence[InvocationRecord]) -> TraceEntry:
    readings = [read(record) for record in records]
    counts = Counter(reading.outcome for reading in readings)
    strongest = max(
        (pair for pair in zip(readings, records, strict=True) if pair[0].excerpt is not None),
        key=lambda pair: _RANK[pair[0].level],
        default=None,
    )
    outcome = next(one for one in _BY_WEIGHT if counts[one])
    return TraceEntry(
        tool=tool,
        topic=topic,
        outcome=outcome,
        level=strongest[0].level if strongest else EvidenceLevel.NONE,
        output_summary=_told(outcome, counts),
        excerpt=strongest[0].excerpt if strongest else None,
        excerpt_invocation_id=strongest[1].tool_call_id if strongest else None,
        source_invocation_ids=tuple(record.tool_call_id for record in records),
        calls=len(records),
        repeated_calls=len(records) - 1,
        hit_calls=counts[TraceOutcome.HIT],
        no_hit_calls=counts[TraceOutcome.NO_HIT],
        deduplicated_calls=counts[TraceOutcome.DEDUPLICATED],
        failed_calls=counts[TraceOutcome.FAILED],
        unfinished_calls=counts[TraceOutcome.UNFINISHED],
        truncated_calls=sum(record.truncated or record.preview_truncated for record in records),
        gaps=_gaps(records, readings),
    )


def _gaps(records: Sequence[InvocationRecord], readings: Sequence[Reading]) -> tuple[TraceGap, ...]:
    holes = [
        (record, reading)
        for record, reading in zip(records, readings, strict=True)
        if reading.outcome in {TraceOutcome.FAILED, TraceOutcome.UNFINISHED}
    ]
    return tuple(
        TraceGap(
            invocation_id=record.tool_call_id,
            outcome=reading.outcome,
            reason=_reason(record, reading.outcome),
        )
        for record, reading in holes[:MOST_GAPS]
    )


def _reason(record: InvocationRecord, outcome: TraceOutcome) -> str:
    if outcome is TraceOutcome.UNFINISHED:
        return "the call has no end: it is still running, or its process died"
    return cut(record.error_message or "the call failed and gave no reason", MOST_REASON)[0]


_SENTENCES = {
    TraceOutcome.HIT: "evidence was found",
    TraceOutcome.NO_HIT: "the calls completed and found no usable evidence",
    TraceOutcome.DEDUPLICATED: "no new evidence: the calls were answered with what was seen before",
    TraceOutcome.UNFINISHED: "no evidence: no call has ended",
    TraceOutcome.FAILED: "no evidence: the calls failed, so nothing is known here",
}
_COUNTED = {
    TraceOutcome.HIT: "with evidence",
    TraceOutcome.NO_HIT: "without",
    TraceOutcome.DEDUPLICATED: "deduplicated",
    TraceOutcome.FAILED: "failed",
    TraceOutcome.UNFINISHED: "unfinished",
}


def _told(outcome: TraceOutcome, counts: Counter[TraceOutcome]) -> str:
    """One line in fixed words and numbers."""
    parts = [f"{counts[one]} {words}" for one, words in _COUNTED.items() if counts[one]]
    return f"{_SENTENCES[outcome]} ({', '.join(parts)})"
