"""Admission and claims: who may start what, and what a repeat is told."""

from dataclasses import replace

import pytest

from contracts.messages import Budget
from tests.run.story import (
    CHECK,
    DRAFT_REFS,
    KEY,
    PUBLISH,
    RECHECK,
    REPAIR,
    REREVIEW,
    REVIEW,
    RUN_ID,
    START,
    Story,
    aborted,
    facts,
)
from worker.run.events import Answer, Cancelled, Claimed, Event, Finished, Lost, Published, Ticked
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import Run
from worker.run.steps import StepRef

POLICY = Policy()
LIGHT_LEASE = 40.0
CALL_LEASE = 70.0


def test_admission_opens_a_run() -> None:
    """The record holds the message's hash, its deadline and the first time to look again."""
    story = Story()
    run = story.run
    assert run.messages == {KEY: "a" * 64}
    assert (run.opened_at, run.deadline_at, run.resend_at) == (START, START + 900, START + 60)
    assert run.is_open


def test_admission_keeps_what_the_message_says_of_its_run() -> None:
    """Session, locale, where to answer and what may be spent stay with the run."""
    story = Story(admitted=False, budget=Budget(tokens=7))
    story.hears(replace(story.opening, locale="zh-CN", reply_to="release.reply.a"))
    run = story.run
    assert (run.run_id, run.session_id) == (RUN_ID, "s-1")
    assert (run.locale, run.reply_to) == ("zh-CN", "release.reply.a")
    assert run.budget == Budget(tokens=7)


def test_answer_that_nobody_asked_for_leaves_a_cancel_mark_alone() -> None:
    """A round 1 before its round 0 is refused, and the mark still waits for the draft."""
    story = Story(admitted=False)
    story.is_cancelled()
    mark = story.run
    decision = decide(mark, replace(story.opening, round=1), story.now, POLICY)
    assert decision.answer is Answer.CONFLICT
    assert decision.run is mark


def test_repeat_of_a_message_changes_nothing() -> None:
    """The same message again is told so, in an open and in an ended run."""
    story = Story()
    before = story.run
    assert story.after(5).hears(story.opening) is Answer.REPEATED
    assert story.run is before
    story.is_cancelled()
    ended = story.run
    assert story.after(5).hears(story.opening) is Answer.REPEATED
    assert story.run is ended


def test_conflicting_repeat_is_refused() -> None:
    """Another message under the same run, type and round changes nothing and is told apart."""
    story = Story()
    before = story.run
    assert story.hears(replace(story.opening, sha256="b" * 64)) is Answer.CONFLICT
    assert story.hears(replace(story.opening, key="ExecutorOutputReady/0")) is Answer.CONFLICT
    assert story.run is before


def test_draft_that_comes_after_its_deadline_is_aborted() -> None:
    """At the deadline it is too late to begin."""
    story = Story(admitted=False, deadline=10.0)
    assert story.after(10).hears(story.opening) is Answer.ENDED
    assert story.ending == aborted("DEADLINE_EXCEEDED")


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        (Claimed(CHECK), Answer.REFUSED),
        (Finished(CHECK, AttemptOutcome.PASSED, check=facts()), Answer.UNKNOWN),
        (Lost(CHECK, 1), Answer.UNKNOWN),
        (Published(PUBLISH), Answer.UNKNOWN),
        (Ticked(), Answer.UNKNOWN),
    ],
)
def test_nothing_happens_to_a_run_that_was_never_opened(event: Event, answer: Answer) -> None:
    """Late messages of an expired run, and of one that is only marked, start nothing."""
    assert decide(None, event, START, POLICY) == decide(None, event, START + 1, POLICY)
    assert decide(None, event, START, POLICY).answer is answer
    mark = Run(run_id=RUN_ID, cancelled_at=START)
    decision = decide(mark, event, START, POLICY)
    assert decision.run is mark
    assert decision.answer is answer


@pytest.mark.scenario("run-record", "Only the next step is granted")
@pytest.mark.parametrize("ref", [ref for ref in DRAFT_REFS if ref != CHECK])
def test_claim_of_a_step_that_is_not_next_is_refused(ref: StepRef) -> None:
    """A new run starts with its check and nothing else."""
    story = Story()
    before = story.run
    assert story.claims(ref) is Answer.REFUSED
    assert story.run is before


def test_step_over_the_policy_is_refused() -> None:
    """There is no second repair and no third review, whatever a message asks for."""
    story = Story().carries_out(CHECK, AttemptOutcome.PASSED)
    story.carries_out(REVIEW, AttemptOutcome.TIMEOUT)
    story.carries_out(REREVIEW, AttemptOutcome.TIMEOUT)
    assert story.claims(REVIEW._replace(attempt=3)) is Answer.REFUSED
    assert story.claims(REPAIR) is Answer.REFUSED
    assert story.claims(REPAIR._replace(attempt=2)) is Answer.REFUSED
    assert story.claims(CHECK._replace(round=1)) is Answer.REFUSED


