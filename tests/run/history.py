"""What the outside saw of a run, and what it must never see."""

from typing import NamedTuple

from tests.run.story import CHECK, EVERY_REF, RECHECK, REPAIR, REREVIEW, REVIEW
from worker.run.outcomes import RETRYABLE, AttemptOutcome

FREE = -1
"""No step: a worker without work, an event that started nothing."""


class Happening(NamedTuple):
    """What the outside saw of one event."""

    started: int = FREE
    recorded: tuple[int, AttemptOutcome] | None = None
    released: str | None = None
    cancelled: bool = False
    overdrawn: bool = False
    evicted: bool = False


class History(NamedTuple):
    """What the outside has seen of a run, kept apart from the run's own record.

    ``starts`` counts the grants of each step until its result is recorded. ``released``
    lists the endings; ``forbidden`` names what must never be seen. What led to an
    ending is forgotten once it was judged.
    """

    starts: tuple[int, ...] = (0,) * len(EVERY_REF)
    recorded: tuple[AttemptOutcome | None, ...] = (None,) * len(EVERY_REF)
    released: tuple[str, ...] = ()
    cancelled: bool = False
    forbidden: str = ""

    def then(self, seen: Happening) -> "History":
        """The history after one more event."""
        forbidden = self.forbidden or self._objection(seen)
        released, cancelled = self.released, self.cancelled or seen.cancelled
        if seen.released is not None:
            return History(
                released=(*released, seen.released), cancelled=cancelled, forbidden=forbidden
            )
        starts, recorded = list(self.starts), list(self.recorded)
        if seen.started != FREE:
            starts[seen.started] += 1
        if seen.recorded is not None:
            recorded[seen.recorded[0]] = seen.recorded[1]
            starts[seen.recorded[0]] = 1
        return History(tuple(starts), tuple(recorded), released, cancelled, forbidden)

    def _objection(self, seen: Happening) -> str:
        if self.released and (seen.started != FREE or seen.recorded is not None):
            return "an ended run went on"
        if self.released and seen.released is not None:
            return "a second ending"
        if seen.evicted:
            return "a step was taken from its holder before the lease was over"
        if seen.started == EVERY_REF.index(REREVIEW):
            first = self.recorded[EVERY_REF.index(REVIEW)]
            if first is not None and first not in {*RETRYABLE, AttemptOutcome.CANCELLED}:
                return "a valid answer was asked for again"
        if seen.overdrawn:
            return "a call that the budget did not allow"
        if seen.started != FREE and self.recorded[seen.started] is not None:
            return "a finished step was started again"
        if seen.released == "SUCCEEDED" and not self.both_guards_passed():
            return "a release without both passes"
        if seen.released not in (None, "CANCELLED") and self.cancelled:
            return "another ending than the cancel's"
        return ""

    def both_guards_passed(self) -> bool:
        said = dict(zip(EVERY_REF, self.recorded, strict=True))
        mended = said[REPAIR] is AttemptOutcome.REPAIRED
        checked = (
            said[RECHECK] if said[CHECK] is AttemptOutcome.VIOLATED and mended else said[CHECK]
        )
        verdicts = (said[REVIEW], said[REREVIEW])
        return (
            checked is AttemptOutcome.PASSED
            and AttemptOutcome.SUPPORTED in verdicts
            and AttemptOutcome.UNSUPPORTED not in verdicts
        )
