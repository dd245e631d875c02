"""The evidence check of a huge draft: time, growth, and round trips for its records."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
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
    large = median(seconds for _, (seconds, _) in pairs)
    growth = median(seconds / small for (small, _), (seconds, _) in pairs)
    round_trips = max(commands for _, (_, commands) in pairs)
    what = f"evidence check, {LARGE:,} analyses with {CALLS} calls each"
    yield Row(what, large, "s")
    yield Row(f"its time beside {SMALL} analyses", growth, "times", 12)
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


def _check(client: Any, analyses: int) -> tuple[float, int]:
    """Seconds from the draft's bytes to the reviewer's question, and commands to Redis."""
    run_id, raw = _run_id(analyses), canonical(draft_of(analyses, CALLS))
    invocations = RedisInvocations(client, Keys())
    before = _commands(client)
    start = perf_counter()
    draft = DiagnosisDraft.model_validate_json(raw)
    records = invocations.fetch(run_id, cited_ids(draft))
    found = check_evidence(run_id, draft, records, BUILT_IN)
    assert found.snapshot is not None, "the draft is sound"
    snapshot_bytes(found.snapshot)
    question("Why does checkout fail?", draft, found.snapshot)
    return perf_counter() - start, _commands(client) - before - 1


def _commands(client: Any) -> int:
    """Commands that the server has answered so far, not counting this one."""
    return int(client.info("stats")["total_commands_processed"])
