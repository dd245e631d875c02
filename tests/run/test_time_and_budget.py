"""What an attempt may take and cost, and what happens when it runs out."""

import pytest

from contracts.messages import Budget
from tests.run.story import (
    CHECK,
    PUBLISH,
    REPAIR,
    REREVIEW,
    REVIEW,
    SUCCEEDED,
    UNLIMITED,
    Story,
    aborted,
)
from worker.run.events import Answer, Claimed, Finished, Lost, Published, Ticked, Used
from worker.run.outcomes import AttemptOutcome
from worker.run.path import due_at, next_step
from worker.run.state import Spend

CALL = Spend(model_calls=1, input_bytes=100, output_bytes=1000, tokens=50)
UNSUPPORTED = AttemptOutcome.UNSUPPORTED
TIMEOUT = AttemptOutcome.TIMEOUT


def ready(*, deadline: float = 900.0, budget: Budget = UNLIMITED) -> Story:
    """A run whose next step is its first review."""
    return Story(deadline=deadline, budget=budget).carries_out(CHECK, AttemptOutcome.PASSED)


@pytest.mark.parametrize(
    ("run_left", "expected", "deadline_bound"),
    [(900.0, 60.0, False), (60.0, 60.0, False), (59.5, 59.5, True), (0.25, 0.25, True)],
)
def test_first_attempt_gets_the_attempt_timeout_or_what_the_run_has_left(
    run_left: float, expected: float, deadline_bound: bool
) -> None:
    """The smaller of the two, fixed when it starts, and the record tells which it was."""
    story = ready(deadline=1000.0)
    story.after(1000.0 - run_left).claims(REVIEW)
    attempt = story.run.attempt(REVIEW)
    assert attempt.timeout == expected
    assert attempt.deadline_bound is deadline_bound


@pytest.mark.parametrize(("first_took", "expected"), [(10.0, 60.0), (60.0, 40.0), (65.0, 35.0)])
def test_second_attempt_gets_what_the_guard_has_left(first_took: float, expected: float) -> None:
    """Both attempts together have 100 s of call time; waiting in the queue is free."""
    story = ready()
    story.claims(REVIEW)
    story.after(first_took).hears(Finished(REVIEW, TIMEOUT))
    story.after(200).claims(REREVIEW)
    assert story.run.attempt(REREVIEW).timeout == expected
    assert not story.run.attempt(REREVIEW).deadline_bound


def test_lost_first_attempt_leaves_what_it_was_not_given() -> None:
    """A lost call counts with its whole time, though it was lost at once."""
    story = ready()
    story.claims(REVIEW)
    story.after(1).hears(Lost(REVIEW, 1))
    story.claims(REREVIEW)
    assert story.run.attempt(REREVIEW).timeout == 40.0


def test_repair_has_its_own_time() -> None:
    """The review's total does not count the repair."""
    story = Story().carries_out(CHECK, AttemptOutcome.VIOLATED)
    story.claims(REPAIR)
    assert story.run.attempt(REPAIR).timeout == 60.0


def test_timeout_that_the_deadline_set_ends_the_run() -> None:
    """If the run's deadline bound the call, its timeout is DEADLINE_EXCEEDED, no fallback."""
    story = ready(deadline=30.0)
    story.claims(REVIEW)
    assert story.after(29.9).hears(Finished(REVIEW, TIMEOUT)) is Answer.ENDED
    assert story.ending == aborted("DEADLINE_EXCEEDED")


def test_timeout_of_its_own_does_not_end_the_run() -> None:
    """An attempt that used up its own time is followed by the second one."""
    story = ready()
    story.claims(REVIEW)
    assert story.after(60).hears(Finished(REVIEW, TIMEOUT)) is Answer.RECORDED
    assert next_step(story.run, story.policy) == REREVIEW


@pytest.mark.parametrize("outcome", [AttemptOutcome.SUPPORTED, UNSUPPORTED, TIMEOUT])
def test_answer_at_the_deadline_is_too_late(outcome: AttemptOutcome) -> None:
    """Whatever it says, nothing is released at or after the deadline."""
    story = ready(deadline=30.0)
    story.claims(REVIEW)
    assert story.after(30).hears(Finished(REVIEW, outcome)) is Answer.ENDED
    assert story.ending == aborted("DEADLINE_EXCEEDED")


def test_publishing_at_the_deadline_is_too_late() -> None:
    """The last moment of a run belongs to its deadline."""
    story = ready(deadline=30.0).carries_out(REVIEW, AttemptOutcome.SUPPORTED)
    story.claims(PUBLISH)
    assert story.after(30).hears(Published(PUBLISH)) is Answer.ENDED
    assert story.ending == aborted("DEADLINE_EXCEEDED")


@pytest.mark.parametrize("held", [False, True])
def test_deadline_ends_a_run_by_claim_and_by_tick(held: bool) -> None:
    """A step that starts too late ends the run, and so does the reconciler, lease or not."""
    for event in ("claim", "tick"):
        story = ready(deadline=30.0)
        if held:
            story.claims(REVIEW)
        assert due_at(story.run, story.policy) == story.now + 30
        story.after(30)
        if event == "claim":
            assert story.claims(REVIEW) is Answer.REFUSED
        else:
            assert story.hears(Ticked()) is Answer.ENDED
        assert story.ending == aborted("DEADLINE_EXCEEDED")


def test_start_reserves_all_that_the_call_may_cost() -> None:
    """Until it ends, a call is charged with its most."""
    story = ready(budget=Budget(model_calls=1, input_bytes=100, output_bytes=1000, tokens=50))
    assert story.claims(REVIEW, spend=CALL) is Answer.GRANTED
    assert story.run.spent == CALL


