"""The evidence check of a huge draft: time, growth, and round trips for its records."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import redis

from contracts.draft import DiagnosisDraft
from contracts.strict_json import canonical
from tests.bench.drafts import draft_of, records_of
from tests.bench.table import Row
from worker.adapters.keys import Keys
from worker.adapters.redis_records import RedisInvocations
from worker.guards.evidence import check_evidence, cited_ids
from worker.guards.review import question
from worker.guards.snapshot import snapshot_bytes
from worker.guards.tools import BUILT_IN
from worker.offline.redis_server import RedisServer

SMALL, LARGE, CALLS = 100, 1_000, 5
_TIMES = 5


def measure(_logs: Path) -> Iterator[Row]:
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        for analyses in (SMALL, LARGE):
            _write(client, analyses)
        _check(client, SMALL)
        pairs = [(_check(client, SMALL), _check(client, LARGE)) for _ in range(_TIMES)]
    best_small = min(small.cpu for small, _ in pairs)
    best_large = min(large.cpu for _, large in pairs)
    seconds = median(large.seconds for _, large in pairs)
    round_trips = max(large.commands for _, large in pairs)
    what = f"evidence check, {LARGE:,} analyses with {CALLS} calls each"
    yield Row(what, seconds, "s")
    yield Row(f"its CPU time beside {SMALL} analyses", best_large / best_small, "times", 12)
    yield Row("round trips for its records", round_trips, "", 1)


def _run_id(analyses: int) -> str:
    return f"bench-{analyses}"


def _write(client: Any, analyses: int) -> None:
    run_id = _run_id(analyses)
    records = {
        record.tool_call_id: record.model_dump_json()
        for record in records_of(run_id, analyses, CALLS)
    }
    client.hset(Keys().invocations(run_id), mapping=records)


@dataclass(frozen=True)
class _Cost:
    """Seconds on the clock and of CPU, and commands to Redis."""

    seconds: float
    cpu: float
    commands: int


def _check(client: Any, analyses: int) -> _Cost:
    """Check a draft, from its bytes to the reviewer's question."""
    run_id, raw = _run_id(analyses), canonical(draft_of(analyses, CALLS))
    invocations = RedisInvocations(client, Keys())
    before = _commands(client)
    start, cpu = perf_counter(), thread_time()
    draft = DiagnosisDraft.model_validate_json(raw)
    records = invocations.fetch(run_id, cited_ids(draft))
    found = check_evidence(run_id, draft, records, BUILT_IN)
    assert found.snapshot is not None, "the draft is sound"
    snapshot_bytes(found.snapshot)
    question("Why does checkout fail?", draft, found.snapshot)
    seconds, cpu = perf_counter() - start, thread_time() - cpu
    return _Cost(seconds, cpu, _commands(client) - before - 1)


def _commands(client: Any) -> int:
    """Commands that the server has answered so far, not counting this one."""
    return int(client.info("stats")["total_commands_processed"])
