"""The effective verdict: code has the last word, and the model can only make it stricter."""

from collections.abc import Iterable, Sequence

from contracts.claims import (
    ClaimCheck,
    Classification,
    Verdict,
    VerifiedClaim,
    VerifiedMaterial,
    VerifierAnswer,
)

LEAST_SCORE = 0.5
"""A groundedness score below this caps the verdict at LOW_CONFID."""

_STRICTEST_FIRST = (Verdict.REJECT, Verdict.LOW_CONFID, Verdict.PASS)
_SUPPORTED = frozenset({Classification.DIRECT_OBSERVATION, Classification.REASONABLE_INFERENCE})


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """The strictest of at least one verdict."""
    return min(verdicts, key=_STRICTEST_FIRST.index)


def allowed_by_checks(claims: Sequence[VerifiedClaim], checks: Sequence[ClaimCheck]) -> Verdict:
    """The best verdict that the checks of these claims allow.

    REJECT if a critical claim is contradicted. PASS if every critical claim is observed
    or inferred, at least one of them observed, and no other claim contradicted.
    """
    critical = {claim.claim_id for claim in claims if claim.critical}
    of_critical = [check.classification for check in checks if check.claim_id in critical]
    if Classification.CONTRADICTED in of_critical:
        return Verdict.REJECT
    if any(check.classification is Classification.CONTRADICTED for check in checks):
        return Verdict.LOW_CONFID
    if Classification.DIRECT_OBSERVATION in of_critical and _SUPPORTED.issuperset(of_critical):
        return Verdict.PASS
    return Verdict.LOW_CONFID


def effective_verdict(
    model: Verdict,
    claims: Sequence[VerifiedClaim],
    checks: Sequence[ClaimCheck],
    ceiling: Verdict,
) -> Verdict:
    """The strictest of the model's verdict, what its own checks allow, and the ceiling.

    Whether evidence is asked for is decided by this verdict, before any threshold.
    """
    return strictest((model, allowed_by_checks(claims, checks), ceiling))


def capped_by_score(verdict: Verdict, score: float) -> Verdict:
    """Cap a verdict: too low a score allows LOW_CONFID at most."""
    return strictest((verdict, Verdict.LOW_CONFID)) if score < LEAST_SCORE else verdict


def final_verdict(answer: VerifierAnswer, material: VerifiedMaterial, ceiling: Verdict) -> Verdict:
    """The verdict that a run with this answer ends with."""
    effective = effective_verdict(answer.verdict, material.claims, answer.claim_checks, ceiling)
    return capped_by_score(effective, answer.groundedness_score)
