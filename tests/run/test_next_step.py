"""What comes next, and when to look again: read from the record alone."""

import pytest

from tests.run.story import (
    CHECK,
    DRAFT_REFS,
    PUBLISH,
    RECHECK,
    REPAIR,
    REREVIEW,
    REVIEW,
    START,
    Story,
    aborted,
    record,
)
from worker.run.events import Answer, Finished
from worker.run.model_time import time_left_for
from worker.run.outcomes import RETRYABLE, AttemptOutcome
from worker.run.path import after, due_at, hand_on, next_step
from worker.run.policy import Policy
from worker.run.state import Attempt, Run
from worker.run.steps import Step, StepRef, errback_id, every_ref, message_id, task_id

O = AttemptOutcome  # noqa: E741  # the table below is read by its outcomes
POLICY = Policy()
FINAL = sorted(
    set(AttemptOutcome) - RETRYABLE - {O.PASSED, O.VIOLATED, O.UNCONCLUDED, O.REPAIRED, O.ALTERED}
)

ROADS: list[tuple[str, dict[StepRef, AttemptOutcome], StepRef]] = [
    ("a new run is checked", {}, CHECK),
    ("a passed check is reviewed", {CHECK: O.PASSED}, REVIEW),
    ("a draft without a conclusion is published", {CHECK: O.UNCONCLUDED}, PUBLISH),
    ("a violated check is repaired", {CHECK: O.VIOLATED}, REPAIR),
    ("a repaired draft is checked again", {CHECK: O.VIOLATED, REPAIR: O.REPAIRED}, RECHECK),
    (
        "a repaired draft that passes is reviewed",
        {CHECK: O.VIOLATED, REPAIR: O.REPAIRED, RECHECK: O.PASSED},
        REVIEW,
    ),
    (
        "a second violation is not repaired again",
        {CHECK: O.VIOLATED, REPAIR: O.REPAIRED, RECHECK: O.VIOLATED},
        PUBLISH,
    ),
    (
        "a second review follows the repaired draft's lost one",
        {CHECK: O.VIOLATED, REPAIR: O.REPAIRED, RECHECK: O.PASSED, REVIEW: O.LOST},
        REREVIEW,
    ),
    *(
        (f"a repair that came to {outcome} is final", {CHECK: O.VIOLATED, REPAIR: outcome}, PUBLISH)
        for outcome in sorted(set(AttemptOutcome) - {O.REPAIRED})
    ),
    *(
        (f"{outcome} is asked again", {CHECK: O.PASSED, REVIEW: outcome}, REREVIEW)
        for outcome in sorted(RETRYABLE)
    ),
    *(
        (f"{outcome} is not asked again", {CHECK: O.PASSED, REVIEW: outcome}, PUBLISH)
        for outcome in FINAL
    ),
    *(
        (
            f"a second review that came to {outcome} is the last",
            {CHECK: O.PASSED, REVIEW: O.TIMEOUT, REREVIEW: outcome},
            PUBLISH,
        )
        for outcome in sorted({*RETRYABLE, *FINAL})
    ),
]


@pytest.mark.scenario("release-chain", "Next steps by table")
@pytest.mark.parametrize(
    ("outcomes", "expected"), [road[1:] for road in ROADS], ids=[road[0] for road in ROADS]
)
def test_next_step_follows_from_the_record(
    outcomes: dict[StepRef, AttemptOutcome], expected: StepRef
) -> None:
    """Each outcome has one step that follows."""
    assert next_step(record(outcomes), POLICY) == expected


def test_technical_failures_are_the_retryable_ones() -> None:
    """A valid answer, a refusal by the provider and an end of the run are never asked again."""
    assert {
        O.TIMEOUT,
        O.TRANSPORT,
        O.RATE_LIMITED,
        O.UNPARSEABLE,
        O.OFF_SCHEMA,
        O.LOST,
    } == RETRYABLE


def test_repair_can_be_turned_off() -> None:
    """Without repair a violated check is published at once."""
    assert next_step(record({CHECK: O.VIOLATED}), Policy(repair_attempts=0)) == PUBLISH


