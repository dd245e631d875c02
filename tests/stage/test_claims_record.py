"""What stays on record of a run of claims that no worker could carry out."""

import json
from datetime import UTC, datetime

import pytest

from contracts.envelope import wrap
from tests.pipeline.claimed import document, output_ready
from tests.stage.conftest import House
from worker.claims.evaluation import CHANNEL
from worker.run.events import Answer, Claimed, Ticked
from worker.run.steps import Step, StepRef
from worker.stage.admit import admit
from worker.stage.blobs import SELF_EVALUATION
from worker.stage.engine import apply

RUN_ID = "run-1"
GATE = StepRef(0, Step.GATE_CLAIMS, 1)


def admitted(house: House) -> None:
    moment = datetime.fromtimestamp(house.now, UTC)
    raw = wrap(output_ready(RUN_ID, document()), message_id="m-1", time=moment)
    assert admit(house.stage, raw, "tests") == "OPENED"


def evaluation(house: House) -> dict[str, object]:
    container = json.loads(house.store.rows[RUN_ID].blobs[SELF_EVALUATION])
    found = container[CHANNEL]
    assert isinstance(found, dict)
    return found


@pytest.mark.scenario("claim-runs", "Claims that no worker could carry out")
def test_a_gate_that_was_lost_three_times_leaves_an_evaluation(house: House) -> None:
    """The fourth start ends the run; the record says why and names the prompts."""
    admitted(house)
    for _ in range(house.stage.policy.max_grants):
        assert apply(house.stage, RUN_ID, Claimed(GATE)).answer is Answer.GRANTED
        house.now += house.stage.policy.lease(Step.GATE_CLAIMS) + 1
    assert apply(house.stage, RUN_ID, Claimed(GATE)).answer is Answer.REFUSED
    found = evaluation(house)
    assert found["failure_reasons"] == ["PROCESSING_FAILED"]
    assert found["gatekeeper_status"] == "NOT_RUN"
    assert "verdict" not in found
    (message,) = house.sender.sent
    assert message.type == "release_stage.ReleaseAborted.v1"


@pytest.mark.scenario("claim-runs", "Claims that no worker could carry out")
def test_a_run_that_nobody_started_leaves_an_evaluation(house: House) -> None:
    """Its deadline ends it, and the record says so."""
    admitted(house)
    house.now += house.stage.limits.default_deadline
    assert apply(house.stage, RUN_ID, Ticked()).answer is Answer.ENDED
    assert evaluation(house)["failure_reasons"] == ["DEADLINE_EXCEEDED"]
