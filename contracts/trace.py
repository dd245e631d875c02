"""The trace summary: what a run's tool calls came to, for people and for an audit.

It is made from invocation records by ``worker.trace`` and is never evidence itself.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from contracts.base import Contract
from contracts.evidence import ToolCallId

Count = Annotated[int, Field(ge=0)]


class EvidenceLevel(StrEnum):
    """How strongly a call's result bears on its topic."""

    NONE = "NONE"
    INDIRECT = "INDIRECT"
    DIRECT = "DIRECT"


class TraceOutcome(StrEnum):
    """What a call came to, or all calls of one entry together."""

    HIT = "HIT"
    NO_HIT = "NO_HIT"
    DEDUPLICATED = "DEDUPLICATED"
    FAILED = "FAILED"
    UNFINISHED = "UNFINISHED"


class TraceGap(Contract):
    """A call that leaves a hole: it failed, or it never ended. ``reason`` is bounded."""

    invocation_id: ToolCallId
    outcome: TraceOutcome
    reason: str


class TraceEntry(Contract):
    """All calls of one tool on one topic.

    ``level`` is the strongest of the calls that hit; ``excerpt`` is a bounded piece of that
    call's result, and ``excerpt_invocation_id`` the call. ``repeated_calls`` are those after
    the first. Each call is counted in exactly one of the five counts that follow it.
    """

    tool: str
    topic: str
    outcome: TraceOutcome
    level: EvidenceLevel
    output_summary: str
    excerpt: str | None
    excerpt_invocation_id: ToolCallId | None
    source_invocation_ids: tuple[ToolCallId, ...]
    calls: Count
    repeated_calls: Count
    hit_calls: Count
    no_hit_calls: Count
    deduplicated_calls: Count
    failed_calls: Count
    unfinished_calls: Count
    truncated_calls: Count
    gaps: tuple[TraceGap, ...]


class SessionCounts(Contract):
    """What a session did: none of the three is part of another."""

    model_steps: Count = 0
    evidence_calls: Count = 0
    helper_calls: Count = 0
