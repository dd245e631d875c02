"""Every ending of claims, from real workers: what is composed, and what is said instead."""

import json
from typing import Any

import pytest

from contracts.fallback import FallbackType, Locale
from tests.pipeline.claimed import (
    FALLBACK,
    GAP,
    INFERRED,
    MADE_UP,
    OBSERVED,
    PROMPTS,
    SUCCEEDED,
    Claimed,
    answer,
    binding,
    claim,
    claimed,
    document,
    judge_claims,
    submit_claims,
)
from tests.pipeline.harness import LocalStage, new_run_id
from worker.claims.composer import MAX_STATEMENT
from worker.guards.fallback import build_fallback
from worker.run.steps import Step
from worker.stage.blobs import SELF_EVALUATION

VERDICTS = ("model_verdict", "effective_verdict", "verdict")
DIRECT, INFERENCE = "direct_observation", "reasonable_inference"


def has_fixed_words(end: Claimed, type_: FallbackType, locale: Locale = "en") -> bool:
    """Tell whether the fallback is its type's template and nothing else."""
    fixed = build_fallback(type_, locale)
    return end.outcome.type == FALLBACK and end.outcome.data["fallback"] == fixed.model_dump(
        mode="json"
    )


@pytest.mark.scenario("claim-runs", "Claims that hold")
def test_claims_that_hold_are_released_as_a_composed_answer(stage: LocalStage) -> None:
    """The rule judge passes them; confirmed and possible stand apart, with their source."""
    end = judge_claims(stage, document())
    assert end.ending == "SUCCEEDED"
    assert end.outcome.type == SUCCEEDED
    assert set(end.outcome.data) == {"run_id", "session_id", "round", "answer"}
    source = {"tool": "run_command", "source": "web-1", "observed_at": "2026-11-30T08:00:01Z"}
    (confirmed,) = end.answer["confirmed"]
    assert confirmed["text"] == OBSERVED["text"]
    assert confirmed["sources"] == [source]
    assert [one["text"] for one in end.answer["possible"]] == [INFERRED["text"]]
    assert end.answer["bare"] is False
    assert end.statuses() == ["COMPLETED", "PASS", "COMPLETED", "COMPLETED"]
    assert end.evaluation["verdict"] == "PASS"
    assert "no judgement of meaning" in end.evaluation["rationale"]


@pytest.mark.scenario("claim-runs", "The whole evaluation on record")
def test_a_judged_run_leaves_its_whole_evaluation(stage: LocalStage) -> None:
    """Statuses, verdicts, score, checks and facts, verified material, gate, composer, prompts."""
    output = document(OBSERVED, INFERRED, MADE_UP)
    evaluation = judge_claims(stage, output).evaluation
    assert [check["classification"] for check in evaluation["claim_checks"]] == [DIRECT, INFERENCE]
    assert [fact["classification"] for fact in evaluation["facts_checked"]] == [
        "direct_evidence",
        "indirect_support",
    ]
    assert evaluation["groundedness_score"] == 1.0
    assert evaluation["traceability_version"]
    shown = evaluation["verified_evidence"]
    assert [item["claim_id"] for item in shown] == ["c1", "c2"]
    assert {item["invocation_id"] for item in shown} == {"call-df"}
    kept = [one["claim_id"] for one in evaluation["verified_output"]["claims"]]
    assert kept == ["c1", "c2"]
    assert evaluation["executor_structured_output"] == evaluation["verified_output"]
    gate = evaluation["gatekeeper_result"]
    assert (gate["status"], gate["severity"]) == ("fail", "low_confid")
    assert [item["passed"] for item in gate["checked_bindings"]] == [True, True, False]
    assert gate["failed_rules"] == ["evidence.invocation_ref"]
    assert evaluation["composer_output"]["confirmed_claim_ids"] == ["c1"]
    prompts = evaluation["prompt_audit"]["prompts"]
    assert {name: prompts[name] for name in PROMPTS} == PROMPTS
    assert set(prompts) == {"planner", "executor", "verifier", "composer"}


