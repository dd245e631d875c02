"""Every boundary of the commonest paths, with a process killed at each of them."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.sweep.cases import LEFT_TO_THE_RELAY, REPAIR, SECOND_ATTEMPT, STRAIGHT, Case
from tests.sweep.lane import Lane, lane
from tests.sweep.sweep import PATIENCE, sweep
from worker.offline.judge import JudgeServer
from worker.offline.processes import wait_until

LANES = 5
"""Stages that are swept side by side: most of a sweep is waiting for leases."""
KINDS = ("commit", "enqueue", "ask", "send", "ack", "inbox removal", "outbox removal")


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Lane]]:
    """Lanes for all sweeps of this module; at the end nothing may be left in any of them."""
    logs = tmp_path_factory.mktemp("sweep")
    with ExitStack() as stack:
        judge = stack.enter_context(JudgeServer())
        running = [
            stack.enter_context(lane(f"lane{number}", judge, logs)) for number in range(LANES)
        ]
        yield running
        for one in running:
            wait_until(lambda: not one.left(), PATIENCE, "a lane with nothing left in it")  # noqa: B023 - called before the loop goes on


@pytest.mark.timeout(300)
@pytest.mark.scenario("crash-recovery", "Killed at any boundary")
@pytest.mark.parametrize("case", [STRAIGHT, REPAIR, SECOND_ATTEMPT], ids=lambda case: case.name)
def test_a_run_ends_once_wherever_its_process_is_killed(case: Case, lanes: list[Lane]) -> None:
    """One ending, one message, bounded calls and no release that the uncrashed run lacks."""
    swept = sweep(case, lanes)
    assert not swept.missed, "each point killed its process"
    for kind in KINDS:
        for side in ("before", "after"):
            assert any(f" {side} {kind}" in point for point in swept.points), f"{side} {kind}"


@pytest.mark.timeout(300)
@pytest.mark.scenario("crash-recovery", "Worker and relay killed one after the other")
def test_a_release_survives_the_death_of_its_worker_and_of_its_relay(lanes: list[Lane]) -> None:
    """The worker dies before it sends; the relay that sends for it dies at each of its points."""
    swept = sweep(LEFT_TO_THE_RELAY, lanes)
    assert not swept.missed, "each point killed its process"
    assert {point.split()[0] for point in swept.points} == {"relay"}
    assert len(swept.points) >= 4
