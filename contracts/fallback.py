"""The safe fallback: fixed words, verified sources and observed facts, nothing of the draft."""

from enum import StrEnum
from typing import Literal

from contracts.base import Contract, SourceName, Timestamp


class FallbackType(StrEnum):
    INSUFFICIENT_EVIDENCE = "INSUFFICIENT_EVIDENCE"
    MISSING_REQUIRED_CONTEXT = "MISSING_REQUIRED_CONTEXT"
    EVIDENCE_VALIDATION_FAILED = "EVIDENCE_VALIDATION_FAILED"
    SEMANTIC_UNSUPPORTED = "SEMANTIC_UNSUPPORTED"
    SEMANTIC_UNAVAILABLE = "SEMANTIC_UNAVAILABLE"

    LOW_CONFIDENCE = "LOW_CONFIDENCE"
    CLAIMS_REJECTED = "CLAIMS_REJECTED"
    PRE_VERIFICATION = "PRE_VERIFICATION"


COMPOSED = frozenset({FallbackType.LOW_CONFIDENCE, FallbackType.CLAIMS_REJECTED})
"""Endings of claims that carry a composed answer beside the fixed words."""

OF_CLAIMS = COMPOSED | {FallbackType.PRE_VERIFICATION}
"""Endings that only a run of claims can have; the others belong to drafts."""


Locale = Literal["en", "zh-CN"]


class VerifiedSource(Contract):
    """A system that was really looked at: tool, name and time, never a query or command."""

    tool: str
    source: SourceName
    observed_at: Timestamp


class SafeFallback(Contract):
    """What a reader gets instead of a draft that may not be released."""

    type: FallbackType
    locale: Locale
    conclusion: None = None
    title: str
    message: str
    observed_facts: tuple[str, ...] = ()
    verified_sources: tuple[VerifiedSource, ...] = ()
