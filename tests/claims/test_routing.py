"""Where a claims run goes next, as far as claims decide it."""

from itertools import product

import pytest

from contracts.claims import EvidenceGap, NamedGap, Verdict
from tests.claims.cases import SECRET, output
from worker.claims.output import known_gaps
from worker.claims.routing import (
    MAX_MISSING,
    MAX_REQUESTED,
    Route,
    after_gate,
    after_verifier,
    requested,
    retry_context,
)
from worker.guards.tools import BUILT_IN

PASS, LOW, REJECT = Verdict.PASS, Verdict.LOW_CONFID, Verdict.REJECT


def gap(claim_id: str = "c1", *, critical: bool = True, description: str = "") -> EvidenceGap:
    return EvidenceGap(
        claim_id=claim_id, tool_name="query_logs", critical=critical, description=description
    )


CRITICAL, OTHER = gap(), gap(critical=False)


@pytest.mark.scenario("claim-routing", "A rejected gate")
def test_a_rejected_document_never_reaches_the_verifier() -> None:
    """Nor does one that could not be read; any other does."""
    assert after_gate(REJECT) is Route.FALLBACK
    assert after_gate(None) is Route.FALLBACK
    assert after_gate(LOW) is Route.VERIFY
    assert after_gate(PASS) is Route.VERIFY


@pytest.mark.scenario("claim-routing", "One request for evidence")
def test_a_critical_gap_under_a_pass_ceiling_is_asked_for_once() -> None:
    """Low confidence, nothing broken at the gate, something critical to look for, no retry yet."""
    assert after_verifier(LOW, PASS, [OTHER, CRITICAL], 0) is Route.REQUEST_EVIDENCE


@pytest.mark.scenario("claim-routing", "No second request")
@pytest.mark.parametrize(
    ("ceiling", "gaps", "retries"),
    [(LOW, [CRITICAL], 0), (PASS, [], 0), (PASS, [OTHER], 0), (PASS, [CRITICAL], 1)],
)
def test_low_confidence_without_a_reason_to_ask_is_composed(
    ceiling: Verdict, gaps: list[EvidenceGap], retries: int
) -> None:
    """A lower ceiling, no critical gap, or a retry that was already made."""
    assert after_verifier(LOW, ceiling, gaps, retries) is Route.COMPOSE


@pytest.mark.scenario("claim-routing", "A verdict to compose")
@pytest.mark.scenario("claim-routing", "Rejected claims ask for nothing")
def test_a_pass_and_a_reject_are_composed_at_once() -> None:
    """Neither asks for evidence, whatever gaps there are."""
    for verdict, ceiling, retries in product((PASS, REJECT), (PASS, LOW), (0, 1)):
        assert after_verifier(verdict, ceiling, [CRITICAL], retries) is Route.COMPOSE


@pytest.mark.scenario("claim-routing", "A verifier that failed")
def test_a_failed_verifier_leads_to_the_fallback() -> None:
    """No gap and no ceiling makes a verdict of it."""
    for ceiling, retries in product((PASS, LOW), (0, 1)):
        assert after_verifier(None, ceiling, [CRITICAL], retries) is Route.FALLBACK


@pytest.mark.scenario("claim-routing", "Gaps that name nothing")
def test_gaps_that_name_nothing_ask_for_nothing() -> None:
    """An unknown claim or tool is no reason to run the agent again."""
    gaps = [
        {"claim_id": "c9", "tool_name": "query_logs", "critical": True},
        {"claim_id": "c1", "tool_name": "read_minds", "critical": True},
    ]
    known = known_gaps(output(evidence_gaps=gaps), BUILT_IN)
    assert after_verifier(LOW, PASS, known, 0) is Route.COMPOSE


@pytest.mark.scenario("claim-routing", "What is asked for")
def test_the_request_names_the_critical_gaps() -> None:
    """Claim, tool and what the agent said is missing, bounded, each once."""
    gaps = [OTHER, gap("c1", description="x" * 1000), gap("c2"), gap("c2")]
    found = requested(gaps)
    assert [(item.claim_id, item.tool_name) for item in found] == [
        ("c1", "query_logs"),
        ("c2", "query_logs"),
    ]
    assert found[0].missing == "x" * MAX_MISSING
    assert len(requested([gap(f"c{number}") for number in range(100)])) == MAX_REQUESTED


def test_the_verifier_is_told_names_of_gaps_alone() -> None:
    """None of the agent's words on a gap reach the model, and no gap that was not asked for."""
    named = [
        NamedGap(claim_id=claim_id, tool_name="query_logs", critical=critical)
        for claim_id, critical in (("c1", True), ("c1", True), ("c2", False))
    ]
    context = retry_context(named)
    assert context.requested == (named[0],)
    assert SECRET not in context.model_dump_json()
