"""What the outside saw of a run, and what it must never see."""

from typing import NamedTuple

from contracts.claims import Verdict
from tests.run.story import (
    CHECK,
    CLAIM_REFS,
    COMPOSE,
    EVERY_REF,
    GATE,
    RECHECK,
    REPAIR,
    REREVIEW,
    REVERIFY,
    REVIEW,
    SECOND_COMPOSE,
    SECOND_GATE,
    SECOND_REVERIFY,
    SECOND_VERIFY,
    VERIFY,
)
from worker.run.outcomes import RETRYABLE, AttemptOutcome

FREE = -1
"""No step: a worker without work, an event that started nothing."""

_PLACES = {ref: place for place, ref in enumerate(EVERY_REF)}
_FIRST_OF = {
    _PLACES[again]: _PLACES[first]
    for first, again in ((REVIEW, REREVIEW), (VERIFY, REVERIFY), (SECOND_VERIFY, SECOND_REVERIFY))
}
_PARTS = (
    (GATE, VERIFY, REVERIFY, COMPOSE),
    (SECOND_GATE, SECOND_VERIFY, SECOND_REVERIFY, SECOND_COMPOSE),
)
"""Gate, both attempts at the verifier, and composer, by round."""
_OF_CLAIMS_ALONE = {_PLACES[ref] for ref in CLAIM_REFS if ref.round == 0 and ref in _PARTS[0]}
_OF_ROUND_1 = {place for ref, place in _PLACES.items() if ref.round == 1}


class Happening(NamedTuple):
    """What the outside saw of one event.

    ``said`` is what a verifier came to; ``asked`` and ``answered`` tell of evidence.
    """

    started: int = FREE
    recorded: tuple[int, AttemptOutcome] | None = None
    said: Verdict | None = None
    asked: bool = False
    answered: bool = False
    released: str | None = None
    cancelled: bool = False
    overdrawn: bool = False
    evicted: bool = False


class History(NamedTuple):
    """What the outside has seen of a run, kept apart from the run's own record.

    ``starts`` counts the grants of each step until its result is recorded. ``said`` is the
    newest verifier's verdict. ``released`` lists the endings; ``forbidden`` names what must
    never be seen. What led to an ending, or to
    round 1, is forgotten once it was judged.
    """

    starts: tuple[int, ...] = (0,) * len(EVERY_REF)
    recorded: tuple[AttemptOutcome | None, ...] = (None,) * len(EVERY_REF)
    said: Verdict | None = None
    asked: bool = False
    answered: bool = False
    released: tuple[str, ...] = ()
    cancelled: bool = False
    forbidden: str = ""

    def then(self, seen: Happening) -> "History":
        """The history after one more event."""
        forbidden = self.forbidden or self._objection(seen)
        released, cancelled = self.released, self.cancelled or seen.cancelled
        asked, answered = self.asked or seen.asked, self.answered or seen.answered
        if seen.answered:
            return History(asked=asked, answered=True, cancelled=cancelled, forbidden=forbidden)
        if seen.released is not None:
            return History(
                asked=asked,
                answered=answered,
                released=(*released, seen.released),
                cancelled=cancelled,
                forbidden=forbidden,
            )
        starts, recorded = list(self.starts), list(self.recorded)
        if seen.started != FREE:
            starts[seen.started] += 1
        if seen.recorded is not None:
            recorded[seen.recorded[0]] = seen.recorded[1]
            starts[seen.recorded[0]] = 1
        said = seen.said or self.said
        return History(
            tuple(starts), tuple(recorded), said, asked, answered, released, cancelled, forbidden
        )

    def _objection(self, seen: Happening) -> str:
        if self.released and (seen.started != FREE or seen.recorded is not None):
            return "an ended run went on"
        if self.released and seen.released is not None:
            return "a second ending"
        if seen.evicted:
            return "a step was taken from its holder before the lease was over"
        if seen.started in _FIRST_OF:
            first = self.recorded[_FIRST_OF[seen.started]]
            if first is not None and first not in {*RETRYABLE, AttemptOutcome.CANCELLED}:
                return "a valid answer was asked for again"
        if seen.overdrawn:
            return "a call that the budget did not allow"
        if seen.started != FREE and self.recorded[seen.started] is not None:
            return "a finished step was started again"
        if seen.released == "SUCCEEDED" and not self.was_passed():
            return "a release without its passes"
        if seen.released not in (None, "CANCELLED") and self.cancelled:
            return "another ending than the cancel's"
        return self._objection_to_evidence(seen)

    def _objection_to_evidence(self, seen: Happening) -> str:
        if seen.asked and self.asked:
            return "evidence was asked for twice"
        if seen.answered and (self.answered or not self.asked or self.released):
            return "an answer was taken that nobody waited for"
        if seen.started in _OF_ROUND_1 and not self.answered:
            return "round 1 began without its answer"
        if seen.started in _OF_CLAIMS_ALONE and self.answered:
            return "round 0 went on after round 1 had begun"
        if seen.released in ("LOW_CONFIDENCE", "CLAIMS_REJECTED") and self.said is None:
            return "a verdict that no verifier came to"
        if seen.released == "PRE_VERIFICATION" and self.said is not None:
            return "a verdict that was not told"
        return ""

    def was_passed(self) -> bool:
        """Tell whether what was recorded allows a release, by the rules of either protocol."""
        return self.both_guards_passed() or self.claims_passed()

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

    def claims_passed(self) -> bool:
        """Tell whether gate, verifier and composer of the newest round all did their part."""
        came_to = dict(zip(EVERY_REF, self.recorded, strict=True))
        gate, first, second, composer = _PARTS[self.answered]
        return (
            came_to[gate] is AttemptOutcome.PASSED
            and AttemptOutcome.VERIFIED in (came_to[first], came_to[second])
            and self.said is Verdict.PASS
            and came_to[composer] is AttemptOutcome.COMPOSED
        )
