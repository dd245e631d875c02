"""``query_metrics``: points of time series within a window.

Self-authored is an expression that reads no series: a bare number, ``vector(1)``,
arithmetic over them, or ``label_replace`` that hangs words on them. An expression
that reads a series only to drop its value (``up * 0 + 5``) is not noticed here; the
review sees it, since the exact expression is part of the scope.
"""

import re

from contracts.base import is_blank
from contracts.evidence import EvidenceStatus, QueryMetricsRequest, QueryMetricsResult
from worker.guards.tools.projection import Observed, ToolProjection

_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?|'(?:[^'\\]|\\.)*+'?|`[^`]*`?", re.DOTALL)
_NUMBER = re.compile(
    r"(?<![\w:])(?:0[xX][0-9A-Fa-f]++|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)(?!\w)"
)
_NAME = re.compile(r"[A-Za-z_:][\w:]*")
_CONSTANT = frozenset(
    {"vector", "scalar", "label_replace", "label_join", "bool", "and", "or", "unless"}
    | {"inf", "nan"}
)


def reads_no_series(query: str) -> bool:
    """Tell whether a PromQL expression is made of constants only."""
    bare = _NUMBER.sub(" ", _STRING.sub(" ", query))
    if "{" in bare:
        return False
    return all(name.lower() in _CONSTANT for name in _NAME.findall(bare))


def _status(result: QueryMetricsResult) -> EvidenceStatus | None:
    if any(series.points for series in result.series):
        return EvidenceStatus.EVIDENCE_FOUND
    return EvidenceStatus.NO_EVIDENCE


def _self_authored(request: QueryMetricsRequest, _: QueryMetricsResult) -> bool:
    return reads_no_series(request.query)


def _observed(request: QueryMetricsRequest, result: QueryMetricsResult) -> Observed:
    points = sum(len(series.points) for series in result.series)
    return Observed(start=request.start, end=request.end, count=points)


PROJECTION = ToolProjection(
    request=QueryMetricsRequest,
    result=QueryMetricsResult,
    source=lambda request: request.source,
    scope=("query", "start", "end"),
    asks=lambda request: request.start <= request.end and not is_blank(request.query),
    status=_status,
    self_authored=_self_authored,
    observed=_observed,
)
