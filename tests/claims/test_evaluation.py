"""The evaluation record: how far a run came and why, and nothing raw."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from contracts.claims import AgentPrompts, PromptRef, VerifierAnswer
from contracts.claims_evaluation import ComposerOutput, ComposerStatus, VerifierEvaluation
from contracts.schema import documents
from tests.claims.cases import SECRET, answer_text, binding, claim, gate_of, output
from worker.claims import verifier
from worker.claims.composer import compose
from worker.claims.evaluation import build_evaluation, failed_status, merged
from worker.claims.gatekeeper import Gate
from worker.claims.verdict import final_verdict
from worker.run.outcomes import RETRYABLE, AttemptOutcome

PROMPTS = AgentPrompts(
    planner=PromptRef(name="planner_main", version="7"),
    executor=PromptRef(name="executor_main", version="2026-05"),
)
SCHEMA = Draft202012Validator(json.loads(documents()["records/VerifierEvaluation.json"]))
VERDICTS = {"model_verdict", "effective_verdict", "verdict", "groundedness_score", "rationale"}


def written(evaluation: VerifierEvaluation) -> dict[str, Any]:
    """The evaluation as it is stored; it fits its schema."""
    value = merged({}, evaluation)["verifier_evaluation"]
    SCHEMA.validate(value)
    assert isinstance(value, dict)
    return dict(value)


def mixed_gate() -> Gate:
    """A gate that let one of two claims through, with one binding of two."""
    return gate_of(
        output(
            claim("c1", binding(), binding("query_logs", matched_text=SECRET)),
            claim("c2", binding("query_mysql", raw_path="$.nowhere"), text=SECRET),
        )
    )


def judged(gate: Gate, **changes: Any) -> tuple[VerifierAnswer, dict[str, Any]]:
    """A whole run: its answer, and its evaluation as stored."""
    assert gate.material is not None
    answer = verifier.parse_answer(answer_text(gate.material, **changes), gate.material)
    verdict = final_verdict(answer, gate.material, gate.result.ceiling)
    found = compose(verdict, gate.material, answer.claim_checks, "en")
    evaluation = build_evaluation(
        PROMPTS,
        readable=True,
        gate=gate.result,
        material=gate.material,
        answer=answer,
        composed=(found.status, found.output),
    )
    return answer, written(evaluation)


@pytest.mark.scenario("claim-verification", "A judged run on record")
def test_a_judged_run_is_recorded_whole() -> None:
    """Statuses, both verdicts, score, rationale, checks, facts, verified material, gate."""
    gate = mixed_gate()
    answer, value = judged(gate)
    assert gate.material is not None
    assert (value["executor_status"], value["gatekeeper_status"]) == ("COMPLETED", "LOW_CONFID")
    assert (value["verifier_status"], value["composer_status"]) == ("COMPLETED", "COMPLETED")
    assert value["model_verdict"] == "PASS"
    assert value["effective_verdict"] == value["verdict"] == "LOW_CONFID"
    assert (value["groundedness_score"], value["rationale"]) == (0.9, answer.rationale)
    assert value["claim_checks"] == [item.model_dump(mode="json") for item in answer.claim_checks]
    assert value["facts_checked"] == [{"claim_id": "c1", "classification": "direct_evidence"}]
    assert value["traceability_version"] == "claim_evidence_v1"
    assert value["verified_evidence"] == [
        {
            "claim_id": "c1",
            "invocation_id": "call-run_command",
            "tool_name": "run_command",
            "raw_path": "$.stdout",
            "matched_text": "inactive",
        }
    ]
    assert [item["claim_id"] for item in value["verified_output"]["claims"]] == ["c1"]
    assert value["failure_reasons"] == []


@pytest.mark.scenario("claim-verification", "The gate on record")
def test_the_gate_is_recorded_whole() -> None:
    """Status, severity, every binding, rules, failed rules, warnings, errors."""
    gate = mixed_gate()
    _, value = judged(gate)
    assert value["gatekeeper_result"] == gate.result.model_dump(mode="json")
    assert value["gatekeeper_result"]["severity"] == "low_confid"
    assert len(value["gatekeeper_result"]["checked_bindings"]) == 3


@pytest.mark.scenario("claim-verification", "The composed answer on record")
def test_the_composed_answer_is_recorded_without_its_words() -> None:
    """Which claims stand where; a composer that fell back is told as such."""
    _, value = judged(mixed_gate())
    assert value["composer_output"] == {
        "confirmed_claim_ids": ["c1"],
        "possible_claim_ids": [],
        "gaps": 1,
        "bare": False,
    }
    _, long = judged(gate_of(output(claim("c1", text="x" * 9999))))
    assert (long["verdict"], long["composer_status"]) == ("PASS", "FALLBACK")
    assert long["composer_output"]["bare"]
    assert long["failure_reasons"] == ["COMPOSER_OVER_LIMIT"]


@pytest.mark.scenario("claim-verification", "A run without a verdict on record")
def test_a_run_without_a_verdict_has_none_on_record() -> None:
    """Unread output, a rejected gate, a failed verifier: status and reason, no verdict."""
    rejected, passed = gate_of(output(claim("c1", binding(matched_text=SECRET)))), mixed_gate()
    unread = written(build_evaluation(PROMPTS, readable=False))
    assert (unread["executor_status"], unread["gatekeeper_status"]) == (
        "INVALID_OUTPUT",
        "NOT_RUN",
    )
    assert unread["failure_reasons"] == ["EXECUTOR_INVALID_OUTPUT"]
    refused = written(build_evaluation(PROMPTS, readable=True, gate=rejected.result))
    assert (refused["gatekeeper_status"], refused["verifier_status"]) == ("REJECT", "NOT_RUN")
    assert refused["failure_reasons"] == ["GATEKEEPER_REJECT"]
    assert refused["gatekeeper_result"]["failed_rules"]
    failed = written(
        build_evaluation(
            PROMPTS,
            readable=True,
            gate=passed.result,
            material=passed.material,
            verifier_failure=AttemptOutcome.UNPARSEABLE,
            retries=1,
        )
    )
    assert (failed["verifier_status"], failed["evidence_retries"]) == ("INVALID_OUTPUT", 1)
    assert failed["failure_reasons"] == ["VERIFIER_UNPARSEABLE"]
    for value in (unread, refused, failed):
        assert value["composer_status"] == "NOT_RUN"
        assert not VERDICTS & value.keys()
        assert not {"claim_checks", "facts_checked", "composer_output"} & value.keys()
        assert set(value["prompt_audit"]["prompts"]) == {
            "planner",
            "executor",
            "verifier",
            "composer",
        }


@pytest.mark.scenario("claim-verification", "Prompts by name alone")
def test_prompts_are_recorded_by_name_and_version() -> None:
    """Of all four parts, under the catalogue's version, and never as text."""
    for value in (judged(mixed_gate())[1], written(build_evaluation(PROMPTS, readable=False))):
        assert value["prompt_audit"] == {
            "version": "1",
            "prompts": {
                "planner": {"name": "planner_main", "version": "7"},
                "executor": {"name": "executor_main", "version": "2026-05"},
                "verifier": {"name": "claim_verifier", "version": "1"},
                "composer": {"name": "claim_composer", "version": "1"},
            },
        }
        assert verifier.SYSTEM[:40] not in json.dumps(value)
    with pytest.raises(ValueError, match="validation error"):
        PromptRef(name="You are a planner. Think hard.", version="1")


