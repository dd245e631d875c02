"""Lost attempts, leases and sending again."""

import pytest

from tests.run.story import CHECK, PUBLISH, REPAIR, REREVIEW, REVIEW, START, Story, aborted, facts
from worker.run.events import Answer, Finished, Lost, Ticked
from worker.run.outcomes import AttemptOutcome
from worker.run.path import due_at, next_step
from worker.run.policy import Policy
from worker.run.steps import StepRef

POLICY = Policy()
LIGHT_LEASE = 40.0
CALL_LEASE = 70.0


def reviewing(deadline: float = 900.0) -> Story:
    """A run whose first review is held."""
    story = Story(deadline=deadline).carries_out(CHECK, AttemptOutcome.PASSED)
    assert story.claims(REVIEW) is Answer.GRANTED
    return story


@pytest.mark.scenario("run-record", "A lost call")
def test_lost_call_is_a_used_attempt() -> None:
    """A review whose process is gone is never started again: the second attempt follows."""
    story = reviewing()
    assert story.after(3).hears(Lost(REVIEW, 1)) is Answer.RECORDED
    assert story.run.attempt(REVIEW).outcome is AttemptOutcome.LOST
    assert story.claims(REVIEW) is Answer.DONE
    assert next_step(story.run, POLICY) == REREVIEW
    assert story.claims(REREVIEW) is Answer.GRANTED


def test_repair_that_is_lost_is_not_made_again() -> None:
    """One repair call a run, also when its answer was lost."""
    story = Story().carries_out(CHECK, AttemptOutcome.VIOLATED)
    story.claims(REPAIR)
    assert story.after(CALL_LEASE).claims(REPAIR) is Answer.DONE
    assert story.run.attempt(REPAIR).outcome is AttemptOutcome.LOST
    assert next_step(story.run, POLICY) == PUBLISH


def test_call_is_lost_only_when_its_lease_has_ended() -> None:
    """The reconciler waits as long as the call may live, and then sends the second attempt."""
    story = reviewing()
    assert due_at(story.run, POLICY) == story.now + CALL_LEASE
    before = story.run
    assert story.after(CALL_LEASE - 0.001).hears(Ticked()) is Answer.WAIT
    assert story.run is before
    assert story.after(0.001).hears(Ticked()) is Answer.SEND
    assert story.run.attempt(REVIEW).outcome is AttemptOutcome.LOST
    assert next_step(story.run, POLICY) == REREVIEW


def test_repeat_after_the_lease_does_not_call_again() -> None:
    """A redelivered review whose lease has ended records the loss and is told it is done."""
    story = reviewing()
    assert story.after(CALL_LEASE).claims(REVIEW) is Answer.DONE
    assert story.run.attempt(REVIEW).outcome is AttemptOutcome.LOST


@pytest.mark.scenario("run-record", "A late answer")
def test_late_answer_of_a_lost_call_releases_nothing() -> None:
    """The loss was recorded first; what the call says afterwards is only charged."""
    story = reviewing()
    story.hears(Lost(REVIEW, 1))
    assert story.hears(Finished(REVIEW, AttemptOutcome.SUPPORTED)) is Answer.STANDS
    assert story.run.attempt(REVIEW).outcome is AttemptOutcome.LOST


@pytest.mark.parametrize("ref", [CHECK, PUBLISH])
def test_lost_step_without_a_model_is_granted_again(ref: StepRef) -> None:
    """A lost check or publish is free at once, under the same id."""
    story = Story()
    if ref == PUBLISH:
        story.carries_out(CHECK, AttemptOutcome.UNCONCLUDED, facts(concluded=False))
    story.claims(ref)
    assert story.hears(Lost(ref, 1)) is Answer.RECORDED
    assert story.run.attempt(ref).lease_until is None
    assert story.claims(ref) is Answer.GRANTED
    assert story.run.attempt(ref).grants == 2


@pytest.mark.scenario("run-record", "A loss that is told twice")
def test_errback_that_fires_twice_changes_nothing() -> None:
    """The loss of the first start does not take the second one away."""
    story = Story()
    story.claims(CHECK)
    assert story.hears(Lost(CHECK, 1)) is Answer.RECORDED
    once = story.run
    assert story.hears(Lost(CHECK, 1)) is Answer.STANDS
    assert story.run is once
    story.claims(CHECK)
    held = story.run
    assert story.hears(Lost(CHECK, 1)) is Answer.STANDS
    assert story.run is held


