"""What the evidence check must know about a search for traces before it believes a result."""

from pydantic import Field

from contracts.base import Contract, OpenContract, SourceName, Timestamp, is_blank
from contracts.evidence import EvidenceStatus, Projection
from worker.guards.tools import Observed, ToolProjection


class QueryTracesRequest(OpenContract):
    """Where was looked, and for what: the spans of a service within a window."""

    source: SourceName
    service: str
    start: Timestamp
    end: Timestamp
    slower_than_ms: int = Field(default=0, ge=0)


class TraceSpan(Contract):
    operation: str
    duration_ms: float = Field(ge=0)
    failed: bool = False


class QueryTracesResult(Projection):
    """The slowest spans first. The three fields of ``Projection`` are the recorder's affair."""

    tool_name: str
    spans: tuple[TraceSpan, ...]


def _asks(request: QueryTracesRequest) -> bool:
    return request.start <= request.end and not is_blank(request.service)


def _status(result: QueryTracesResult) -> EvidenceStatus | None:
    if any(is_blank(span.operation) for span in result.spans):
        return None  # a span of nothing: the answer contradicts itself
    return EvidenceStatus.EVIDENCE_FOUND if result.spans else EvidenceStatus.NO_EVIDENCE


def _self_authored(_: QueryTracesRequest, __: QueryTracesResult) -> bool:
    return False  # spans come from the store; a query cannot write them


def _observed(request: QueryTracesRequest, result: QueryTracesResult) -> Observed:
    return Observed(start=request.start, end=request.end, count=len(result.spans))


PROJECTION = ToolProjection(
    request=QueryTracesRequest,
    result=QueryTracesResult,
    source=lambda request: request.source,
    scope=("service", "start", "end", "slower_than_ms"),
    asks=_asks,
    status=_status,
    self_authored=_self_authored,
    observed=_observed,
)