@pytest.mark.scenario("run-record", "Two deliveries of one step")
def test_second_delivery_is_held_until_the_lease_ends() -> None:
    """While one worker holds a step, another delivery of it starts nothing."""
    story = Story()
    assert story.claims(CHECK) is Answer.GRANTED
    before = story.run
    assert before.attempt(CHECK).lease_until == START + LIGHT_LEASE
    assert story.after(LIGHT_LEASE - 0.001).claims(CHECK) is Answer.HELD
    assert story.run is before
    assert story.after(0.001).claims(CHECK) is Answer.GRANTED
    assert story.run.attempt(CHECK).grants == 2
    assert (before.attempt(CHECK).claimed_at, story.run.attempt(CHECK).claimed_at) == (
        START,
        START + LIGHT_LEASE,
    )


@pytest.mark.scenario("run-record", "A recorded result")
def test_repeat_of_a_finished_step_is_told_it_is_done() -> None:
    """The result stands, and the caller goes on from it: the crash may have come in between."""
    story = Story().carries_out(CHECK, AttemptOutcome.PASSED)
    before = story.run
    assert story.claims(CHECK) is Answer.DONE
    assert story.run is before


@pytest.mark.scenario("run-record", "A recorded result")
def test_first_recorded_result_stands() -> None:
    """Two workers that both did the work agree on what the first one recorded."""
    story = Story()
    story.claims(CHECK)
    story.after(LIGHT_LEASE).claims(CHECK)
    first = Finished(CHECK, AttemptOutcome.PASSED, check=facts())
    assert story.hears(first) is Answer.RECORDED
    before = story.run
    late = Finished(CHECK, AttemptOutcome.VIOLATED, check=facts(violations=1))
    assert story.hears(late) is Answer.STANDS
    assert story.run is before


def test_result_of_a_step_that_nobody_was_granted_is_refused() -> None:
    """Without a grant there is no result, as for a soft limit that struck before the claim."""
    story = Story()
    before = story.run
    assert story.hears(Finished(REVIEW, AttemptOutcome.SUPPORTED)) is Answer.REFUSED
    assert story.run is before


@pytest.mark.parametrize("ref", DRAFT_REFS)
def test_nothing_can_be_claimed_once_a_run_has_ended(ref: StepRef) -> None:
    """Also a step that was held when the run ended."""
    story = Story()
    story.claims(CHECK)
    story.is_cancelled()
    assert story.claims(ref) is Answer.REFUSED


@pytest.mark.scenario("run-record", "A fourth start")
@pytest.mark.parametrize("ref", [CHECK, RECHECK, PUBLISH])
def test_fourth_start_of_a_step_ends_the_run(ref: StepRef) -> None:
    """A step that asks no model may be lost twice; what kills three workers kills a fourth."""
    story = Story()
    if ref == RECHECK:
        story.carries_out(CHECK, AttemptOutcome.VIOLATED)
        story.carries_out(REPAIR, AttemptOutcome.REPAIRED)
    elif ref == PUBLISH:
        story.carries_out(CHECK, AttemptOutcome.UNCONCLUDED, facts(concluded=False))
    for _ in range(POLICY.max_grants):
        assert story.claims(ref) is Answer.GRANTED
        story.after(LIGHT_LEASE)
    assert story.claims(ref) is Answer.REFUSED
    assert story.ending == aborted("PROCESSING_FAILED")


def test_publishing_is_refused_unless_it_is_next() -> None:
    """A publish message that overtook the review decides nothing."""
    story = Story().carries_out(CHECK, AttemptOutcome.PASSED)
    assert story.hears(Published(PUBLISH)) is Answer.REFUSED
    story.claims(REVIEW)
    assert story.claims(PUBLISH) is Answer.REFUSED
    assert story.hears(Published(PUBLISH)) is Answer.REFUSED
    assert story.run.is_open


@pytest.mark.scenario("run-record", "A second decision")
def test_second_decision_gets_the_ending_that_stands() -> None:
    """Publishing twice ends a run once."""
    story = Story().carries_out(CHECK, AttemptOutcome.UNCONCLUDED, facts(concluded=False))
    story.publishes()
    before = story.run
    assert story.after(1).hears(Published(PUBLISH)) is Answer.STANDS
    assert story.after(1).hears(Cancelled(RUN_ID)) is Answer.STANDS
    assert story.after(1000).hears(Ticked()) is Answer.WAIT
    assert story.run is before


def test_claim_whose_answer_was_lost_is_answered_again() -> None:
    """The same delivery asks again after a broken connection and is not held off by itself."""
    reviewing = Story()
    reviewing.carries_out(CHECK, AttemptOutcome.PASSED, check=facts())
    for ref, story in ((CHECK, Story()), (REVIEW, reviewing)):
        own = Claimed(ref, holder="delivery-1")
        assert story.hears(own) is Answer.GRANTED
        granted = story.run
        assert story.hears(own) is Answer.GRANTED
        assert story.run is granted
        assert story.hears(Claimed(ref, holder="delivery-2")) is Answer.HELD
        assert story.hears(Claimed(ref)) is Answer.HELD
