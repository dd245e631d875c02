"""Each recorded document of claims against the gate and the rule-based verifier."""

import json
from typing import Any

import pytest

from contracts.claims import Verdict
from contracts.fallback import FallbackType
from contracts.messages import AbortReason
from contracts.strict_json import canonical
from worker.claims.gatekeeper import Gate, gatekeep
from worker.claims.output import read_output
from worker.claims.routing import Route, after_verifier
from worker.claims.verdict import effective_verdict, final_verdict
from worker.claims.verifier import parse_answer, question
from worker.guards.tools import BUILT_IN
from worker.offline.incidents import ClaimsCase, Incident, JudgeNeed, load
from worker.offline.judge_claims import verify

RUN_ID = "run-1"
CASES = [(incident, case) for incident in load() for case in incident.claims]
each_case = pytest.mark.parametrize(("incident", "case"), CASES, ids=[c.name for _, c in CASES])


def gate(incident: Incident, case: ClaimsCase, output: Any, *, late: bool) -> Gate:
    """The gate's opinion, before or after the late calls were made."""
    kinds = (False, True) if late else (False,)
    stored = {
        record.tool_call_id: canonical(record.model_dump(mode="json", exclude_unset=True))
        for kind in kinds
        for record in incident.claim_records(case, RUN_ID, "session-1", late=kind)
    }
    document = read_output(output)
    assert document is not None
    return gatekeep(RUN_ID, document, stored, BUILT_IN)


def judged(case: ClaimsCase, output: Any, found: Gate) -> tuple[Verdict, Route]:
    """The final verdict by the rules, and the way on from it in round 0."""
    document = read_output(output)
    assert document is not None
    assert found.material is not None
    asked = question(case.query, document.diagnosis_context, found.material, found.result)
    answer = parse_answer(json.dumps(verify(json.loads(asked))), found.material)
    ceiling = found.result.ceiling
    effective = effective_verdict(
        answer.verdict, found.material.claims, answer.claim_checks, ceiling
    )
    route = after_verifier(effective, ceiling, found.material.gaps, 0)
    return final_verdict(answer, found.material, ceiling), route


VERDICTS: dict[FallbackType | AbortReason | None, Verdict] = {
    None: Verdict.PASS,
    FallbackType.LOW_CONFIDENCE: Verdict.LOW_CONFID,
    FallbackType.CLAIMS_REJECTED: Verdict.REJECT,
}


@each_case
def test_recorded_claims_are_what_their_case_says(incident: Incident, case: ClaimsCase) -> None:
    """Gate, verdict and request for evidence are those that the ending needs."""
    found = gate(incident, case, case.output, late=False)
    if case.expected.code is FallbackType.PRE_VERIFICATION:
        assert (found.material is None) is (case.judge is JudgeNeed.RULES)
        return
    verdict, route = judged(case, case.output, found)
    if case.answer is None:
        assert route is Route.COMPOSE
    else:
        assert route is Route.REQUEST_EVIDENCE
        again = gate(incident, case, case.answer, late=True)
        verdict, _ = judged(case, case.answer, again)
    assert verdict is VERDICTS[case.expected.code]


def test_recorded_claims_lead_to_every_ending_of_claims() -> None:
    """A release and each fallback of claims, and a request that helps and one that does not."""
    codes = {case.expected.code for _, case in CASES}
    assert codes == {*VERDICTS, FallbackType.PRE_VERIFICATION}
    assert {case.expected.code for _, case in CASES if case.answer is not None} == {
        None,
        FallbackType.LOW_CONFIDENCE,
    }
