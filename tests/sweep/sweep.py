"""The sweep: list a case's points by a run that nobody kills, then kill one run at each.

A point in a pool child harms its own run only, so several of these go through a lane
together. One in a main process or in the relay has the lane to itself.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from uuid import uuid4

from tests.sweep.cases import RELEASED, Case
from tests.sweep.lane import Lane
from worker.claims import verifier
from worker.guards import repair, review
from worker.offline.processes import NotReady, wait_until
from worker.run.steps import message_id

PATIENCE = 60.0
"""Seconds within which every run must have ended. Only a failure takes that long."""
LATE = 6.0
"""Seconds after its ending in which a run still reaches its last points."""
TOGETHER = 6
"""Runs with a point in a pool child that go through one lane at a time."""
TRIES = 3
"""A point that time decides about (such as one of the relay's) may need another run."""

_TYPES = {"SUCCEEDED": "ReleaseSucceeded", "FALLBACK": "ReleaseFallback"}


class Broken(AssertionError):
    """A promise did not hold; the text names the case, the point and what was found."""


@dataclass
class Swept:
    """What a sweep found: the points, those at which a process was killed, and the endings."""

    case: Case
    points: list[str]
    crashed: list[str] = field(default_factory=list)
    endings: dict[str, int] = field(default_factory=dict)

    @property
    def missed(self) -> list[str]:
        return [point for point in self.points if point not in self.crashed]


@dataclass(frozen=True)
class Trial:
    """One run of the case, to be killed at ``point``; without one it only lists the points."""

    run_id: str
    point: str | None


def sweep(case: Case, lanes: Sequence[Lane]) -> Swept:
    """Kill one run of the case at each of its points; raises Broken."""
    for lane in lanes:
        lane.process.ready(" ready.")
    points = list_points(case, lanes[0])
    again = list_points(case, lanes[0])
    # A point that one of the runs lacks is up to time, such as a step that was sent again.
    swept = Swept(case, [point for point in points if point in again])
    for _ in range(TRIES):
        _round(swept, lanes)
        if not swept.missed:
            break
    return swept


def list_points(case: Case, lane: Lane) -> list[str]:
    """Let one run of the case go its way; returns the points that it passed."""
    (dry,) = _carry_out(lane, case, [None])
    passed: list[str] = []

    def quiet() -> bool:
        before = len(passed)
        passed[:] = lane.points.passed(dry.run_id)
        return len(passed) == before and not lane.left()

    wait_until(quiet, PATIENCE, f"the last point of {case.name}")
    return [point for point in passed if point.startswith(case.roles) and point not in case.crashes]


def _round(swept: Swept, lanes: Sequence[Lane]) -> None:
    """Try all points that are left, each lane taking the next ones when it is free."""
    jobs: SimpleQueue[list[str]] = SimpleQueue()
    for job in _jobs(swept.missed):
        jobs.put(job)

    def work(lane: Lane) -> None:
        while True:
            try:
                points = jobs.get(block=False)
            except Empty:
                return
            for trial in _carry_out(lane, swept.case, points):
                run = lane.run(trial.run_id)
                assert run is not None
                ending = str(run.ending)
                swept.endings[ending] = swept.endings.get(ending, 0) + 1
                if trial.point is not None and not _is_waiting(lane, trial):
                    swept.crashed.append(trial.point)

    with ThreadPoolExecutor(len(lanes)) as pool:
        for done in [pool.submit(work, lane) for lane in lanes]:
            done.result()


def _jobs(points: Iterable[str]) -> list[list[str]]:
    alone = [point for point in points if not point.startswith("child ")]
    shared = [point for point in points if point.startswith("child ")]
    batches = [shared[start : start + TOGETHER] for start in range(0, len(shared), TOGETHER)]
    return [*batches, *([point] for point in alone)]


def _carry_out(lane: Lane, case: Case, points: Sequence[str | None]) -> list[Trial]:
    """Start a run for each point, wait for what becomes of it, and hold it to the promise."""
    trials = [Trial(f"swept-{uuid4()}", point) for point in points]
    for trial in trials:
        armed = [*case.crashes, *([] if trial.point is None else [trial.point])]
        if armed:
            lane.points.arm(trial.run_id, *armed)
        lane.judge.add(*(behaviour.on(trial.run_id) for behaviour in case.judge))
        lane.submit(case.message(trial.run_id))
    for trial in trials:
        what = f"{case.name}, {trial.point}"
        if case.then is not None:
            done = partial(case.then, lane, trial.run_id)
            wait_until(done, PATIENCE, f"what happens meanwhile: {what}")
        _settled(lane, trial, what)
        _hold(lane, case, trial, what)
    return trials


def _settled(lane: Lane, trial: Trial, what: str) -> None:
    """Wait for the ending, for its message, and for the crash if one is still to come."""

    def ended() -> bool:
        lane.collect()
        run = lane.run(trial.run_id)
        return run is not None and run.ending is not None and trial.run_id in lane.results

    try:
        wait_until(ended, PATIENCE, f"the ending: {what}")
    except NotReady as error:
        raise Broken(f"{error}; {lane.report(trial.run_id)}") from None
    try:
        wait_until(lambda: not _is_waiting(lane, trial), LATE, "the crash")
    except NotReady:
        return  # not reached this time; the caller counts it


def _is_waiting(lane: Lane, trial: Trial) -> bool:
    return trial.point is not None and lane.points.is_armed(trial.run_id, trial.point)


def _hold(lane: Lane, case: Case, trial: Trial, what: str) -> None:
    """Check the promise on one run that has ended."""
    run = lane.run(trial.run_id)
    assert run is not None
    assert run.ending is not None
    allowed = {case.ending, *case.also} if trial.point is not None else {case.ending}
    if str(run.ending) not in allowed:
        raise Broken(f"{what}: ended {run.ending}, may end {sorted(allowed)}")
    if str(run.ending) == RELEASED and case.ending != RELEASED:
        raise Broken(f"{what}: released what the uncrashed run would not release")
    type_ = f"release_stage.{_TYPES.get(run.ending.kind, 'ReleaseAborted')}.v1"
    messages = lane.results[trial.run_id]
    if {found[0] for found in messages} != {message_id(trial.run_id, type_, run.round)}:
        raise Broken(f"{what}: not one outcome of the type of its ending")
    if len(messages) != 1:
        raise Broken(f"{what}: repeats of its outcome differ")
    for prompt, most in (
        (review.SYSTEM, 2),
        (repair.SYSTEM, 1),
        (verifier.SYSTEM, 2 * (run.round + 1)),
    ):
        asked = [
            one
            for one in lane.judge.asked_about(trial.run_id)
            if one.json["messages"][0]["content"] == prompt
        ]
        if len(asked) > most:
            raise Broken(f"{what}: {len(asked)} calls where {most} are allowed")
