"""Attempts at a verification, on real workers: equal bytes, twice at most, no invented verdict."""

import hashlib
import json
from typing import Any

import pytest

from contracts.fallback import FallbackType
from tests.pipeline.claimed import FALLBACK, SUCCEEDED, Claimed, answer, document, judge_claims
from tests.pipeline.harness import COMPOSE, GATE, PUBLISH, SECOND_VERIFY, VERIFY, LocalStage
from worker.guards.fallback import build_fallback
from worker.offline.judge_log import Received
from worker.offline.judge_script import (
    Behaviour,
    choices,
    content,
    cut_by_length,
    hang,
    html,
    raw,
    refusal,
    reset,
    rules,
    status,
    trickle,
)
from worker.run.steps import Step

GOOD = document()
DIRECT, INFERENCE = "direct_observation", "reasonable_inference"


def changed(**changes: Any) -> Behaviour:
    """A good answer with fields replaced; a field of None is taken out."""
    behaviour = answer(GOOD, DIRECT, INFERENCE)
    assert behaviour.content is not None
    whole = {**json.loads(behaviour.content), **changes}
    return content(json.dumps({name: value for name, value in whole.items() if value is not None}))


def first_check(**changes: Any) -> Behaviour:
    behaviour = answer(GOOD, DIRECT, INFERENCE)
    assert behaviour.content is not None
    checks = json.loads(behaviour.content)["claim_checks"]
    return changed(claim_checks=[{**checks[0], **changes}, checks[1]])


REF = {"invocation_id": "call-df", "tool_name": "run_command", "raw_path": "$.stdout"}
RETRYABLE: dict[str, tuple[Behaviour, str]] = {
    "500": (status(500), "TRANSPORT"),
    "429": (status(429), "RATE_LIMITED"),
    "reset": (reset(), "TRANSPORT"),
    "silence": (hang(), "TIMEOUT"),
    "trickle": (trickle(0.05), "TIMEOUT"),
    "HTML": (html(200), "UNPARSEABLE"),
    "an empty body": (raw(b""), "UNPARSEABLE"),
    "no answer": (choices([]), "OFF_SCHEMA"),
    "refusal": (refusal(), "OFF_SCHEMA"),
    "cut by length": (cut_by_length(), "OFF_SCHEMA"),
    "prose": (content("The claims hold."), "UNPARSEABLE"),
    "an empty text": (content(""), "UNPARSEABLE"),
    "another verdict": (changed(verdict="UNAVAILABLE"), "OFF_SCHEMA"),
    "no verdict": (changed(verdict=None), "OFF_SCHEMA"),
    "a score over 1": (changed(groundedness_score=1.5), "OFF_SCHEMA"),
    "blank rationale": (changed(rationale=" "), "OFF_SCHEMA"),
    "an extra field": (changed(confidence=1), "OFF_SCHEMA"),
    "a check too few": (changed(claim_checks=[]), "OFF_SCHEMA"),
    "a claim of nobody": (first_check(claim_id="c9"), "OFF_SCHEMA"),
    "a claim twice": (first_check(claim_id="c2"), "OFF_SCHEMA"),
    "another class": (first_check(classification="proved"), "OFF_SCHEMA"),
    "evidence of nobody": (
        first_check(evidence_refs=[{**REF, "invocation_id": "call-grep"}]),
        "OFF_SCHEMA",
    ),
    "no evidence": (first_check(evidence_refs=[]), "OFF_SCHEMA"),
}


def inputs_of(requests: list[Received]) -> set[str]:
    """What the requests asked, as the record hashes it."""
    return {
        hashlib.sha256(
            "".join(message["content"] for message in one.json["messages"]).encode()
        ).hexdigest()
        for one in requests
    }


def asked_the_same(end: Claimed) -> bool:
    """Tell whether every attempt sent the same bytes, and the record says which."""
    recorded = {str(one.input_sha256) for one in end.attempts(Step.VERIFY_CLAIMS)}
    return len({one.body for one in end.calls}) == 1 and inputs_of(end.calls) == recorded