@pytest.mark.scenario("release-chain", "Next steps by table")
@pytest.mark.parametrize(
    "run", [Run(run_id="r"), record({}).model_copy(update={"ending": aborted("CANCELLED")})]
)
def test_only_an_open_run_has_a_next_step(run: Run) -> None:
    """A cancel mark and an ended run have none, and are never due."""
    assert next_step(run, POLICY) is None
    assert due_at(run, POLICY) is None


@pytest.mark.parametrize(
    ("first_took", "expected"),
    [(0.0, REREVIEW), (40.0, REREVIEW), (99.0, REREVIEW), (99.5, PUBLISH), (130.0, PUBLISH)],
)
def test_second_review_needs_a_second_of_the_guards_time(
    first_took: float, expected: StepRef
) -> None:
    """The guard's total counts call time: under a second left, no call is started."""
    ended = Attempt(
        grants=1, claimed_at=START, ended_at=START + first_took, timeout=60.0, outcome=O.TRANSPORT
    )
    run = record({CHECK: O.PASSED}).with_attempt(REVIEW, ended)
    assert next_step(run, POLICY) == expected


def test_lost_attempt_is_charged_its_whole_time() -> None:
    """Nobody knows when a lost call ended: it counts with the time it was given."""
    lost = Attempt(grants=1, claimed_at=START, ended_at=START + 70, timeout=45.0, outcome=O.LOST)
    run = record({CHECK: O.PASSED}).with_attempt(REVIEW, lost)
    assert time_left_for(run, REVIEW, POLICY) == 55.0
    running = Attempt(grants=1, claimed_at=START, timeout=45.0)
    run = run.with_attempt(REVIEW, running)
    assert time_left_for(run, REVIEW, POLICY) == 55.0


def test_queueing_does_not_count() -> None:
    """An attempt that nobody has started has used nothing of the guard's time."""
    assert time_left_for(record({CHECK: O.PASSED}), REVIEW, POLICY) == 100.0
    assert time_left_for(record({CHECK: O.VIOLATED}), REPAIR, POLICY) == 60.0
    timeless = record({}).with_attempt(REVIEW, Attempt(grants=1, claimed_at=START))
    assert time_left_for(timeless, REVIEW, POLICY) == 100.0


def test_only_attempts_within_the_policy_use_up_time() -> None:
    """A policy that was made stricter forgets the call that it would not have allowed."""
    run = record({CHECK: O.PASSED, REVIEW: O.TIMEOUT, REREVIEW: O.TIMEOUT})
    assert time_left_for(run, REVIEW, POLICY) == 98.0
    assert time_left_for(run, REVIEW, Policy(review_attempts=1)) == 99.0
    strange = record({REVIEW._replace(attempt=0): O.TIMEOUT})
    assert time_left_for(strange, REVIEW, POLICY) == 100.0


def test_first_review_is_made_however_short_the_guards_time() -> None:
    """Only a second attempt is left out for want of time: without a first there is no verdict."""
    assert next_step(record({CHECK: O.PASSED}), Policy(review_total_timeout=0.5)) == REVIEW


@pytest.mark.parametrize(
    ("step", "chain"),
    [
        (CHECK, (REVIEW, PUBLISH)),
        (RECHECK, (REVIEW, PUBLISH)),
        (REPAIR, (RECHECK, REVIEW, PUBLISH)),
        (REVIEW, (PUBLISH,)),
        (REREVIEW, (PUBLISH,)),
        (PUBLISH, ()),
    ],
)
def test_straight_path_behind_a_step(step: StepRef, chain: tuple[StepRef, ...]) -> None:
    """What is enqueued with a step is what follows if it goes well."""
    assert after(step) == chain


