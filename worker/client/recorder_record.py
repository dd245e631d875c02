"""From one call of a tool to its record: what was asked, and what became of it.

Nothing here writes, and nothing raises for what a tool was given or returned: whatever
cannot be recorded as evidence is an ERROR record with its reason.
"""

import asyncio
from concurrent.futures import CancelledError
from datetime import UTC, datetime
from time import monotonic

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from contracts.base import SourceName
from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle
from contracts.strict_json import canonical, parse
from worker.client.recorder_findings import Failure, Finding, Outcome
from worker.guards.tools import AnyProjection
from worker.trace.lifecycle import Ended, ErrorCode, failed, readable_request, ready
from worker.trace.masking import Masked, mask, mask_text

_SOURCE: TypeAdapter[str] = TypeAdapter(SourceName)


class CallRecord:
    """The record of one call, from its beginning to its end; times are taken here."""

    def __init__(
        self,
        *,
        run_id: str,
        session_id: str,
        tool_call_id: str,
        tool_name: str,
        projection: AnyProjection | None,
        request: object,
    ) -> None:
        """Raises pydantic.ValidationError when an id or a name is outside the contract."""
        readable, self._flaw = readable_request(request)
        self._masked = mask(readable)
        self._projection = projection
        self._since = monotonic()
        self.begun = InvocationRecord(
            run_id=run_id,
            session_id=session_id,
            tool_call_id=tool_call_id,
            tool_name=tool_name,
            lifecycle=Lifecycle.PROJECTING,
            request=self._masked.request,
            started_at=datetime.now(UTC),
        )

    def ended(self, outcome: Outcome | ErrorCode) -> InvocationRecord:
        """The final record of a call that came back; a code tells why there is no outcome."""
        return ended(self.begun, self._now(), self._flaw or outcome, self._masked, self._projection)

    def raised(self, error: BaseException) -> InvocationRecord:
        """The final record of a call that raised, timed out or was stopped."""
        words = mask_text(self._masked.hide(f"{type(error).__name__} {_told(error)}"))
        return failed(self.begun, self._now(), f"{code_of(error)}: {words}")

    def _now(self) -> Ended:
        return Ended(datetime.now(UTC), max(0, round((monotonic() - self._since) * 1000)))


def ended(
    begun: InvocationRecord,
    at: Ended,
    outcome: Outcome | ErrorCode,
    masked: Masked,
    projection: AnyProjection | None,
) -> InvocationRecord:
    """The final record of a call that came back, live or in a transcript.

    ``masked`` are the parameters of ``begun``, ``projection`` its tool's, or None.
    """
    if isinstance(outcome, ErrorCode):
        return failed(begun, at, outcome)
    shown = masked.hide(outcome.shown)
    if isinstance(outcome, Failure):
        words = mask_text(masked.hide(outcome.message))
        message = f"{ErrorCode.TOOL_FAILED}: {words}"
        return failed(begun, at, message, shown=shown, retrieval=outcome.retrieval)
    projected = _projected(begun, outcome, masked, projection)
    if isinstance(projected, ErrorCode):
        return failed(begun, at, projected, shown=shown, retrieval=outcome.retrieval)
    result, status = projected
    return ready(
        begun,
        at,
        result=result,
        status=status,
        shown=shown,
        truncated=outcome.truncated,
        deduplicated=outcome.deduplicated,
        retrieval=outcome.retrieval,
    )


def _projected(
    begun: InvocationRecord, finding: Finding, masked: Masked, projection: AnyProjection | None
) -> tuple[str, EvidenceStatus] | ErrorCode:
    """The projection's JSON and the status that its content bears out, or why there is none."""
    if projection is None:
        return ErrorCode.TOOL_UNKNOWN
    try:
        request = projection.request.model_validate_json(canonical(begun.request))
        _SOURCE.validate_python(projection.source(request))
        if not projection.asks(request):
            return ErrorCode.REQUEST_INVALID
    except ValueError:
        return ErrorCode.REQUEST_INVALID
    try:
        content = masked.hide_in(to_jsonable_python(dict(finding.fields)))
        content |= {
            "tool_call_id": begun.tool_call_id,
            "tool_name": begun.tool_name,
            "evidence_status": EvidenceStatus.EVIDENCE_FOUND.value,
        }
        strict = parse(canonical(content))
        status = projection.status(projection.result.model_validate_json(canonical(strict)))
    except (ValueError, TypeError, RecursionError):
        return ErrorCode.PROJECTION_INVALID
    if status is None:
        return ErrorCode.PROJECTION_CONTRADICTORY
    content["evidence_status"] = status.value
    return canonical(content).decode(), status


def code_of(error: BaseException) -> ErrorCode:
    """What an exception of a tool came to. Every library has a timeout of its own name."""
    if isinstance(error, asyncio.CancelledError | CancelledError | GeneratorExit):
        return ErrorCode.TOOL_CANCELLED
    if any("timeout" in kind.__name__.lower() for kind in type(error).__mro__):
        return ErrorCode.TOOL_TIMED_OUT
    return ErrorCode.TOOL_FAILED if isinstance(error, Exception) else ErrorCode.TOOL_INTERRUPTED


def _told(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure itself
        return ""
