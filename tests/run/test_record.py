"""The record itself: frozen, quiet, and spelled as other workers read it."""

import json

import pytest
from pydantic import ValidationError

from tests.run.story import CHECK, START, Story, record
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.state import Attempt, EndingKind, Protocol, Run
from worker.run.steps import MODEL_STEPS, Step, StepRef


def test_record_is_never_changed_in_place() -> None:
    """A decision makes a new record, so the old one may be compared and kept."""
    run = Story().run
    with pytest.raises(ValidationError, match="frozen"):
        run.round = 1  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        Attempt().grants = 1  # type: ignore[misc]


def test_fields_of_a_newer_worker_are_passed_over() -> None:
    """Two versions may work on one run."""
    value = json.loads(record({CHECK: AttemptOutcome.PASSED}).model_dump_json())
    value["added"] = value["attempts"][CHECK.key]["added"] = "later"
    read = Run.model_validate_json(json.dumps(value))
    assert read == record({CHECK: AttemptOutcome.PASSED})


def test_a_broken_record_is_not_quoted() -> None:
    """Errors reach logs, and what was stored must not."""
    with pytest.raises(ValidationError) as caught:
        Run.model_validate_json('{"run_id": ["secret"], "opened_at": "secret"}')
    assert "secret" not in str(caught.value)


def test_untouched_attempt_says_nothing() -> None:
    """Nobody holds it, nothing bound it, nothing is charged."""
    assert Attempt().model_dump(exclude_defaults=True) == {}
    bare = Attempt()
    assert (bare.holder, bare.prompt, bare.deadline_bound, bare.settled) == ("", "", False, False)
    assert (bare.claimed_at, bare.timeout, bare.input_sha256) == (None, None, None)
    assert (bare.check, bare.verify) == (None, None)


def test_cancel_mark_holds_no_more_than_its_run() -> None:
    """What was not said is empty or None, also after its JSON."""
    mark = Run(run_id="r", cancelled_at=START)
    assert json.loads(mark.model_dump_json(exclude_defaults=True)) == {
        "run_id": "r",
        "cancelled_at": START,
    }
    assert (mark.session_id, mark.deadline_at, mark.messages) == ("", 0.0, {})
    assert (mark.locale, mark.reply_to, mark.ended_at) == (None, None, None)
    assert mark.protocol is Protocol.DRAFT
    assert not mark.evidence_waived


def test_stored_names_are_never_changed() -> None:
    """Records and task ids are made of them."""
    assert [step.value for step in Step] == [
        *("check_evidence", "repair_evidence", "review_semantics"),
        *("gate_claims", "verify_claims", "compose_answer", "publish"),
    ]
    assert [protocol.value for protocol in Protocol] == ["draft", "claims"]
    assert [kind.value for kind in EndingKind] == ["SUCCEEDED", "FALLBACK", "ABORTED"]
    assert all(outcome.value == outcome.name for outcome in AttemptOutcome)
    assert StepRef(1, Step.VERIFY_CLAIMS, 2).key == "1.verify_claims.2"


def test_steps_that_ask_a_model_are_three() -> None:
    """A lost one is a used attempt, and each is charged before it starts."""
    assert {Step.REPAIR_EVIDENCE, Step.REVIEW_SEMANTICS, Step.VERIFY_CLAIMS} == MODEL_STEPS


def test_promised_numbers_are_the_defaults() -> None:
    """One repair, two reviews, three starts, and half a minute kept from a wait for evidence."""
    policy = Policy()
    assert (policy.repair_attempts, policy.review_attempts, policy.max_grants) == (1, 2, 3)
    assert (policy.evidence_reserve, policy.ask_for_evidence) == (30.0, True)
    assert (policy.resend_first, policy.resend_max) == (60.0, 900.0)
