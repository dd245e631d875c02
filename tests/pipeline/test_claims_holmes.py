"""Claims about investigations that nobody here made, through real workers and the rule judge."""

from typing import Any

import pytest

from tests.holmes_claims import HOLMES_CLAIMS, RELEASED, HolmesClaims
from tests.pipeline.claimed import claimed, output_ready
from tests.pipeline.harness import LocalStage, new_run_id

each_case = pytest.mark.parametrize("case", HOLMES_CLAIMS, ids=lambda case: case.name)


@pytest.mark.scenario("claim-runs", "Claims of real recordings")
@each_case
def test_claims_about_a_real_recording_end_as_they_must(
    stage: LocalStage, case: HolmesClaims
) -> None:
    """Sound ones are released, each broken one falls back for its own reason."""
    run_id = new_run_id("holmes")
    transcript = case.transcript(run_id)
    stage.record(*transcript.records)
    stage.client.submit_claims(output_ready(run_id, case.output, query=transcript.query))
    end = claimed(stage, run_id)
    checks: list[Any] = end.evaluation.get("claim_checks", [])
    assert tuple(check["classification"] for check in checks) == case.classes
    assert end.ending == case.ending
    gate = end.evaluation["gatekeeper_result"]
    assert (case.failed_rule is None) is (gate["failed_rules"] == [])
    assert case.failed_rule is None or case.failed_rule in gate["failed_rules"]
    if case.ending == RELEASED:
        told = [one["text"] for one in (*end.answer["confirmed"], *end.answer["possible"])]
        assert sorted(told) == sorted(one["text"] for one in case.claims)
