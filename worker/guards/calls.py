"""From the stored bytes of one invocation to a verified call, or to the reason why not.

Nothing in here raises for what was stored: whatever is wrong is a code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle
from contracts.fallback import VerifiedSource
from contracts.strict_json import StrictJsonError, canonical, parse
from worker.guards.tools import AnyProjection, Observed
from worker.guards.tools.projection import REPEATED
from worker.guards.violations import ViolationCode

MAX_RECORD_BYTES = 4_194_304
"""A larger record is not read at all. Recorders cut what they keep far below this."""

CITABLE = frozenset({EvidenceStatus.EVIDENCE_FOUND, EvidenceStatus.NO_EVIDENCE})


@dataclass(frozen=True)
class VerifiedCall:
    """One call of this run that really looked, and what it found.

    ``found`` is false for an empty result. ``scope``, ``excerpt`` and ``values`` are what
    the snapshot shows; ``observed`` is what a fallback may tell. ``size`` is the stored
    record's length in bytes.
    """

    tool_call_id: str
    origin: VerifiedSource
    found: bool
    truncated: bool
    deduplicated: bool
    scope: dict[str, JsonValue]
    excerpt: str | None
    values: dict[str, JsonValue] | None
    observed: Observed
    size: int


class _RefusedError(Exception):
    """Carries the code of the first broken rule out of the steps below."""

    def __init__(self, code: ViolationCode) -> None:
        super().__init__(code)
        self.code = code


def read_call(
    run_id: str,
    tool_call_id: str,
    stored: bytes | None,
    tools: Mapping[str, AnyProjection],
) -> VerifiedCall | ViolationCode:
    """Check one record against the run, the id that cites it and its tool's projection.

    The rules are those of the spec ``evidence-check``; the first that is broken is
    returned. Whether the draft may use the call as it does is not decided here.
    """
    if stored is None:
        return ViolationCode.RECORD_MISSING
    try:
        record = _owned(run_id, tool_call_id, stored)
        projection = tools.get(record.tool_name)
        if projection is None:
            return ViolationCode.TOOL_UNKNOWN
        return _projected(record, projection, len(stored))
    except _RefusedError as refused:
        return refused.code


def _owned(run_id: str, tool_call_id: str, stored: bytes) -> InvocationRecord:
    if len(stored) > MAX_RECORD_BYTES:
        raise _RefusedError(ViolationCode.RECORD_TOO_LARGE)
    try:
        parse(stored)  # what it passes, both parsers read alike
        record = InvocationRecord.model_validate_json(stored)
    except (StrictJsonError, ValidationError):
        raise _RefusedError(ViolationCode.RECORD_UNREADABLE) from None
    if record.run_id != run_id:
        raise _RefusedError(ViolationCode.RECORD_FOREIGN_RUN)
    if record.tool_call_id != tool_call_id:
        raise _RefusedError(ViolationCode.RECORD_ID_MISMATCH)
    if record.lifecycle is not Lifecycle.READY:
        raise _RefusedError(ViolationCode.RECORD_NOT_READY)
    if record.evidence_status not in CITABLE or record.success is False:
        raise _RefusedError(ViolationCode.STATUS_NOT_CITABLE)
    if not record.agent_result:
        raise _RefusedError(ViolationCode.RESULT_EMPTY)
    return record


def _projected(record: InvocationRecord, projection: AnyProjection, size: int) -> VerifiedCall:
    request, origin = _asked(record, projection)
    raw, result = _answered(record, projection)
    if projection.status(result) != record.evidence_status:
        raise _RefusedError(ViolationCode.STATUS_INCONSISTENT)
    found = record.evidence_status is EvidenceStatus.EVIDENCE_FOUND
    if found and projection.self_authored(request, result):
        raise _RefusedError(ViolationCode.EVIDENCE_SELF_AUTHORED)
    return VerifiedCall(
        tool_call_id=record.tool_call_id,
        origin=origin,
        found=found,
        truncated=record.truncated,
        deduplicated=record.deduplicated,
        scope=projection.shown_scope(record.request),
        excerpt=raw[projection.excerpt] if found and projection.excerpt else None,
        values=projection.shown_values(raw) if found else None,
        observed=projection.observed(request, result),
        size=size,
    )


def _asked(record: InvocationRecord, projection: AnyProjection) -> tuple[Any, VerifiedSource]:
    try:
        request = projection.request.model_validate_json(canonical(record.request))
        origin = VerifiedSource(
            tool=record.tool_name,
            source=projection.source(request),
            observed_at=record.completed_at or record.started_at,
        )
    except ValidationError:
        raise _RefusedError(ViolationCode.REQUEST_INVALID) from None
    if not projection.asks(request):
        raise _RefusedError(ViolationCode.REQUEST_INVALID)
    return request, origin


def _answered(record: InvocationRecord, projection: AnyProjection) -> tuple[dict[str, Any], Any]:
    try:
        raw = parse(record.agent_result or "")
    except StrictJsonError:
        raise _RefusedError(ViolationCode.PROJECTION_INVALID) from None
    if not isinstance(raw, dict):
        raise _RefusedError(ViolationCode.PROJECTION_INVALID)
    if any(raw.get(name) != getattr(record, name) for name in REPEATED):
        raise _RefusedError(ViolationCode.PROJECTION_MISMATCH)
    try:
        return raw, projection.result.model_validate_json(record.agent_result or "")
    except ValidationError:
        raise _RefusedError(ViolationCode.PROJECTION_INVALID) from None
