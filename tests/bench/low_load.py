"""The time of a run when it is the only one: from submitting to the result, less the judge."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from tests.bench.house import House, small_house
from tests.bench.table import Row, percentile

RUNS, WARM_UP = 200, 20


def measure(logs: Path) -> Iterator[Row]:
    with small_house(logs, "low-load") as house:
        for _ in range(WARM_UP):
            _one_run(house)
        milliseconds = [_one_run(house) * 1000 for _ in range(RUNS)]
    what = "one run at a time, all but the judge"
    yield Row(f"{what}, p50", percentile(milliseconds, 0.5), "ms", 50)
    yield Row(f"{what}, p99", percentile(milliseconds, 0.99), "ms")


def _one_run(house: House) -> float:
    run_id = house.agent.prepare()
    start = perf_counter()
    house.agent.submit(run_id)
    house.agent.result()
    seconds = perf_counter() - start
    (asked,) = house.judge.asked_about(run_id)
    assert asked.answered_at is not None
    house.judge._log.clear()
    return seconds - (asked.answered_at - asked.arrived_at)
