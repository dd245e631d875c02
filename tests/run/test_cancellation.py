"""Cancelling: before the draft, at every point of a run, and after its end."""

from collections.abc import Callable

import pytest

from tests.run.story import (
    CHECK,
    PUBLISH,
    RECHECK,
    REPAIR,
    REREVIEW,
    REVIEW,
    RUN_ID,
    START,
    SUCCEEDED,
    Story,
    aborted,
)
from worker.run.events import Answer, Finished, Published
from worker.run.outcomes import AttemptOutcome
from worker.run.path import due_at, next_step
from worker.run.steps import StepRef

O = AttemptOutcome  # noqa: E741  # told by its outcomes


def _held(story: Story, ref: StepRef) -> Story:
    assert story.claims(ref) is Answer.GRANTED
    return story


POINTS: list[tuple[str, Callable[[], Story]]] = [
    ("queued", Story),
    ("in the check", lambda: _held(Story(), CHECK)),
    ("checked", lambda: Story().carries_out(CHECK, O.PASSED)),
    ("in the repair", lambda: _held(Story().carries_out(CHECK, O.VIOLATED), REPAIR)),
    (
        "in the second check",
        lambda: _held(
            Story().carries_out(CHECK, O.VIOLATED).carries_out(REPAIR, O.REPAIRED), RECHECK
        ),
    ),
    ("in the review", lambda: _held(Story().carries_out(CHECK, O.PASSED), REVIEW)),
    (
        "between two attempts",
        lambda: Story().carries_out(CHECK, O.PASSED).carries_out(REVIEW, O.TIMEOUT),
    ),
    (
        "in the second attempt",
        lambda: _held(
            Story().carries_out(CHECK, O.PASSED).carries_out(REVIEW, O.TIMEOUT), REREVIEW
        ),
    ),
    (
        "supported",
        lambda: Story().carries_out(CHECK, O.PASSED).carries_out(REVIEW, O.SUPPORTED),
    ),
    (
        "at the moment of release",
        lambda: _held(
            Story().carries_out(CHECK, O.PASSED).carries_out(REVIEW, O.SUPPORTED), PUBLISH
        ),
    ),
]


@pytest.mark.scenario("run-record", "A cancel against the decision")
@pytest.mark.parametrize("story", [p[1] for p in POINTS], ids=[p[0] for p in POINTS])
def test_cancel_wins_at_every_point_before_the_decision(story: Callable[[], Story]) -> None:
    """Nothing of the run is released or started any more, whoever still works on it."""
    told = story()
    assert told.is_cancelled() is Answer.ENDED
    assert told.ending == aborted("CANCELLED")
    assert told.run.cancelled_at == told.now
    assert next_step(told.run, told.policy) is None
    assert due_at(told.run, told.policy) is None
    ended = told.run
    for ref in (CHECK, REPAIR, RECHECK, REVIEW, REREVIEW, PUBLISH):
        assert told.claims(ref) is Answer.REFUSED
        assert told.hears(Finished(ref, O.SUPPORTED)) in (Answer.STANDS, Answer.REFUSED)
    assert told.hears(Published(PUBLISH)) is Answer.STANDS
    assert told.run is ended


@pytest.mark.scenario("run-record", "A cancel against the decision")
def test_cancel_after_the_decision_changes_nothing() -> None:
    """A released run stays released, and the canceller is told that its ending stands."""
    story = Story().carries_out(CHECK, O.PASSED).carries_out(REVIEW, O.SUPPORTED)
    assert story.publishes() == SUCCEEDED
    before = story.run
    assert story.is_cancelled() is Answer.STANDS
    assert story.run is before
    assert story.run.cancelled_at is None


def test_cancel_before_the_draft_leaves_a_mark() -> None:
    """The draft that comes later is answered CANCELLED at once, and nothing is checked."""
    story = Story(admitted=False)
    assert story.is_cancelled() is Answer.MARKED
    assert not story.run.is_open
    marked = story.run
    assert story.is_cancelled() is Answer.MARKED
    assert story.run is marked
    assert story.after(5).hears(story.opening) is Answer.ENDED
    assert story.ending == aborted("CANCELLED")
    assert story.run.cancelled_at == START
    assert story.run.run_id == RUN_ID
    assert story.claims(CHECK) is Answer.REFUSED


def test_mark_wins_over_the_deadline() -> None:
    """A cancelled draft that also comes too late is cancelled."""
    story = Story(admitted=False, deadline=10.0)
    story.is_cancelled()
    story.after(20).hears(story.opening)
    assert story.ending == aborted("CANCELLED")


def test_second_cancel_changes_nothing() -> None:
    """The first one ended the run."""
    story = Story()
    story.is_cancelled()
    before = story.run
    assert story.after(1).is_cancelled() is Answer.STANDS
    assert story.run is before
