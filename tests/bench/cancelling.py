"""From asking for a cancel to the judge seeing its connection closed."""

from collections.abc import Iterator
from pathlib import Path
from time import time

from tests.bench.house import House, small_house
from tests.bench.table import Row, percentile
from worker.offline.judge_log import Received
from worker.offline.judge_script import hang

RUNS = 100


def measure(logs: Path) -> Iterator[Row]:
    with small_house(logs, "cancel") as house:
        house.judge.script(hang().always())
        _one_cancel(house)
        milliseconds = [_one_cancel(house) * 1000 for _ in range(RUNS)]
    what = "CancelRun published to the model's connection closed"
    yield Row(f"{what}, p50", percentile(milliseconds, 0.5), "ms")
    yield Row(f"{what}, p99", percentile(milliseconds, 0.99), "ms", 250)


def _one_cancel(house: House) -> float:
    house.judge._log.clear()
    run_id = house.agent.prepare()
    house.agent.submit(run_id)
    house.judge.wait(lambda received: len(received) == 1)
    start = time()
    house.agent.client.cancel_run(run_id)
    closed = house.judge.wait(_closed)[0].closed_at
    house.agent.result()
    assert closed is not None
    return closed - start


def _closed(received: list[Received]) -> bool:
    return received[0].closed_at is not None