def low(case: str) -> tuple[dict[str, Any], Any]:
    """A document that ends with low confidence, and what the verifier says of it."""
    both = document()
    match case:
        case "the model":
            return both, answer(both, DIRECT, INFERENCE, verdict="LOW_CONFID")
        case "only inferred":
            return both, answer(both, INFERENCE, INFERENCE)
        case "overstated":
            return both, answer(both, "overstated", INFERENCE)
        case "unsupported":
            return both, answer(both, "unsupported", INFERENCE)
        case "external":
            return both, answer(both, "external_unknown", INFERENCE)
        case "contradicted beside the diagnosis":
            return both, answer(both, DIRECT, "contradicted")
        case "low score":
            return both, answer(both, DIRECT, INFERENCE, groundedness_score=0.49)
        case _:
            mixed = document(OBSERVED, INFERRED, MADE_UP)
            passed = document(OBSERVED, INFERRED)
            return mixed, answer(passed, DIRECT, INFERENCE)


@pytest.mark.scenario("claim-runs", "Claims of low confidence")
@pytest.mark.parametrize(
    "case",
    [
        "the model",
        "only inferred",
        "overstated",
        "unsupported",
        "external",
        "contradicted beside the diagnosis",
        "low score",
        "the ceiling",
    ],
)
def test_low_confidence_is_a_fallback_with_a_composed_answer(stage: LocalStage, case: str) -> None:
    """Whatever lowers the verdict: one fallback, what still holds beside what is missing."""
    output, behaviour = low(case)
    end = judge_claims(stage, output, behaviour)
    assert end.ending == "LOW_CONFIDENCE"
    assert has_fixed_words(end, FallbackType.LOW_CONFIDENCE)
    assert end.evaluation["verdict"] == end.evaluation["effective_verdict"] == "LOW_CONFID"
    told = [one["text"] for one in (*end.answer["confirmed"], *end.answer["possible"])]
    borne: set[Any] = {
        check["claim_id"]
        for check in end.evaluation["claim_checks"]
        if check["classification"] in (DIRECT, INFERENCE)
    }
    assert told == [one["text"] for one in (OBSERVED, INFERRED) if one["claim_id"] in borne]
    dropped = len(borne) < 2 or case == "the ceiling"
    assert [gap["tool"] for gap in end.answer["gaps"]] == [None] * dropped


@pytest.mark.scenario("claim-runs", "Rejected claims hide the agent's words")
@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_rejected_claims_hide_the_agents_words(stage: LocalStage, locale: Locale) -> None:
    """A contradicted critical claim ends in the degraded template, and nothing of the output."""
    output = document(evidence_gaps=[GAP])
    end = judge_claims(stage, output, answer(output, "contradicted", INFERENCE), locale=locale)
    assert end.ending == "CLAIMS_REJECTED"
    assert has_fixed_words(end, FallbackType.CLAIMS_REJECTED, locale)
    assert end.answer["bare"] is True
    assert end.answer["confirmed"] == end.answer["possible"] == end.answer["gaps"] == []
    wire = end.outcome.model_dump_json()
    for words in (str(OBSERVED["text"]), str(INFERRED["text"]), str(GAP["description"])):
        assert words not in wire
    assert end.evaluation["model_verdict"] == "PASS"
    assert end.evaluation["verdict"] == "REJECT"
    assert end.run.evidence_until is None


UNREADABLE: dict[str, Any] = {
    "prose": "The disk is full.",
    "fences": '```json\n{"claims": []}\n```',
    "cut off": '{"claims": [{"claim_id": "c1"',
    "equal keys": '{"claims": [], "claims": []}',
    "other field": {"claims": [], "verdict": "PASS"},
    "other type": {"claims": "none"},
    "null": None,
}


