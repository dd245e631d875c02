"""One request for evidence, on real workers: where it goes, what answers it, how its wait ends."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.envelope import Envelope
from tests.pipeline.cases import command_record
from tests.pipeline.claimed import (
    ABORTED,
    FALLBACK,
    GAP,
    INFERRED,
    MADE_UP,
    OBSERVED,
    SUCCEEDED,
    answer,
    binding,
    claim,
    claimed,
    document,
    judge_claims,
    output_ready,
    submit_claims,
)
from tests.pipeline.harness import LocalStage
from worker.offline.judge_script import Behaviour, rules
from worker.run.steps import Step

ROUND_1 = "ExecutorOutputReady/1"
DOUBTED = document(evidence_gaps=[GAP])
LOW = answer(DOUBTED, "unsupported", "reasonable_inference", verdict="LOW_CONFID")
WRITER = "write /var/spool/7: No space left on device"


def asking(stage: LocalStage, *behaviours: Behaviour, **changes: Any) -> str:
    """Submit claims that the verifier doubts and whose critical gap can be asked for."""
    return submit_claims(stage, DOUBTED, LOW, *behaviours, **changes)


def answered(stage: LocalStage, run_id: str) -> dict[str, Any]:
    """The document of round 1, on a call that the agent made meanwhile."""
    stage.record(command_record(run_id, "call-log", command="tail log", stdout=WRITER))
    added = binding(invocation_id="call-log", matched_text=WRITER)
    return document(
        OBSERVED, INFERRED, claim("c4", 'The writer logs "No space left on device".', added)
    )


def answer_request(stage: LocalStage, run_id: str, output: Any) -> None:
    stage.client.submit_claims(output_ready(run_id, output, round=1))


def is_the_request(envelope: Envelope, run_id: str) -> bool:
    """Tell whether this asks for the one critical gap, for round 1, with its agent's own words."""
    return envelope.type == "release_stage.EvidenceRequested.v1" and envelope.data == {
        "run_id": run_id,
        "session_id": "session-1",
        "round": 1,
        "gaps": [
            {
                "claim_id": "c1",
                "tool_name": "query_logs",
                "missing": GAP["description"],
            }
        ],
    }


@pytest.mark.scenario("claim-runs", "Evidence that was asked for comes")
def test_evidence_that_was_asked_for_opens_round_one(stage: LocalStage) -> None:
    """Asked on the shared queue, answered, gated and verified again, and released."""
    run_id = asking(stage)
    assert is_the_request(stage.request(run_id), run_id)
    assert run_id not in stage.results, "a request is no result"
    run = stage.run(run_id)
    assert run is not None
    assert run.waits_for_evidence
    answer_request(stage, run_id, answered(stage, run_id))
    end = claimed(stage, run_id)
    assert end.outcome.type == SUCCEEDED
    assert end.outcome.data["round"] == 1
    assert "c4" in end.evaluation["composer_output"]["confirmed_claim_ids"]
    assert end.outcomes(Step.GATE_CLAIMS, 0) == end.outcomes(Step.GATE_CLAIMS, 1) == ["PASSED"]
    assert end.outcomes(Step.VERIFY_CLAIMS, 1) == ["VERIFIED"]
    assert end.outcomes(Step.COMPOSE_ANSWER, 0) == []
    assert end.evaluation["evidence_retries"] == 1
    first, second = end.calls
    assert "retry_context" not in first.question
    requested = [{"claim_id": "c1", "critical": True, "tool_name": "query_logs"}]
    assert second.question["retry_context"] == {"requested": requested}


@pytest.mark.scenario("claim-runs", "Either broker brings the request")
def test_either_broker_brings_the_request(either: LocalStage) -> None:
    """The shared queue is declared alike by the one who asks and the one who reads."""
    run_id = asking(either)
    assert is_the_request(either.request(run_id), run_id)
    answer_request(either, run_id, answered(either, run_id))
    assert claimed(either, run_id).outcome.type == SUCCEEDED


@pytest.mark.scenario("claim-runs", "A request goes where its sender listens")
def test_a_request_goes_to_the_reply_queue_of_its_sender(stage: LocalStage) -> None:
    """To that queue alone; the ending goes there, too, and to the results."""
    reply_to = "release.reply.claims-1"
    run_id = asking(stage, reply_to=reply_to)
    assert is_the_request(stage.reply(reply_to), run_id)
    answer_request(stage, run_id, answered(stage, run_id))
    assert claimed(stage, run_id).outcome.type == SUCCEEDED
    assert stage.reply(reply_to).type == SUCCEEDED
    other = asking(stage)
    stage.request(other)
    assert run_id not in stage.requests
    stage.client.cancel_run(other)


@pytest.mark.scenario("claim-runs", "Evidence that does not come")
@pytest.mark.scenario("claim-runs", "Evidence that comes too late")
def test_a_wait_that_is_over_goes_on_with_what_there_is(stage: LocalStage) -> None:
    """Composed from round 0 before the deadline; a later answer is on record and ignored."""
    reserve = stage.settings.evidence_reserve
    deadline = datetime.now(UTC) + timedelta(seconds=reserve + 3)
    run_id = asking(stage, deadline=deadline)
    stage.request(run_id)
    end = claimed(stage, run_id)
    assert end.ending == "LOW_CONFIDENCE"
    assert end.run.ended_at is not None
    assert deadline.timestamp() - reserve <= end.run.ended_at < deadline.timestamp()
    assert [one["text"] for one in end.answer["possible"]] == [INFERRED["text"]]
    assert [gap["tool"] for gap in end.answer["gaps"]] == ["query_logs", None]
    assert end.evaluation["evidence_retries"] == 1
    before = end.run

    answer_request(stage, run_id, answered(stage, run_id))

    def is_recorded() -> bool:
        run = stage.run(run_id)
        return run is not None and ROUND_1 in run.messages

    stage.wait_for(is_recorded, "the late answer on record")
    after = claimed(stage, run_id)
    assert after.run.model_copy(update={"messages": before.messages}) == before
    assert after.evaluation == end.evaluation
    assert len(after.calls) == 1