@pytest.mark.parametrize("grant", [0, 1, 2])
def test_loss_of_a_step_that_nobody_holds_changes_nothing(grant: int) -> None:
    """Unstarted, finished and ended: there is nothing to lose."""
    story = Story()
    before = story.run
    assert story.hears(Lost(CHECK, grant)) is Answer.STANDS
    assert story.run is before
    story.carries_out(CHECK, AttemptOutcome.PASSED)
    before = story.run
    assert story.hears(Lost(CHECK, grant)) is Answer.STANDS
    assert story.run is before
    story.claims(REVIEW)
    story.is_cancelled()
    before = story.run
    assert story.hears(Lost(REVIEW, grant)) is Answer.STANDS
    assert story.run is before


def test_call_closed_by_a_stranger_counts_as_lost() -> None:
    """A call that was closed while its run is open is a used attempt, not the run's end."""
    story = reviewing()
    assert story.hears(Finished(REVIEW, AttemptOutcome.CANCELLED)) is Answer.RECORDED
    assert story.run.attempt(REVIEW).outcome is AttemptOutcome.LOST
    assert next_step(story.run, POLICY) == REREVIEW


@pytest.mark.scenario("run-record", "Waits that double")
def test_unclaimed_step_is_sent_again_at_doubling_waits() -> None:
    """60 s, then twice as long each time, and never longer than 15 minutes."""
    story = Story(deadline=20_000.0)
    waits = []
    for _ in range(8):
        due = due_at(story.run, POLICY)
        assert due is not None
        waits.append(due - story.now)
        assert story.after(due - story.now - 0.5).hears(Ticked()) is Answer.WAIT
        assert story.after(0.5).hears(Ticked()) is Answer.SEND
    assert waits == [60, 120, 240, 480, 900, 900, 900, 900]


def test_sending_is_no_start() -> None:
    """A slow queue looks like nothing else: sending again uses up no attempt."""
    story = Story(deadline=20_000.0)
    for _ in range(8):
        story.after(1000).hears(Ticked())
    assert not story.run.attempts
    assert story.claims(CHECK) is Answer.GRANTED
    assert story.run.attempt(CHECK).grants == 1


def test_wait_for_the_next_step_starts_anew() -> None:
    """A result sets the waits of the step that follows back to the first one."""
    story = Story(deadline=20_000.0)
    story.after(60).hears(Ticked())
    story.after(120).hears(Ticked())
    story.carries_out(CHECK, AttemptOutcome.PASSED)
    assert story.run.resends == 0
    assert due_at(story.run, POLICY) == story.now + 60


def test_lost_step_is_sent_at_once_and_watched_from_then() -> None:
    """When a lease ends, the step is sent now and looked for after the first wait."""
    story = Story()
    story.claims(CHECK)
    assert story.after(LIGHT_LEASE).hears(Ticked()) is Answer.SEND
    assert due_at(story.run, POLICY) == story.now + 60
    assert story.hears(Ticked()) is Answer.WAIT


def test_rate_limited_call_waits_before_the_second_attempt() -> None:
    """The provider's wait is on record, and the reconciler does not hurry past it."""
    story = Story().carries_out(CHECK, AttemptOutcome.PASSED)
    assert story.after(60).hears(Ticked()) is Answer.SEND
    assert story.claims(REVIEW) is Answer.GRANTED
    limited = Finished(REVIEW, AttemptOutcome.RATE_LIMITED, retry_after=7.0)
    assert story.after(2).hears(limited) is Answer.RECORDED
    assert story.run.attempt(REVIEW).retry_at == story.now + 7
    assert story.run.resends == 0
    assert due_at(story.run, POLICY) == story.now + 7
    assert next_step(story.run, POLICY) == REREVIEW


def test_failure_without_a_wait_has_none_on_record() -> None:
    """Only a wait that was asked for delays the second attempt."""
    story = reviewing()
    story.hears(Finished(REVIEW, AttemptOutcome.TRANSPORT))
    assert story.run.attempt(REVIEW).retry_at is None


@pytest.mark.scenario("run-record", "Time alone")
def test_ticks_alone_end_every_run() -> None:
    """If no worker ever comes, the deadline ends the run."""
    story = Story(deadline=300.0)
    for _ in range(10):
        due = due_at(story.run, POLICY)
        if due is None:
            break
        story.after(due - story.now).hears(Ticked())
    assert story.ending == aborted("DEADLINE_EXCEEDED")
    assert story.now == START + 300