HANDED_ON: list[tuple[str, Run, StepRef | None]] = [
    ("a first attempt is sent at once", record({CHECK: O.PASSED}), REVIEW),
    (
        "a wait before the same step's first attempt is none of its own",
        record({CHECK: O.PASSED}).with_attempt(CHECK, Attempt(outcome=O.PASSED, retry_at=START)),
        REVIEW,
    ),
    (
        "a second check is sent at once",
        record({CHECK: O.VIOLATED, REPAIR: O.REPAIRED}),
        RECHECK,
    ),
    (
        "a second attempt is sent at once",
        record({CHECK: O.PASSED, REVIEW: O.TIMEOUT}),
        REREVIEW,
    ),
    (
        "a second attempt that has to wait is left to the reconciler",
        record({CHECK: O.PASSED}).with_attempt(
            REVIEW, Attempt(outcome=O.RATE_LIMITED, retry_at=START + 7)
        ),
        None,
    ),
    ("a run that is not open sends nothing", Run(run_id="r"), None),
]


@pytest.mark.parametrize(
    ("run", "sent"), [row[1:] for row in HANDED_ON], ids=[row[0] for row in HANDED_ON]
)
def test_only_a_wait_that_was_asked_for_keeps_a_step_from_being_sent(
    run: Run, sent: StepRef | None
) -> None:
    """What hands on sends the next step itself, unless a provider asked for a wait."""
    assert hand_on(run, POLICY) == sent


def test_due_time_is_resend_then_lease_then_deadline() -> None:
    """Unclaimed: the next sending. Held: the lease's end. Never later than the deadline."""
    story = Story()
    assert due_at(story.run, POLICY) == START + POLICY.resend_first
    assert story.claims(CHECK) is Answer.GRANTED
    assert due_at(story.run, POLICY) == START + POLICY.lease(Step.CHECK_EVIDENCE)
    story.after(2).hears(Finished(CHECK, O.VIOLATED))
    assert due_at(story.run, POLICY) == START + 2 + POLICY.resend_first
    short = Story(deadline=10.0)
    assert due_at(short.run, POLICY) == START + 10
    short.claims(CHECK)
    assert due_at(short.run, POLICY) == START + 10
    bare = record({})
    assert due_at(bare, POLICY) == bare.deadline_at


@pytest.mark.scenario("release-chain", "Ids without looking up")
def test_ids_are_the_same_each_time_and_never_shared() -> None:
    """Task, errback and message ids are pure functions of run, step, attempt and start."""
    refs = every_ref(2, 2)
    assert set(DRAFT_REFS) <= set(refs)
    assert len(set(refs)) == len(refs) == 2 * 2 * len(Step)
    assert {ref.attempt for ref in refs} == {1, 2}
    assert {ref.round for ref in refs} == {0, 1}
    ids = [
        *(task_id(run_id, ref) for run_id in ("a", "b") for ref in refs),
        *(errback_id("a", ref, grant) for ref in refs for grant in (1, 2, 3)),
        *(message_id("a", type_, round_) for type_ in ("X", "Y") for round_ in (0, 1)),
    ]
    assert len(set(ids)) == len(ids)
    assert task_id("a", CHECK) == task_id("a", StepRef(0, Step.CHECK_EVIDENCE, 1))


def test_limits_stand_in_order() -> None:
    """Attempt, soft limit, hard limit, lease: each catches what the one before missed."""
    for step in Step:
        assert POLICY.soft_limit(step) < POLICY.hard_limit(step) < POLICY.lease(step)
    assert POLICY.soft_limit(Step.REVIEW_SEMANTICS) == POLICY.attempt_timeout + 2
    assert POLICY.hard_limit(Step.REPAIR_EVIDENCE) == POLICY.attempt_timeout + 5
    assert POLICY.soft_limit(Step.PUBLISH) == 30
    assert POLICY.longest_lease() == 70


def test_attempt_in_flight_stays_the_next_step() -> None:
    """A second review that was given the rest of the guard's time is still the one to wait for."""
    story = Story().carries_out(CHECK, O.PASSED)
    story.claims(REVIEW)
    story.after(60).hears(Finished(REVIEW, O.TIMEOUT))
    assert story.claims(REREVIEW) is Answer.GRANTED
    assert story.run.attempt(REREVIEW).timeout == 40.0
    assert next_step(story.run, POLICY) == REREVIEW
    assert due_at(story.run, POLICY) == story.now + POLICY.lease(Step.REVIEW_SEMANTICS)
    assert story.claims(PUBLISH) is Answer.REFUSED