@pytest.mark.scenario("claim-runs", "A malformed answer to a request")
@pytest.mark.parametrize(
    ("output", "statuses"),
    [
        ("I looked again.", ["INVALID_OUTPUT", "NOT_RUN", "NOT_RUN", "NOT_RUN"]),
        (document(MADE_UP), ["COMPLETED", "REJECT", "NOT_RUN", "NOT_RUN"]),
    ],
    ids=["unreadable", "rejected"],
)
def test_a_malformed_answer_ends_before_verification(
    stage: LocalStage, output: Any, statuses: list[str]
) -> None:
    """What round 0 found no longer counts, neither for the reader nor on record."""
    run_id = asking(stage)
    stage.request(run_id)
    answer_request(stage, run_id, output)
    end = claimed(stage, run_id)
    assert end.ending == "PRE_VERIFICATION"
    assert end.outcome.data["round"] == 1
    assert "answer" not in end.outcome.data
    assert end.statuses() == statuses
    assert "verdict" not in end.evaluation
    assert len(end.calls) == 1


@pytest.mark.scenario("claim-runs", "No second request")
def test_doubts_about_round_one_ask_for_nothing_more(stage: LocalStage) -> None:
    """The gap is still there and critical: the answer is composed."""
    run_id = asking(stage, LOW)
    stage.request(run_id)
    answer_request(stage, run_id, DOUBTED)
    end = claimed(stage, run_id)
    assert end.outcome.type == FALLBACK
    assert end.ending == "LOW_CONFIDENCE"
    assert end.outcomes(Step.VERIFY_CLAIMS, 1) == ["VERIFIED"]
    other = asking(stage)
    stage.request(other)
    stage.client.cancel_run(other)
    assert len(stage.requests[run_id]) == 1


def unasked(case: str) -> tuple[dict[str, Any], Behaviour]:
    """Doubted claims whose gap is not asked for, and what the verifier says."""
    match case:
        case "lower ceiling":
            return document(OBSERVED, INFERRED, MADE_UP, evidence_gaps=[GAP]), LOW
        case "not critical":
            return document(evidence_gaps=[{**GAP, "critical": False}]), LOW
        case "unknown claim":
            return document(evidence_gaps=[{**GAP, "claim_id": "c9"}]), LOW
        case "unknown tool":
            return document(evidence_gaps=[{**GAP, "tool_name": "ask_a_friend"}]), LOW
        case "rejected":
            return DOUBTED, answer(DOUBTED, "contradicted", "reasonable_inference")
        case "a low score alone":
            classes = ("direct_observation", "reasonable_inference")
            return DOUBTED, answer(DOUBTED, *classes, groundedness_score=0.1)
        case _:
            return DOUBTED, rules()


@pytest.mark.scenario("claim-runs", "Nothing is asked for")
@pytest.mark.parametrize(
    ("case", "ending"),
    [
        ("lower ceiling", "LOW_CONFIDENCE"),
        ("not critical", "LOW_CONFIDENCE"),
        ("unknown claim", "LOW_CONFIDENCE"),
        ("unknown tool", "LOW_CONFIDENCE"),
        ("a low score alone", "LOW_CONFIDENCE"),
        ("rejected", "CLAIMS_REJECTED"),
        ("passed", "SUCCEEDED"),
    ],
)
def test_what_cannot_help_is_not_asked_for(stage: LocalStage, case: str, ending: str) -> None:
    """The verdict is composed at once, in round 0."""
    output, behaviour = unasked(case)
    end = judge_claims(stage, output, behaviour)
    assert end.ending == ending
    assert end.run.evidence_until is None
    assert end.evaluation["evidence_retries"] == 0
    assert end.outcome.data["round"] == 0


@pytest.mark.scenario("claim-runs", "An answer that nobody asked for")
def test_an_answer_that_nobody_asked_for_is_refused(stage: LocalStage) -> None:
    """To a run that did not ask, and to one that does not exist."""
    end = judge_claims(stage, document())
    for run_id in (end.run.run_id, f"{end.run.run_id}-unknown"):
        raw = stage.wrapped(output_ready(run_id, document(), round=1))
        stage.publish_raw(raw)
        assert stage.dead_letter(raw) == "CONFLICTING_REPEAT"
    assert stage.run(end.run.run_id) == end.run


@pytest.mark.scenario("claim-runs", "A run that waits is cancelled")
def test_a_run_that_waits_for_evidence_can_be_cancelled(stage: LocalStage) -> None:
    """It ends at once, with what was verified on record."""
    run_id = asking(stage)
    stage.request(run_id)
    stage.client.cancel_run(run_id)
    end = claimed(stage, run_id)
    assert end.outcome.type == ABORTED
    assert end.ending == "CANCELLED"
    assert end.evaluation["failure_reasons"] == ["CANCELLED"]
    assert end.evaluation["verdict"] == "LOW_CONFID"
    assert end.statuses()[-1] == "NOT_RUN"
