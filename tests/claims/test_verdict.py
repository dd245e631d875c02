"""The effective verdict: a table over all combinations, and what can never be."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.claims import (
    ClaimCheck,
    Classification,
    Verdict,
    VerifiedClaim,
    VerifiedMaterial,
    VerifierAnswer,
)
from tests.claims.cases import check, verified
from worker.claims.verdict import (
    allowed_by_checks,
    capped_by_score,
    effective_verdict,
    final_verdict,
    strictest,
)

PASS, LOW, REJECT = Verdict.PASS, Verdict.LOW_CONFID, Verdict.REJECT
OBSERVED = Classification.DIRECT_OBSERVATION
INFERRED = Classification.REASONABLE_INFERENCE
CONTRADICTED = Classification.CONTRADICTED
WEAK = [Classification.OVERSTATED, Classification.UNSUPPORTED, Classification.EXTERNAL_UNKNOWN]
KINDS = tuple(product(Classification, (True, False)))
"""A class, and whether its claim is critical."""
RANK = {REJECT: 0, LOW: 1, PASS: 2}

Kind = tuple[Classification, bool]


def judged(*kinds: Kind) -> tuple[list[VerifiedClaim], list[ClaimCheck]]:
    claims = [verified(f"c{index}", critical=critical) for index, (_, critical) in enumerate(kinds)]
    checks = [check(f"c{index}", class_) for index, (class_, _) in enumerate(kinds)]
    return claims, checks


@pytest.mark.parametrize(
    ("kinds", "allowed"),
    [
        ([], LOW),
        ([(OBSERVED, True)], PASS),
        ([(OBSERVED, True), (INFERRED, True)], PASS),
        ([(INFERRED, True)], LOW),
        ([(INFERRED, True), (OBSERVED, False)], LOW),
        ([(OBSERVED, False)], LOW),
        ([(OBSERVED, False), (INFERRED, False)], LOW),
        *[([(OBSERVED, True), (weak, True)], LOW) for weak in WEAK],
        *[([(OBSERVED, True), (weak, False)], PASS) for weak in WEAK],
        ([(OBSERVED, True), (CONTRADICTED, False)], LOW),
        ([(OBSERVED, True), (CONTRADICTED, True)], REJECT),
        ([(CONTRADICTED, True)], REJECT),
        ([(CONTRADICTED, False)], LOW),
        ([(CONTRADICTED, False), (CONTRADICTED, True)], REJECT),
    ],
)
def test_what_checks_allow(kinds: list[Kind], allowed: Verdict) -> None:
    """Written out by hand: the source's rules for PASS, LOW_CONFID and REJECT."""
    assert allowed_by_checks(*judged(*kinds)) is allowed


def by_the_rules(kinds: tuple[Kind, ...]) -> Verdict:
    """The rules a second time, as counts of classes among critical and other claims."""
    of_critical = [class_ for class_, critical in kinds if critical]
    of_others = [class_ for class_, critical in kinds if not critical]
    if of_critical.count(CONTRADICTED):
        return REJECT
    observed, inferred = of_critical.count(OBSERVED), of_critical.count(INFERRED)
    good = observed > 0 and observed + inferred == len(of_critical)
    return PASS if good and not of_others.count(CONTRADICTED) else LOW


def test_table_of_the_effective_verdict() -> None:
    """Every verdict of a model with every ceiling and every one or two claims of any class."""
    combinations = [(kind,) for kind in KINDS] + list(product(KINDS, KINDS))
    seen = 0
    for kinds, model, ceiling in product(combinations, Verdict, Verdict):
        claims, checks = judged(*kinds)
        lowest = min(RANK[model], RANK[ceiling], RANK[by_the_rules(kinds)])
        assert RANK[effective_verdict(model, claims, checks, ceiling)] == lowest, (kinds, model)
        seen += 1
    assert seen == (12 + 144) * 9


@pytest.mark.scenario("claim-verification", "Never above any of the three")
@given(
    st.lists(st.sampled_from(KINDS), max_size=6),
    st.sampled_from(Verdict),
    st.sampled_from(Verdict),
    st.floats(0, 1),
)
def test_a_verdict_exceeds_none_of_its_bounds(
    kinds: list[Kind], model: Verdict, ceiling: Verdict, score: float
) -> None:
    """Neither model, nor checks, nor ceiling; and a score only ever lowers it."""
    claims, checks = judged(*kinds)
    effective = effective_verdict(model, claims, checks, ceiling)
    for bound in (model, ceiling, allowed_by_checks(claims, checks)):
        assert RANK[effective] <= RANK[bound]
    capped = capped_by_score(effective, score)
    assert RANK[capped] <= RANK[effective]
    assert (capped is effective) or (score < 0.5 and (effective, capped) == (PASS, LOW))


