"""Claims that people judged against web pages: readable as claims with evidence, all of them."""

import json

import pytest

from contracts.claims import Classification, Verdict
from contracts.strict_json import canonical
from tests.wice_claims import CLASSES, WiceClaim, load_wice
from worker.claims.gatekeeper import gatekeep
from worker.claims.output import read_output
from worker.claims.verifier import parse_answer, question
from worker.guards.tools import BUILT_IN
from worker.offline.judge_claims import verify

RUN_ID = "run-1"


@pytest.fixture(scope="module")
def rows() -> tuple[WiceClaim, ...]:
    return load_wice()


@pytest.mark.scenario("claim-verification", "Claims that people judged")
def test_every_claim_passes_the_gate_and_can_be_verified(rows: tuple[WiceClaim, ...]) -> None:
    """Each quotation stands where it says, and the rule judge gives an answer that is taken."""
    assert len(rows) > 100
    assert {row.label for row in rows} == set(CLASSES)
    for row in rows:
        document = read_output(canonical(row.output).decode())
        assert document is not None
        gate = gatekeep(RUN_ID, document, row.records(RUN_ID), BUILT_IN)
        assert gate.result.ceiling is Verdict.PASS, (row.row_id, gate.result.errors)
        assert gate.material is not None
        asked = question("Is it so?", document.diagnosis_context, gate.material, gate.result)
        answer = parse_answer(json.dumps(verify(json.loads(asked))), gate.material)
        assert [check.claim_id for check in answer.claim_checks] == [row.row_id]


def test_every_class_belongs_to_one_label() -> None:
    """So that a verifier's answer is right or wrong for each row."""
    classes = [one for label in CLASSES.values() for one in label]
    assert sorted(classes) == sorted(Classification)
