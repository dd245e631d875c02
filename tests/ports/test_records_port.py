"""What every store of records must do, shown over memory and over a real Redis."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.ports.stores import RETENTION, Store, message, open_run
from worker.adapters.keys import Keys
from worker.adapters.redis_records import (
    RedisInbox,
    RedisInvocations,
    RedisOutbox,
    RedisRecords,
)
from worker.offline.redis_server import RedisServer
from worker.ports import Committed, OutgoingMessage, Records, StoreUnavailable
from worker.run.events import Answer, Cancelled, Claimed, Event, Finished, Published
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import CheckFacts, Ending, EndingKind, Run
from worker.run.steps import Step, StepRef

CHECK = StepRef(0, Step.CHECK_EVIDENCE, 1)
PUBLISH = StepRef(0, Step.PUBLISH, 1)
WRITERS = 8
RUNS = 200
CANCELLED = Ending(kind=EndingKind.ABORTED, code="CANCELLED")


def write(
    store: Store,
    run: Run,
    expected: int,
    *,
    due: float | None = None,
    blobs: dict[str, bytes] | None = None,
    outgoing: tuple[OutgoingMessage, ...] = (),
    close_calls: bool = False,
) -> Committed | None:
    return store.records.commit(
        run, expected, due=due, blobs=blobs or {}, outgoing=outgoing, close_calls=close_calls
    )


def test_unknown_run_is_read_as_nothing_at_revision_zero(store: Store) -> None:
    """A run that was never written has no record, no blobs and revision 0."""
    stored = store.records.load("run-1", ("input",))
    assert (stored.run, stored.revision, dict(stored.blobs)) == (None, 0, {})
    assert stored.now() == pytest.approx(time.time(), abs=5)


def test_what_was_committed_is_read_back(store: Store) -> None:
    """Record, revision and the named blobs come back; blobs that nobody named do not."""
    run = open_run().model_copy(update={"messages": {"DraftReady/0": "ab"}, "locale": "zh-CN"})
    committed = write(store, run, 0, blobs={"input": b"\x00\xff raw", "other": b"x"})
    assert committed == Committed(1, ())
    stored = store.records.load("run-1", ("input", "missing"))
    assert stored.run == run
    assert stored.revision == 1
    assert dict(stored.blobs) == {"input": b"\x00\xff raw"}


def test_later_commit_keeps_blobs_that_it_does_not_name(store: Store) -> None:
    """A blob lives until it is written again."""
    write(store, open_run(), 0, blobs={"a": b"1", "b": b"1"})
    write(store, open_run(), 1, blobs={"b": b"2"})
    assert dict(store.records.load("run-1", ("a", "b")).blobs) == {"a": b"1", "b": b"2"}


@pytest.mark.scenario("run-record", "A stale revision")
@pytest.mark.parametrize("expected", [0, 2, 7])
def test_stale_revision_writes_nothing_at_all(store: Store, expected: int) -> None:
    """A commit on another revision than the one that stands leaves no trace anywhere."""
    write(store, open_run(), 0, due=time.time() + 60, blobs={"input": b"first"})
    ended = open_run().model_copy(update={"ending": CANCELLED})
    refused = write(
        store,
        ended,
        expected,
        due=time.time() - 60,
        blobs={"input": b"second", "more": b"x"},
        outgoing=(message(),),
        close_calls=True,
    )
    assert refused is None
    stored = store.records.load("run-1", ("input", "more"))
    assert (stored.run, stored.revision) == (open_run(), 1)
    assert dict(stored.blobs) == {"input": b"first"}
    assert store.outbox.pending(0, 10) == []
    assert store.records.due(10) == []
    assert store.closed() == []
    assert store.ttl("run-1") is None


@pytest.mark.scenario("run-record", "A release is its record")
def test_release_and_record_are_one_write(store: Store) -> None:
    """The messages of a commit are in the outbox, in order, once the commit answers."""
    write(store, open_run(), 0)
    ended = open_run().model_copy(update={"ending": CANCELLED, "ended_at": 1001.0})
    out = (message(body=b"\x00\xff"), message(reply_to="release.reply.a"))
    committed = write(store, ended, 1, outgoing=out, close_calls=True)
    assert committed is not None
    assert tuple(entry.message for entry in committed.entries) == out
    time.sleep(0.002)  # the next millisecond, in which the entries are in the past
    assert tuple(store.outbox.pending(0, 10)) == committed.entries
    assert store.closed() == ["run-1"]


@pytest.mark.scenario("run-record", "Retention")
def test_open_run_stays_and_ended_run_expires_after_its_retention(store: Store) -> None:
    """Only what is not open has a time to live: ended runs and cancel marks."""
    write(store, open_run(), 0)
    assert store.ttl("run-1") is None
    write(store, open_run().model_copy(update={"ending": CANCELLED}), 1)
    assert store.ttl("run-1") == pytest.approx(RETENTION, abs=5)
    write(store, Run(run_id="marked", cancelled_at=1000.0), 0)
    assert store.ttl("marked") == pytest.approx(RETENTION, abs=5)


def test_due_runs_come_longest_overdue_first(store: Store) -> None:
    """The index holds each open run once, at its last due time, and is bounded."""
    now = time.time()
    for run_id, due in (("b", now - 20), ("a", now - 10), ("c", now - 30), ("later", now + 60)):
        write(store, open_run(run_id), 0, due=due)
    assert list(store.records.due(10)) == ["c", "b", "a"]
    assert list(store.records.due(2)) == ["c", "b"]
    write(store, open_run("c"), 1, due=now + 60)
    write(store, open_run("b").model_copy(update={"ending": CANCELLED}), 1, due=None)
    assert list(store.records.due(10)) == ["a"]


def opened_for_publishing(run_id: str) -> Run:
    """A run whose publishing step is granted: every writer may end it."""
    facts = CheckFacts(
        readable=True,
        stopped=False,
        concluded=False,
        violations=0,
        named_calls=False,
        verified=False,
        missing_context=True,
    )
    now = time.time()
    run: Run | None = Run(run_id=run_id, opened_at=now, deadline_at=now + 900)
    events: tuple[Event, ...] = (
        Claimed(CHECK),
        Finished(CHECK, AttemptOutcome.UNCONCLUDED, check=facts),
        Claimed(PUBLISH),
    )
    for event in events:
        run = decide(run, event, now, Policy()).run
    assert run is not None
    return run


def end(records: Records, run_id: str, event: Event) -> bool:
    """Try to end a run until the answer stands; tells whether this was the one that ended it."""
    while True:
        stored = records.load(run_id)
        decision = decide(stored.run, event, stored.now(), Policy())
        if decision.run is None or decision.run is stored.run:
            return False
        out = (message(run_id, body=str(decision.run.ending).encode()),)
        committed = records.commit(
            decision.run, stored.revision, due=None, blobs={}, outgoing=out, close_calls=False
        )
        if committed is not None:
            return decision.answer is Answer.ENDED


@pytest.mark.scenario("run-record", "Many writers, one ending")
def test_racing_writers_end_each_run_exactly_once(store: Store) -> None:
    """Eight writers, half of them cancelling, end 200 runs: one ending and one message each."""
    run_ids = [f"run-{number}" for number in range(RUNS)]
    for run_id in run_ids:
        write(store, opened_for_publishing(run_id), 0)
    start = Barrier(WRITERS)

    def race(writer: int) -> list[str]:
        won = []
        for run_id in run_ids:
            if run_ids.index(run_id) % 10 == 0:
                start.wait(30)  # drive them together again
            event: Event = Cancelled(run_id) if writer % 2 else Published(PUBLISH)
            if end(store.records, run_id, event):
                won.append(run_id)
        return won

    with ThreadPoolExecutor(WRITERS) as pool:
        winners = [run_id for won in pool.map(race, range(WRITERS)) for run_id in won]
    assert Counter(winners) == Counter(run_ids)
    time.sleep(0.002)  # the next millisecond, in which the entries are in the past
    released = {
        entry.message.run_id: entry.message.body.decode()
        for entry in store.outbox.pending(0, 10 * RUNS)
    }
    assert len(store.outbox.pending(0, 10 * RUNS)) == RUNS
    for run_id in run_ids:
        run = store.records.load(run_id).run
        assert run is not None
        assert released[run_id] == str(run.ending)


class CountingConnection(redis.UnixDomainSocketConnection):
    """Counts how often something was sent: one round trip each."""

    sends = 0

    def send_packed_command(self, command: object, check_health: bool = True) -> None:
        type(self).sends += 1
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]


@pytest.mark.scenario("run-record", "One round trip to read")
def test_run_blobs_and_time_are_read_in_one_round_trip(private_redis: RedisServer) -> None:
    """Reading is one round trip at any number of blobs, and so is writing."""
    pool = redis.ConnectionPool(connection_class=CountingConnection, path=str(private_redis.socket))
    client = redis.Redis(connection_pool=pool)
    records = RedisRecords(client, Keys("counted:"), RETENTION)
    blobs = {f"blob-{number}": b"x" for number in range(50)}
    records.commit(open_run(), 0, due=1.0, blobs=blobs, outgoing=(), close_calls=False)
    before = CountingConnection.sends
    assert len(records.load("run-1", tuple(blobs)).blobs) == 50
    assert CountingConnection.sends - before == 1
    before = CountingConnection.sends
    written = records.commit(
        open_run(), 1, due=1.0, blobs=blobs, outgoing=(message(),), close_calls=True
    )
    assert written is not None
    assert CountingConnection.sends - before == 1
    client.flushall()
    client.close()


@pytest.mark.scenario("run-record", "A store that is away")
def test_store_that_is_away_raises_one_error() -> None:
    """Whatever is asked of a Redis that is gone ends in StoreUnavailable, with a code only."""
    client = redis.Redis(unix_socket_path="/nowhere/redis.sock", retry=Retry(NoBackoff(), 0))
    keys = Keys()
    records = RedisRecords(client, keys, RETENTION)
    outbox, inbox = RedisOutbox(client, keys), RedisInbox(client, keys)
    asked = (
        lambda: records.load("run-1"),
        lambda: records.commit(open_run(), 0, due=None, blobs={}, outgoing=(), close_calls=False),
        lambda: records.due(1),
        lambda: outbox.pending(0, 1),
        lambda: outbox.sent("1-0"),
        lambda: outbox.failed("1-0"),
        lambda: inbox.waiting(0, 1),
        lambda: inbox.taken("key"),
        lambda: RedisInvocations(client, keys).fetch("run-1", ["call-1"]),
    )
    for ask in asked:
        with pytest.raises(StoreUnavailable) as raised:
            ask()
        assert str(raised.value) == "ConnectionError"
        assert raised.value.__cause__ is None


@pytest.mark.scenario("run-record", "A store that is away")
def test_full_redis_counts_as_away(private_redis: RedisServer, client: redis.Redis) -> None:
    """A Redis that takes no writes decides nothing: StoreUnavailable, and the record stands."""
    records = RedisRecords(client, Keys("full:"), RETENTION)
    records.commit(open_run(), 0, due=None, blobs={}, outgoing=(), close_calls=False)
    client.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreUnavailable):
            records.commit(open_run(), 1, due=None, blobs={}, outgoing=(), close_calls=False)
        assert records.load("run-1").revision == 1
    finally:
        client.config_set("maxmemory", "0")