@pytest.mark.scenario("claim-verification", "Nothing raw on record")
def test_no_raw_output_and_no_trace_is_recorded() -> None:
    """Of the agent's document only the verified projection, of results only the quotations."""
    gap = {"claim_id": "c1", "tool_name": "query_logs", "critical": True, "description": SECRET}
    gate = gate_of(
        output(
            claim("c1", binding(), binding("query_logs", matched_text=SECRET)),
            claim("c2", binding("query_mysql", raw_path="$.nowhere"), text=SECRET),
            evidence_gaps=[gap],
        )
    )
    _, value = judged(gate)
    assert value["executor_structured_output"] == value["verified_output"]
    text = json.dumps(value)
    assert SECRET not in text
    assert "systemctl" not in text
    assert "upstream" not in text
    assert "tool_trace" not in text


@pytest.mark.scenario("claim-verification", "Other channels stay")
@given(
    st.dictionaries(
        st.sampled_from(["rule_evaluation", "aiops_rule_evaluation", "verifier_evaluation", "x"]),
        st.none() | st.integers() | st.dictionaries(st.text(max_size=3), st.integers()),
    )
)
def test_other_channels_are_left_alone(container: dict[str, Any]) -> None:
    """Merging writes one channel, and changes neither the others nor what it was given."""
    before = json.dumps(container, sort_keys=True)
    found = merged(container, build_evaluation(PROMPTS, readable=False))
    assert json.dumps(container, sort_keys=True) == before
    assert {**found, "verifier_evaluation": 0} == {**container, "verifier_evaluation": 0}
    assert isinstance(found["verifier_evaluation"], dict)


def test_a_story_that_cannot_be_is_not_recorded() -> None:
    """No verdict without a gate's material, none beside a failure, no answer without one."""
    gate = mixed_gate()
    answer, _ = judged(gate)
    output_ = ComposerOutput(confirmed_claim_ids=(), possible_claim_ids=(), gaps=0, bare=True)
    composed = (ComposerStatus.COMPLETED, output_)
    with pytest.raises(ValueError, match="answers only what a gate let through"):
        build_evaluation(PROMPTS, readable=True, answer=answer)
    with pytest.raises(ValueError, match="answers only what a gate let through"):
        build_evaluation(
            PROMPTS,
            readable=True,
            gate=gate.result,
            material=gate.material,
            answer=answer,
            verifier_failure=AttemptOutcome.TIMEOUT,
        )
    with pytest.raises(ValueError, match="only after a verdict"):
        build_evaluation(PROMPTS, readable=True, gate=gate.result, composed=composed)


def test_reasons_are_codes_and_hold_no_prose() -> None:
    """A further reason is written as it is; words are refused."""
    value = written(build_evaluation(PROMPTS, readable=True, reasons=["DEADLINE_EXCEEDED"]))
    assert value["failure_reasons"] == ["DEADLINE_EXCEEDED"]
    with pytest.raises(ValueError, match="validation error"):
        build_evaluation(PROMPTS, readable=True, reasons=["The disk is full."])


@pytest.mark.parametrize("outcome", sorted(RETRYABLE))
def test_a_failure_is_an_invalid_answer_or_none(outcome: AttemptOutcome) -> None:
    """No status reads like a verdict."""
    expected = {"UNPARSEABLE": "INVALID_OUTPUT", "OFF_SCHEMA": "INVALID_OUTPUT"}
    assert failed_status(outcome).value == expected.get(outcome.value, "UNAVAILABLE")
