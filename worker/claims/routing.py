"""Where a claims run goes from one part to the next. How it ends is told by its record."""

from collections.abc import Sequence
from enum import StrEnum

from contracts.claims import EvidenceGap, NamedGap, RetryContext, Verdict
from contracts.messages import RequestedEvidence

MAX_RETRIES = 1
"""Evidence is asked for once in a run."""

MAX_REQUESTED = 20
MAX_MISSING = 500
"""Characters of the agent's own words on one gap, sent back to it."""


class Route(StrEnum):
    VERIFY = "VERIFY"
    COMPOSE = "COMPOSE"
    REQUEST_EVIDENCE = "REQUEST_EVIDENCE"
    FALLBACK = "FALLBACK"
    """The pre-verification fallback: no verdict was reached, and none is told."""


def after_gate(ceiling: Verdict | None) -> Route:
    """The way on from the gate; None tells that the output could not be read."""
    if ceiling is None or ceiling is Verdict.REJECT:
        return Route.FALLBACK
    return Route.VERIFY


def after_verifier(
    effective: Verdict | None,
    ceiling: Verdict,
    gaps: Sequence[NamedGap | EvidenceGap],
    retries: int,
) -> Route:
    """The way on from the verifier; None tells that it failed for good.

    ``effective`` is the verdict before any threshold, ``gaps`` are known ones
    (:func:`worker.claims.output.known_gaps`), ``retries`` is how often this run has
    asked for evidence.
    """
    if effective is None:
        return Route.FALLBACK
    may_ask = effective is Verdict.LOW_CONFID and ceiling is Verdict.PASS and retries < MAX_RETRIES
    if may_ask and any(gap.critical for gap in gaps):
        return Route.REQUEST_EVIDENCE
    return Route.COMPOSE


def requested(gaps: Sequence[EvidenceGap]) -> tuple[RequestedEvidence, ...]:
    """What to ask the agent for: the critical ones of its known gaps, each once."""
    wanted = dict.fromkeys(
        RequestedEvidence(
            claim_id=gap.claim_id, tool_name=gap.tool_name, missing=gap.description[:MAX_MISSING]
        )
        for gap in gaps
        if gap.critical
    )
    return tuple(wanted)[:MAX_REQUESTED]


def retry_context(gaps: Sequence[NamedGap]) -> RetryContext:
    """What the verifier of the next round is told: names only, none of the agent's words."""
    critical = dict.fromkeys(gap for gap in gaps if gap.critical)
    return RetryContext(requested=tuple(critical)[:MAX_REQUESTED])
