"""``query_logs``: patterns and events of a log store within a window.

An empty query is allowed: it asks for everything in the window.
"""

from contracts.evidence import EvidenceStatus, QueryLogsRequest, QueryLogsResult
from worker.guards.tools.projection import Observed, ToolProjection


def _status(result: QueryLogsResult) -> EvidenceStatus | None:
    shown = bool(result.patterns or result.events)
    if result.total_matches == 0:
        return None if shown else EvidenceStatus.NO_EVIDENCE
    if not shown or len(result.events) > result.total_matches:
        return None
    if any(pattern.count > result.total_matches for pattern in result.patterns):
        return None
    return EvidenceStatus.EVIDENCE_FOUND


def _self_authored(_: QueryLogsRequest, __: QueryLogsResult) -> bool:
    return False  # the lines come from the store; a query cannot write them


def _observed(request: QueryLogsRequest, result: QueryLogsResult) -> Observed:
    return Observed(
        start=request.start, end=request.end, level=request.level, count=result.total_matches
    )


PROJECTION = ToolProjection(
    request=QueryLogsRequest,
    result=QueryLogsResult,
    source=lambda request: request.source,
    scope=("query", "start", "end", "level"),
    asks=lambda request: request.start <= request.end,
    status=_status,
    self_authored=_self_authored,
    observed=_observed,
)