def test_call_without_a_stated_cost_counts_as_one_call() -> None:
    """Nothing is free."""
    story = ready(budget=Budget(model_calls=0))
    assert story.claims(REVIEW) is Answer.REFUSED
    assert story.ending == aborted("BUDGET_EXHAUSTED")
    story = ready(budget=Budget(model_calls=1))
    assert story.claims(REVIEW) is Answer.GRANTED
    assert story.run.spent == Spend(model_calls=1)


def test_record_says_what_a_call_was_asked_with() -> None:
    """The hash of its input and the prompt's name and version stand with the attempt."""
    story = ready()
    claimed = Claimed(REVIEW, input_sha256="c" * 64, prompt="semantic_review/1")
    assert story.hears(claimed) is Answer.GRANTED
    attempt = story.run.attempt(REVIEW)
    assert (attempt.input_sha256, attempt.prompt) == ("c" * 64, "semantic_review/1")


@pytest.mark.parametrize("field", ["model_calls", "input_bytes", "output_bytes", "tokens"])
def test_budget_that_runs_out_inside_a_guard_aborts(field: str) -> None:
    """One unit short in any of its parts, and no call is made: an abort, never a fallback."""
    enough = Budget.model_validate({field: getattr(CALL, field)})
    short = Budget.model_validate({field: getattr(CALL, field) - 1})
    assert ready(budget=enough).claims(REVIEW, spend=CALL) is Answer.GRANTED
    story = ready(budget=short)
    assert story.claims(REVIEW, spend=CALL) is Answer.REFUSED
    assert story.ending == aborted("BUDGET_EXHAUSTED")
    assert story.run.spent == Spend()


def test_end_settles_to_real_usage() -> None:
    """What was reserved and not used can be spent by the second attempt."""
    story = ready(budget=Budget(tokens=60))
    story.claims(REVIEW, spend=CALL)
    story.hears(Finished(REVIEW, TIMEOUT, used=Used(output_bytes=7, tokens=10)))
    assert story.run.spent == Spend(model_calls=1, input_bytes=100, output_bytes=7, tokens=10)
    assert story.run.attempt(REVIEW).settled
    assert story.claims(REREVIEW, spend=CALL) is Answer.GRANTED


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (None, CALL),
        (Used(), CALL),
        (Used(tokens=3), CALL.model_copy(update={"tokens": 3})),
        (Used(output_bytes=4), CALL.model_copy(update={"output_bytes": 4})),
    ],
)
def test_missing_usage_stays_charged_as_reserved(used: Used | None, expected: Spend) -> None:
    """What a provider does not say counts with its most, and may still be settled later."""
    story = ready()
    story.claims(REVIEW, spend=CALL)
    story.hears(Finished(REVIEW, TIMEOUT, used=used))
    assert story.run.spent == expected
    assert not story.run.attempt(REVIEW).settled


@pytest.mark.scenario("run-record", "A lost call")
def test_lost_call_stays_charged_until_its_answer_comes_late() -> None:
    """Nobody knows what it cost; when it comes to light, real usage counts, and only once."""
    story = ready()
    story.claims(REVIEW, spend=CALL)
    story.hears(Lost(REVIEW, 1))
    assert story.run.spent == CALL
    late = Finished(REVIEW, AttemptOutcome.SUPPORTED, used=Used(output_bytes=5, tokens=6))
    assert story.hears(late) is Answer.STANDS
    assert story.run.spent == Spend(model_calls=1, input_bytes=100, output_bytes=5, tokens=6)
    assert story.run.attempt(REVIEW).outcome is AttemptOutcome.LOST
    settled = story.run
    again = Finished(REVIEW, AttemptOutcome.SUPPORTED, used=Used(output_bytes=9, tokens=9))
    assert story.hears(again) is Answer.STANDS
    assert story.run is settled


def test_late_usage_is_counted_after_the_end_and_changes_no_ending() -> None:
    """Real tokens of a call that its run's cancel closed are charged where they arrive."""
    story = ready()
    story.claims(REVIEW, spend=CALL)
    story.is_cancelled()
    ended = story.run
    late = Finished(REVIEW, AttemptOutcome.SUPPORTED, used=Used(output_bytes=5, tokens=6))
    assert story.after(9).hears(late) is Answer.STANDS
    assert story.run.spent.tokens == 6
    assert story.ending == aborted("CANCELLED")
    assert story.run.ended_at == ended.ended_at
    assert story.run.attempt(REVIEW).outcome is None


def test_overspending_stops_the_next_call_only() -> None:
    """An answer that cost more than was reserved still counts; no other call follows it."""
    budget = Budget(tokens=60)
    story = ready(budget=budget)
    story.claims(REVIEW, spend=CALL)
    story.hears(Finished(REVIEW, AttemptOutcome.SUPPORTED, used=Used(output_bytes=1, tokens=999)))
    assert story.publishes() == SUCCEEDED
    story = ready(budget=budget)
    story.claims(REVIEW, spend=CALL)
    story.hears(Finished(REVIEW, TIMEOUT, used=Used(output_bytes=1, tokens=999)))
    assert story.claims(REREVIEW, spend=CALL) is Answer.REFUSED
    assert story.ending == aborted("BUDGET_EXHAUSTED")


def test_light_steps_cost_nothing() -> None:
    """A run without any budget can still be checked and published."""
    story = Story(budget=Budget(model_calls=0, input_bytes=0, output_bytes=0, tokens=0))
    story.carries_out(CHECK, AttemptOutcome.UNCONCLUDED)
    assert story.publishes().kind == "FALLBACK"
