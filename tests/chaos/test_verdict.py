"""The judge of the chaos must see what it looks for: each broken promise is planted once."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.envelope import wrap
from contracts.messages import AbortReason, ReleaseAborted
from tests.chaos.verdict import Facts, Message, judge
from worker.run.state import Ending, EndingKind, Run
from worker.run.steps import message_id

RUN_ID = "chaos-1-000001"
SUCCEEDED = Ending(kind=EndingKind.SUCCEEDED)
CANCELLED = Ending(kind=EndingKind.ABORTED, code="CANCELLED")


def run(ending: Ending | None, **changes: Any) -> Run:
    return Run(run_id=RUN_ID, opened_at=1.0, ending=ending, **changes)


def aborted(
    reason: AbortReason = AbortReason.CANCELLED, second: int = 0, round_: int = 0
) -> Message:
    message = ReleaseAborted(run_id=RUN_ID, session_id="s", round=round_, reason=reason)
    id_ = message_id(RUN_ID, message.TYPE, round_)
    time = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    return Message(id_, wrap(message, message_id=id_, time=time))


def facts(**changes: Any) -> Facts:
    """A run that was cancelled and said so, once."""
    sound: dict[str, Any] = {
        "run_id": RUN_ID,
        "allowed": frozenset({"CANCELLED"}),
        "run": run(CANCELLED, cancelled_at=2.0),
        "messages": (aborted(),),
    }
    return Facts(**{**sound, **changes})


def test_a_sound_run_is_no_problem() -> None:
    """One ending, one message, and a repeat of that message, is what was promised."""
    verdict = judge([facts(), facts(messages=(aborted(), aborted()))])
    assert not verdict.problems
    assert verdict.repeats == 1
    assert str(verdict) == "chaos: runs=2 ended=2 lost=0 double=0 released_after_cancel=0"


def test_a_run_that_ended_in_its_second_round_says_so() -> None:
    """Claims whose evidence came have the message of that round, and no other."""
    later = run(CANCELLED, cancelled_at=2.0, round=1)
    assert not judge([facts(run=later, messages=(aborted(round_=1),))]).problems
    assert judge([facts(run=later)]).double == 1


@pytest.mark.parametrize("changes", [{"run": None}, {"run": run(None)}, {"messages": ()}], ids=str)
def test_a_run_without_record_ending_or_message_is_lost(changes: dict[str, Any]) -> None:
    """Each of the three alone is a loss."""
    verdict = judge([facts(**changes)])
    assert verdict.lost == 1
    assert verdict.problems


@pytest.mark.parametrize(
    "messages",
    [
        (aborted(), aborted(second=1)),
        (aborted(), aborted(AbortReason.PROCESSING_FAILED)),
        (aborted(AbortReason.PROCESSING_FAILED),),
        (Message("another id", aborted().body),),
        (aborted(round_=1),),
    ],
    ids=["another body", "another ending", "not the record's", "not its id", "another round"],
)
def test_two_tales_of_one_run_are_double(messages: tuple[Message, ...]) -> None:
    """Bodies that differ, and a message that is not of the record's ending, are two endings."""
    verdict = judge([facts(messages=messages)])
    assert verdict.double == 1
    assert verdict.problems


@pytest.mark.parametrize(
    "changes",
    [
        {"run": run(SUCCEEDED, cancelled_at=2.0)},
        {"run": run(SUCCEEDED), "acknowledged": True},
        {"messages": (aborted(AbortReason.PROCESSING_FAILED),)},
    ],
    ids=["by the record", "by the acknowledgement", "by the message"],
)
def test_a_release_after_a_cancel_is_seen(changes: dict[str, Any]) -> None:
    """Whether the record knows of the cancel, only its canceller, or only the reader."""
    verdict = judge([facts(**changes)])
    assert verdict.released_after_cancel == 1
    assert verdict.problems


@pytest.mark.parametrize(
    "changes",
    [{"allowed": frozenset({"SUCCEEDED"})}, {"reviews": 3}, {"repairs": 2}],
    ids=["ending", "reviews", "repairs"],
)
def test_a_wrong_ending_and_a_call_too_many_are_seen(changes: dict[str, Any]) -> None:
    """What the draft does not permit, and what the policy does not, is a problem."""
    assert judge([facts(**changes)]).problems