@pytest.mark.scenario("claim-runs", "The same bytes twice")
@pytest.mark.parametrize("name", RETRYABLE)
def test_a_second_attempt_sends_the_same_bytes_and_runs_nothing_else_again(
    stage: LocalStage, name: str
) -> None:
    """Gate, composer and publish run once each; the second answer counts."""
    behaviour, outcome = RETRYABLE[name]
    end = judge_claims(stage, GOOD, behaviour, rules())
    assert end.outcome.type == SUCCEEDED
    assert end.outcomes(Step.VERIFY_CLAIMS) == [outcome, "VERIFIED"]
    assert len(end.calls) == 2
    assert asked_the_same(end)
    assert [one.grants for one in end.attempts(Step.GATE_CLAIMS)] == [1]
    stage.wait_for_step(end.run.run_id, PUBLISH, "SUCCEEDED")
    assert [ref for ref, _ in stage.carried_out(end.run.run_id)] == [
        GATE,
        VERIFY,
        SECOND_VERIFY,
        COMPOSE,
        PUBLISH,
    ]


def ends_without_a_verdict(end: Claimed, status_: str, reason: str) -> None:
    """The fixed low-confidence words, a record with the verifier's status, and no verdict."""
    assert end.ending == "PRE_VERIFICATION"
    assert end.outcome.type == FALLBACK
    fixed = build_fallback(FallbackType.PRE_VERIFICATION, "en")
    words = build_fallback(FallbackType.LOW_CONFIDENCE, "en")
    assert end.outcome.data["fallback"] == fixed.model_dump(mode="json")
    assert (fixed.title, fixed.message) == (words.title, words.message)
    assert "answer" not in end.outcome.data
    assert end.statuses() == ["COMPLETED", "PASS", status_, "NOT_RUN"]
    assert end.evaluation["failure_reasons"] == [reason]
    judged = {"model_verdict", "effective_verdict", "verdict", "rationale", "claim_checks"}
    assert not judged & set(end.evaluation)
    assert end.evaluation["gatekeeper_result"]["status"] == "pass"
    assert [item["claim_id"] for item in end.evaluation["verified_evidence"]] == ["c1", "c2"]
    assert end.evaluation["prompt_audit"]["prompts"]["verifier"]["name"] == "claim_verifier"


@pytest.mark.scenario("claim-runs", "A verifier that fails twice")
@pytest.mark.scenario("claim-runs", "An answer that cannot be used")
@pytest.mark.parametrize("name", ["500", "silence", "an empty text", "prose", "another verdict"])
def test_a_verifier_that_fails_twice_leaves_no_verdict(stage: LocalStage, name: str) -> None:
    """Its status is on record and is no verdict; the reader gets fixed words."""
    behaviour, outcome = RETRYABLE[name]
    end = judge_claims(stage, GOOD, behaviour.repeat(2))
    garbled = outcome in ("UNPARSEABLE", "OFF_SCHEMA")
    ends_without_a_verdict(
        end, "INVALID_OUTPUT" if garbled else "UNAVAILABLE", f"VERIFIER_{outcome}"
    )
    assert end.outcomes(Step.VERIFY_CLAIMS) == [outcome, outcome]
    assert asked_the_same(end)


@pytest.mark.scenario("claim-runs", "A refusal that is not tried again")
@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_a_refusal_by_the_provider_is_not_tried_again(stage: LocalStage, code: int) -> None:
    """One call, and then as after two failures."""
    end = judge_claims(stage, GOOD, status(code))
    ends_without_a_verdict(end, "UNAVAILABLE", "VERIFIER_PROVIDER_REFUSED")
    assert len(end.calls) == 1


@pytest.mark.scenario("claim-runs", "What the verifier is sent")
def test_the_verifier_is_sent_five_blocks_and_nothing_raw(stage: LocalStage) -> None:
    """Neither the agent's prompts, its gaps' words, unquoted output nor the document itself."""
    gap = {"claim_id": "c1", "tool_name": "query_logs", "critical": False, "description": "zqgap"}
    end = judge_claims(stage, document(evidence_gaps=[gap]))
    (call,) = end.calls
    assert list(call.question) == sorted(
        [
            "diagnosis_context",
            "gatekeeper_audit",
            "verdict_ceiling",
            "verified_evidence",
            "verified_executor_output",
        ]
    )
    text = call.body.decode()
    for hidden in ("zqgap", "Mounted on", "oom-killer", "planner", "evidence_bindings\\"):
        assert hidden not in text