@given(st.lists(st.sampled_from(KINDS), max_size=6))
def test_order_of_claims_and_checks_changes_nothing(kinds: list[Kind]) -> None:
    """A verdict is about the set of checks."""
    claims, checks = judged(*kinds)
    expected = allowed_by_checks(claims, checks)
    assert allowed_by_checks(claims[::-1], checks) is expected
    assert allowed_by_checks(claims, checks[::-1]) is expected


@pytest.mark.scenario("claim-verification", "All critical claims hold")
def test_supported_claims_pass() -> None:
    """Observed and inferred critical claims under a PASS ceiling."""
    claims, checks = judged((OBSERVED, True), (INFERRED, True))
    assert effective_verdict(PASS, claims, checks, PASS) is PASS


@pytest.mark.scenario("claim-verification", "Some critical claims do not hold")
@pytest.mark.parametrize("weak", WEAK)
def test_partial_support_is_low_confidence(weak: Classification) -> None:
    """Whatever the model says of it."""
    claims, checks = judged((OBSERVED, True), (weak, True))
    assert effective_verdict(PASS, claims, checks, PASS) is LOW


@pytest.mark.scenario("claim-verification", "Nothing but inferences")
def test_inferences_alone_are_low_confidence() -> None:
    """An observation of a claim that is not critical does not carry them."""
    claims, checks = judged((INFERRED, True), (INFERRED, True), (OBSERVED, False))
    assert effective_verdict(PASS, claims, checks, PASS) is LOW


@pytest.mark.scenario("claim-verification", "A critical claim is contradicted")
@pytest.mark.parametrize("model", list(Verdict))
def test_a_contradicted_critical_claim_is_rejected(model: Verdict) -> None:
    """Even if the model passes it."""
    claims, checks = judged((OBSERVED, True), (CONTRADICTED, True))
    assert effective_verdict(model, claims, checks, PASS) is REJECT


@pytest.mark.scenario("claim-verification", "A contradicted claim that is not critical")
def test_a_contradicted_side_claim_caps_at_low_confidence() -> None:
    """It neither rejects the rest nor lets it pass."""
    claims, checks = judged((OBSERVED, True), (CONTRADICTED, False))
    assert effective_verdict(PASS, claims, checks, PASS) is LOW


@pytest.mark.scenario("claim-verification", "The ceiling holds")
def test_a_ceiling_lowers_a_pass() -> None:
    """A gate that let only some of it through is never outvoted."""
    claims, checks = judged((OBSERVED, True))
    assert effective_verdict(PASS, claims, checks, LOW) is LOW
    assert effective_verdict(PASS, claims, checks, REJECT) is REJECT


def scored(verdict: Verdict, score: float) -> Verdict:
    claims, checks = judged((OBSERVED, True))
    answer = VerifierAnswer(
        rationale="r", claim_checks=tuple(checks), verdict=verdict, groundedness_score=score
    )
    material = VerifiedMaterial(
        claims=tuple(claims), evidence=(), gaps=(), left_out=0, left_out_critical=False
    )
    return final_verdict(answer, material, PASS)


@pytest.mark.scenario("claim-verification", "A low score")
@pytest.mark.parametrize(
    ("verdict", "score", "final"),
    [
        (PASS, 1.0, PASS),
        (PASS, 0.5, PASS),
        (PASS, 0.4999, LOW),
        (PASS, 0.0, LOW),
        (LOW, 0.0, LOW),
        (LOW, 1.0, LOW),
        (REJECT, 0.0, REJECT),
        (REJECT, 1.0, REJECT),
    ],
)
def test_a_low_score_caps_at_low_confidence(verdict: Verdict, score: float, final: Verdict) -> None:
    """Half is enough; a high score lifts nothing."""
    assert scored(verdict, score) is final


def test_the_strictest_of_verdicts() -> None:
    """REJECT before LOW_CONFID before PASS."""
    assert strictest([PASS, LOW, REJECT]) is REJECT
    assert strictest([PASS, LOW]) is LOW
    assert strictest([PASS]) is PASS