@pytest.mark.scenario("claim-runs", "Output that cannot be read asks nobody")
@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_output_asks_nobody(stage: LocalStage, case: str) -> None:
    """Neither gate, verifier nor composer touch it; the record says why."""
    end = judge_claims(stage, UNREADABLE[case])
    assert end.ending == "PRE_VERIFICATION"
    assert has_fixed_words(end, FallbackType.PRE_VERIFICATION)
    assert set(end.outcome.data) == {"run_id", "session_id", "round", "fallback"}
    assert end.calls == []
    assert end.statuses() == ["INVALID_OUTPUT", "NOT_RUN", "NOT_RUN", "NOT_RUN"]
    assert end.evaluation["failure_reasons"] == ["EXECUTOR_INVALID_OUTPUT"]
    assert not {*VERDICTS, "gatekeeper_result", "verified_evidence"} & set(end.evaluation)
    assert end.outcomes(Step.VERIFY_CLAIMS) == end.outcomes(Step.COMPOSE_ANSWER) == []


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "removed field": (document(diagnosis_summary="Full."), "schema.executor_v2"),
    "removed field, null": (document(user_facing_answer=None), "schema.executor_v2"),
    "confirmed without binding": (
        document(OBSERVED, {**INFERRED, "evidence_bindings": []}),
        "schema.executor_v2",
    ),
    "fabricated call": (document(MADE_UP), "evidence.invocation_ref"),
    "another tool": (
        document(claim("c1", "Full.", binding(tool_name="query_logs"))),
        "evidence.invocation_ref",
    ),
    "wrong path": (
        document(claim("c1", "Full.", binding(raw_path="$.rows[0]"))),
        "evidence.raw_path",
    ),
    "wrong words": (
        document(claim("c1", "Full.", binding(matched_text="97%"))),
        "evidence.matched_text",
    ),
    "empty result": (
        document(claim("c1", "No kill.", binding(invocation_id="call-grep"))),
        "evidence.invocation_result",
    ),
}


@pytest.mark.scenario("claim-runs", "A rejected gate asks nobody")
@pytest.mark.parametrize("case", REJECTED)
def test_a_rejected_gate_asks_nobody(stage: LocalStage, case: str) -> None:
    """No model call, the fixed words, and the gate's whole result on record without a verdict."""
    output, rule = REJECTED[case]
    end = judge_claims(stage, output)
    assert end.ending == "PRE_VERIFICATION"
    assert has_fixed_words(end, FallbackType.PRE_VERIFICATION)
    assert end.calls == []
    assert end.statuses() == ["COMPLETED", "REJECT", "NOT_RUN", "NOT_RUN"]
    gate = end.evaluation["gatekeeper_result"]
    assert (gate["status"], gate["severity"]) == ("fail", "reject")
    assert rule in gate["failed_rules"]
    assert end.evaluation["failure_reasons"] == ["GATEKEEPER_REJECT"]
    assert not {*VERDICTS, "verified_evidence", "verified_output"} & set(end.evaluation)


@pytest.mark.scenario("claim-runs", "An answer over its limit")
def test_an_answer_over_its_limit_is_the_bare_template(stage: LocalStage) -> None:
    """Nothing is cut: a PASS whose text is too long is told in fixed words, and says so."""
    long = claim("c1", "Full. " * MAX_STATEMENT)
    output = document(long)
    end = judge_claims(stage, output, answer(output, DIRECT))
    assert end.ending == "LOW_CONFIDENCE"
    assert end.answer["bare"] is True
    assert "Full. Full." not in end.outcome.model_dump_json()
    assert end.statuses()[-1] == "FALLBACK"
    assert end.evaluation["failure_reasons"] == ["COMPOSER_OVER_LIMIT"]
    assert end.evaluation["verdict"] == "PASS", "the verdict stands, and the reader gets less"
    assert end.evaluation["composer_output"]["bare"] is True


@pytest.mark.scenario("claim-runs", "Other channels stay as they are")
def test_other_channels_of_the_container_stay(stage: LocalStage) -> None:
    """What other evaluations wrote into the container is there after ours, byte for byte."""
    run_id = new_run_id("claims")
    others = b'{"rule_evaluation":{"score":0.7},"aiops_rule_evaluation":["a",{"b":null}]}'
    stage.redis.hset(stage.keys.run(run_id), SELF_EVALUATION, others)
    end = claimed(stage, submit_claims(stage, document(), run_id=run_id))
    assert end.container["rule_evaluation"] == {"score": 0.7}
    assert end.container["aiops_rule_evaluation"] == ["a", {"b": None}]
    assert end.evaluation["verdict"] == "PASS"


@pytest.mark.scenario("claim-runs", "The evaluation is shown")
def test_the_evaluation_is_shown_to_whoever_is_on_call(stage: LocalStage) -> None:
    """``release-stage show`` prints the container beside the steps, ended or not."""
    end = judge_claims(stage, document())
    shown = stage.evaluation(end.run.run_id)
    assert shown["self_evaluation"] == end.container
    assert shown["protocol"] == "claims"
    assert shown["attempts"]["0.verify_claims.1"]["prompt"].startswith("claim_verifier/")
    assert json.dumps(shown)
