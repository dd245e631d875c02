"""``lookup_knowledge``: passages from a knowledge base."""

from contracts.base import is_blank
from contracts.evidence import EvidenceStatus, LookupKnowledgeRequest, LookupKnowledgeResult
from worker.guards.tools.projection import Observed, ToolProjection


def _status(result: LookupKnowledgeResult) -> EvidenceStatus | None:
    if not result.documents:
        return EvidenceStatus.NO_EVIDENCE
    if any(is_blank(document.excerpt) for document in result.documents):
        return None
    return EvidenceStatus.EVIDENCE_FOUND


def _self_authored(_: LookupKnowledgeRequest, __: LookupKnowledgeResult) -> bool:
    return False  # the passages come from the store; a query cannot write them


def _observed(_: LookupKnowledgeRequest, result: LookupKnowledgeResult) -> Observed:
    return Observed(count=len(result.documents))


PROJECTION = ToolProjection(
    request=LookupKnowledgeRequest,
    result=LookupKnowledgeResult,
    source=lambda request: request.source,
    scope=("query",),
    asks=lambda request: not is_blank(request.query),
    status=_status,
    self_authored=_self_authored,
    observed=_observed,
)
