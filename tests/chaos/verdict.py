"""What became of the runs, held against the promise. Pure: facts in, verdict out."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from contracts.messages import ReleaseAborted, ReleaseFallback, ReleaseSucceeded
from worker.run.state import Ending, EndingKind, Run
from worker.run.steps import message_id

CANCELLED = "CANCELLED"
MOST_REVIEWS, MOST_REPAIRS = 2, 1

_TYPES = {
    EndingKind.SUCCEEDED: ReleaseSucceeded.TYPE,
    EndingKind.FALLBACK: ReleaseFallback.TYPE,
    EndingKind.ABORTED: ReleaseAborted.TYPE,
}


@dataclass(frozen=True)
class Message:
    """A message of the results queue."""

    id: str
    body: bytes

    @property
    def ending(self) -> tuple[str, str]:
        """Its type and its code, as :func:`said_by` tells them of an ending."""
        envelope = json.loads(self.body)
        data = envelope["data"]
        code = data.get("reason") or data.get("fallback", {}).get("type") or ""
        return envelope["type"], code


@dataclass(frozen=True)
class Facts:
    """What was found of one submitted run.

    ``acknowledged`` tells that somebody was told that the run is cancelled. ``allowed``
    are the endings that its draft or its claims permit, and its faults. ``reviews`` are those
    that its draft was given, or its claims in the round that was given the most of them.
    """

    run_id: str
    allowed: frozenset[str]
    run: Run | None = None
    messages: tuple[Message, ...] = ()
    reviews: int = 0
    repairs: int = 0
    acknowledged: bool = False


@dataclass
class Verdict:
    """``problems`` has a line for each broken promise, whichever it is."""

    runs: int = 0
    ended: int = 0
    lost: int = 0
    double: int = 0
    released_after_cancel: int = 0
    problems: list[str] = field(default_factory=list)
    endings: Counter[str] = field(default_factory=Counter)
    repeats: int = 0

    def __str__(self) -> str:
        return (
            f"chaos: runs={self.runs} ended={self.ended} lost={self.lost} double={self.double} "
            f"released_after_cancel={self.released_after_cancel}"
        )


def said_by(ending: Ending) -> tuple[str, str]:
    """Type and code of the message that tells of an ending."""
    return _TYPES[ending.kind], ending.code


def judge(facts: Iterable[Facts]) -> Verdict:
    """Hold each run to the promise; whatever is broken is counted and told."""
    verdict = Verdict()
    for one in facts:
        _judge(one, verdict)
    return verdict


def _judge(one: Facts, verdict: Verdict) -> None:
    verdict.runs += 1
    ending = None if one.run is None else one.run.ending
    told = verdict.problems.append
    if ending is None or not one.messages:
        verdict.lost += 1
        told(f"{one.run_id}: lost, ending {ending}, {len(one.messages)} messages")
    if ending is not None:
        verdict.ended += 1
        verdict.endings[str(ending)] += 1
    _judge_messages(one, ending, verdict)
    if one.run is not None and (one.run.cancelled_at is not None or one.acknowledged):
        said = {message.ending for message in one.messages}
        if str(ending) != CANCELLED or said - {(ReleaseAborted.TYPE, CANCELLED)}:
            verdict.released_after_cancel += 1
            told(f"{one.run_id}: cancelled, yet it ended {ending} and said {sorted(said)}")
    if ending is not None and str(ending) not in one.allowed:
        told(f"{one.run_id}: ended {ending}, may end {sorted(one.allowed)}")
    if one.reviews > MOST_REVIEWS or one.repairs > MOST_REPAIRS:
        told(f"{one.run_id}: {one.reviews} reviews a round, {one.repairs} repairs")


def _judge_messages(one: Facts, ending: Ending | None, verdict: Verdict) -> None:
    different = set(one.messages)
    verdict.repeats += len(one.messages) - len(different)
    round_ = 0 if one.run is None else one.run.round
    contradicted = ending is not None and any(
        message.ending != said_by(ending)
        or message.id != message_id(one.run_id, _TYPES[ending.kind], round_)
        for message in different
    )
    if len(different) > 1 or contradicted:
        verdict.double += 1
        said = sorted(message.ending for message in different)
        verdict.problems.append(f"{one.run_id}: ended {ending}, yet it said {said}")
