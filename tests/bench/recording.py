"""What recording a call costs its tool, and the evidence check over many recorded calls."""

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import redis

from contracts.draft import Analysis, Conclusion, DiagnosisDraft
from tests.bench.table import Row, percentile
from worker.adapters.keys import Keys
from worker.adapters.redis_records import RedisInvocations
from worker.client import InvocationReader, Recorder, command_output
from worker.guards.evidence import EvidenceReport, check_evidence, cited_ids
from worker.guards.tools import BUILT_IN
from worker.offline.redis_server import RedisServer
from worker.trace.summary import summarise

FEW, MANY = 500, 5_000
_AT_ONCE = 5
_TIMES = 5
_OUTPUT = "Filesystem Size Used Avail Use% Mounted on\n/dev/sdb1 20G 20G 0 100% /var"


def measure(_logs: Path) -> Iterator[Row]:
    with (
        RedisServer(appendfsync="everysec") as server,
        redis.Redis.from_url(server.url) as client,
    ):
        costs = {calls: _record(server.url, calls) for calls in (FEW, MANY)}
        yield Row("recording one call, two writes, p50", 1000 * median(costs[MANY]), "ms")
        yield Row("recording one call, two writes, p99", 1000 * percentile(costs[MANY], 0.99), "ms")
        _check(client, FEW)
        pairs = [(_check(client, FEW), _check(client, MANY)) for _ in range(_TIMES)]
        what = f"evidence check over {MANY:,} recorded calls"
        yield Row(what, median(many for _, (many, _) in pairs), "s")
        yield Row(f"its time beside {FEW}", median(m / f for (f, _), (m, _) in pairs), "times", 12)
        yield Row("round trips for its records", max(trips for _, (_, trips) in pairs), "", 1)
        few, many = (_memory(client, calls) for calls in (FEW, MANY))
        yield Row("its memory at the peak", many / 2**20, "MiB")
        yield Row(f"its memory beside {FEW}", many / few, "times", 12)
        records = InvocationReader(client).records(_run_id(MANY))
        start = perf_counter()
        summarise(records)
        yield Row(f"trace summary of {MANY:,} calls", perf_counter() - start, "s")


def _run_id(calls: int) -> str:
    return f"recorded-{calls}"


def _record(url: str, calls: int) -> list[float]:
    """Record calls of a tool that takes no time; returns the seconds of each."""
    recorder = Recorder.connect(url, run_id=_run_id(calls), session_id="bench", bound=10)
    costs = []
    for number in range(calls):
        request = {"command": f"df -h /var # {number}", "host": "db-1"}
        start = perf_counter()
        with recorder.call("run_command", request, tool_call_id=f"c{number}") as call:
            call.ended(command_output(0, _OUTPUT))
        costs.append(perf_counter() - start)
        assert call.recorded
    recorder.close()
    return costs


def _draft(calls: int) -> DiagnosisDraft:
    analyses = tuple(
        Analysis(
            analysis_id=f"a{first}",
            kind="NORMAL",
            text="/var is full.",
            tool_call_ids=tuple(f"c{number}" for number in range(first, first + _AT_ONCE)),
        )
        for first in range(0, calls, _AT_ONCE)
    )
    return DiagnosisDraft(
        conclusion=Conclusion(text="/var is full.", based_on_analysis_ids=("a0",)),
        analyses=analyses,
    )


def _run(client: Any, draft: DiagnosisDraft, calls: int) -> EvidenceReport:
    records = RedisInvocations(client, Keys()).fetch(_run_id(calls), cited_ids(draft))
    return check_evidence(_run_id(calls), draft, records, BUILT_IN)


def _check(client: Any, calls: int) -> tuple[float, int]:
    """Seconds of the check with its records, and commands that it sent to Redis."""
    draft = _draft(calls)
    before = _commands(client)
    gc.collect()  # what the check before left behind is not this one's affair
    start = perf_counter()
    report = _run(client, draft, calls)
    seconds = perf_counter() - start
    assert report.snapshot is not None, "the draft is sound"
    return seconds, _commands(client) - before - 1


def _memory(client: Any, calls: int) -> int:
    """Bytes at the peak of a check. Measured apart, since measuring slows it down."""
    draft = _draft(calls)
    tracemalloc.start()
    _run(client, draft, calls)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _commands(client: Any) -> int:
    return int(client.info("stats")["total_commands_processed"])


if __name__ == "__main__":
    from tests.bench.table import line

    for row in measure(Path()):
        print(line(row))
