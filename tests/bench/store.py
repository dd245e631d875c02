"""The reducer and the commit script on one connection: how many events a second."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, time

import redis

from tests.bench.table import Row
from worker.adapters.keys import Keys
from worker.adapters.redis_records import RedisRecords
from worker.offline.redis_server import RedisServer
from worker.run.events import Admitted, Claimed, Event, Finished, Published
from worker.run.outcomes import AttemptOutcome
from worker.run.path import due_at
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import CheckFacts
from worker.run.steps import Step, StepRef

RUNS = 300

_CHECK = StepRef(0, Step.CHECK_EVIDENCE, 1)
_REVIEW = StepRef(0, Step.REVIEW_SEMANTICS, 1)
_PUBLISH = StepRef(0, Step.PUBLISH, 1)
_FACTS = CheckFacts(
    readable=True,
    stopped=False,
    concluded=True,
    violations=0,
    named_calls=True,
    verified=True,
    missing_context=False,
)


def measure(_logs: Path) -> Iterator[Row]:
    with (
        RedisServer(appendfsync="everysec") as server,
        redis.Redis.from_url(server.url) as client,
    ):
        records = RedisRecords(client, Keys(), retention=60)
        start = perf_counter()
        commits = sum(_straight_path(records, f"bench-{number}") for number in range(RUNS))
        seconds = perf_counter() - start
    yield Row("events decided and committed, one connection", commits / seconds, "/s")


def _straight_path(records: RedisRecords, run_id: str) -> int:
    """A whole run, event by event; returns how many were written."""
    policy = Policy()
    stored = records.load(run_id)
    run, revision = stored.run, stored.revision
    events = _events(run_id)
    for event in events:
        run = decide(run, event, stored.now(), policy).run
        assert run is not None
        committed = records.commit(
            run, revision, due=due_at(run, policy), blobs={}, outgoing=(), close_calls=False
        )
        assert committed is not None
        revision = committed.revision
    assert run is not None
    assert run.ending is not None, "the straight path ends the run"
    return len(events)


def _events(run_id: str) -> tuple[Event, ...]:
    return (
        Admitted(run_id, "DraftReady/0", "0" * 64, "session-1", deadline_at=time() + 900),
        Claimed(_CHECK),
        Finished(_CHECK, AttemptOutcome.PASSED, check=_FACTS),
        Claimed(_REVIEW),
        Finished(_REVIEW, AttemptOutcome.SUPPORTED),
        Claimed(_PUBLISH),
        Published(_PUBLISH),
    )
