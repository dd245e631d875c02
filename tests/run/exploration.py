"""Breadth-first exploration of everything that can happen to one run.

Two levels keep it fast. A *record* is a run in normal form: the clock reads zero
and only what later decisions can read is kept, so there are finitely many. What
an event does to a record is decided once. A *world* is a record, two workers and
the history that the invariants are told of.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.run.history import FREE, Happening, History
from tests.run.normal_form import normal_form, steps_of_the_clock
from tests.run.setups import VERDICTS, Setup, claim, found_by_check
from tests.run.story import ANSWER_KEY, EVERY_REF, KEY, RUN_ID
from worker.run.events import (
    Answer,
    Cancelled,
    Claimed,
    Event,
    Finished,
    Lost,
    Published,
    Ticked,
)
from worker.run.outcomes import AttemptOutcome
from worker.run.reducer import decide
from worker.run.state import Protocol, Run
from worker.run.steps import MODEL_STEPS, Step, StepRef


class World(NamedTuple):
    """Numbers of a record and a history, and what the two workers hold (numbers of steps)."""

    record: int
    history: int
    workers: tuple[int, int]


class Edge(NamedTuple):
    label: str
    record: int
    seen: Happening


@dataclass(frozen=True)
class Edges:
    """What may happen to a record: by anyone, and by a free worker."""

    anyone: tuple[Edge, ...]
    claims: tuple[Edge, ...]


@dataclass
class Exploration:
    """All worlds that can be reached, and how each was reached first."""

    setup: Setup
    records: list[Run | None] = field(default_factory=list)
    histories: list[History] = field(default_factory=list)
    reached: dict[World, tuple[World | None, str]] = field(default_factory=dict)
    depth: int = 0
    complete: bool = False

    def __post_init__(self) -> None:
        self._record_numbers: dict[str, int] = {}
        self._history_numbers: dict[History, int] = {}
        self._edges: dict[int, Edges] = {}
        self._results: dict[tuple[int, int], tuple[Edge, ...]] = {}
        self._then: dict[tuple[int, Happening], int] = {}

    def explore(self, most_steps: int | None) -> Iterator[World]:
        """Give each distinct world once, nearest first, up to ``most_steps`` events away."""
        start = World(self._number(None), self._number_of_history(History()), (FREE, FREE))
        self.reached[start] = (None, "start")
        yield start
        front = [start]
        while front and self.depth != most_steps:
            self.depth += 1
            found = []
            for world in front:
                for label, following in self._following(world):
                    if following not in self.reached:
                        self.reached[following] = (world, label)
                        found.append(following)
                        yield following
            front = found
        self.complete = not front

    def path_to(self, world: World) -> str:
        """The events that led to a world, for whoever has to understand a failure."""
        labels = []
        at: World | None = world
        while at is not None:
            at, label = self.reached[at]
            labels.append(label)
        return " -> ".join(reversed(labels))

    def _following(self, world: World) -> Iterator[tuple[str, World]]:
        edges = self._edges.get(world.record)
        if edges is None:
            edges = self._edges[world.record] = self._edges_of(world.record)
        for edge in edges.anyone:
            yield edge.label, self._after(world, edge, world.workers)
        first, second = world.workers
        if FREE in world.workers:
            busy = second if first == FREE else first
            for edge in edges.claims:
                yield edge.label, self._after(world, edge, _pair(busy, edge.seen.started))
        for holds, other in {(first, second), (second, first)}:
            if holds == FREE:
                continue
            freed = _pair(FREE, other)
            yield "dies", World(world.record, world.history, freed)
            for edge in self._results_of(world.record, holds):
                yield edge.label, self._after(world, edge, freed)

    def _after(self, world: World, edge: Edge, workers: tuple[int, int]) -> World:
        key = (world.history, edge.seen)
        history = self._then.get(key)
        if history is None:
            told = self.histories[world.history].then(edge.seen)
            history = self._then[key] = self._number_of_history(told)
        return World(edge.record, history, workers)

    def _edges_of(self, number: int) -> Edges:
        run = self.records[number]
        anyone = [
            Edge("time passes", self._number(normal_form(run, at, self.setup.policy)), Happening())
            for at in steps_of_the_clock(run)
        ]
        anyone += [self._edge(number, label, event) for label, event in self._events(run)]
        claims = [
            self._edge(number, f"claims {ref.key}", claim(ref), ref) for ref in self.setup.refs
        ]
        idle = Happening()
        return Edges(
            tuple(edge for edge in anyone if edge.record != number or edge.seen != idle),
            tuple(edge for edge in claims if edge.record != number or edge.seen != idle),
        )

    def _results_of(self, number: int, place: int) -> tuple[Edge, ...]:
        found = self._results.get((number, place))
        if found is None:
            ref = EVERY_REF[place]
            found = self._results[number, place] = tuple(
                self._edge(number, label, event, ref) for label, event in self._finishes(ref)
            )
        return found

    def _events(self, run: Run | None) -> Iterator[tuple[str, Event]]:
        opening = self.setup.opening
        yield "message", opening
        if run is not None and run.opened_at is not None:
            yield "another message", replace(opening, sha256="b")
        if self.setup.protocol is Protocol.CLAIMS:
            answer = replace(opening, key=ANSWER_KEY, round=1)
            yield "answer", answer
            if run is not None and ANSWER_KEY in run.messages:
                yield "another answer", replace(answer, sha256="b")
            yield "a draft", replace(opening, key=KEY, protocol=Protocol.DRAFT)
        yield "cancel", Cancelled(RUN_ID)
        yield "tick", Ticked()
        for ref in self.setup.refs:
            grants = 0 if run is None else run.attempt(ref).grants
            for grant in {max(1, grants - 1), max(1, grants)}:
                yield f"errback {ref.key}/{grant}", Lost(ref, grant)

    def _finishes(self, ref: StepRef) -> Iterator[tuple[str, Event]]:
        if ref.step is Step.PUBLISH:
            yield "publishes", Published(ref)
            return
        calls = ref.step in MODEL_STEPS
        for outcome in self.setup.outcomes[ref.step]:
            wait = 1.0 if outcome is AttemptOutcome.RATE_LIMITED else 0.0
            check = found_by_check(outcome) if ref.step is Step.CHECK_EVIDENCE else None
            for used in self.setup.usages if calls else (None,):
                event = Finished(ref, outcome, check=check, used=used, retry_after=wait)
                for verify in VERDICTS if outcome is AttemptOutcome.VERIFIED else (None,):
                    name = "" if verify is None else f" {verify.final}"
                    yield f"{ref.key} {outcome}{name}", replace(event, verify=verify)

    def _edge(self, number: int, label: str, event: Event, ref: StepRef | None = None) -> Edge:
        run = self.records[number]
        decision = decide(run, event, 0.0, self.setup.policy)
        ended = decision.run is not None and decision.run.ending is not None
        before = run is not None and run.ending is not None
        place = FREE if ref is None else EVERY_REF.index(ref)
        granted = decision.answer is Answer.GRANTED
        recorded, said = None, None
        if isinstance(event, Finished) and decision.answer in (Answer.RECORDED, Answer.ENDED):
            recorded = (place, event.outcome)
            said = None if event.verify is None else event.verify.final
        seen = Happening(
            started=place if granted else FREE,
            recorded=recorded,
            said=said,
            asked=_asks(run, decision.run),
            answered=decision.answer is Answer.CONTINUED,
            released=str(decision.run.ending) if decision.run and ended and not before else None,
            cancelled=isinstance(event, Cancelled) and decision.answer is not Answer.STANDS,
            overdrawn=bool(
                granted
                and ref
                and ref.step in MODEL_STEPS
                and decision.run
                and not decision.run.spent.fits(self.setup.budget)
            ),
        )
        if isinstance(event, Claimed | Ticked) and not ended:
            seen = seen._replace(evicted=_evicted(run, decision.run))
        after = number
        if decision.run is not run:
            after = self._number(normal_form(decision.run, 0.0, self.setup.policy))
        return Edge(label, after, seen)

    def _number(self, run: Run | None) -> int:
        key = "" if run is None else run.model_dump_json(exclude_defaults=True)
        number = self._record_numbers.setdefault(key, len(self.records))
        if number == len(self.records):
            self.records.append(run)
        return number

    def _number_of_history(self, history: History) -> int:
        number = self._history_numbers.setdefault(history, len(self.histories))
        if number == len(self.histories):
            self.histories.append(history)
        return number


def _pair(one: int, other: int) -> tuple[int, int]:
    """Two workers are alike: who holds what does not matter."""
    return (one, other) if one <= other else (other, one)


def _evicted(before: Run | None, after: Run | None) -> bool:
    """Tell whether somebody lost a step whose lease was not over."""
    if before is None or after is None or after is before:
        return False
    return any(
        attempt.lease_until is not None
        and attempt.lease_until > 0
        and after.attempts[key] != attempt
        for key, attempt in before.attempts.items()
    )


def _asks(before: Run | None, after: Run | None) -> bool:
    """Tell whether a record asks for evidence that did not before."""
    if before is None or after is None:
        return False
    return before.evidence_until is None and after.evidence_until is not None
