"""What every store of invocation records must do, and what the agents' writer keeps."""

from datetime import UTC, datetime

import pytest
import redis

from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle
from tests.ports.stores import Store
from worker.adapters.keys import Keys
from worker.adapters.redis_records import RedisInvocations
from worker.client.invocations import Immutable, InvocationWriter

PREFIX = "invocations-test:"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(lifecycle: Lifecycle, result: str | None = None) -> InvocationRecord:
    return InvocationRecord(
        run_id="run-1",
        session_id="s-1",
        tool_call_id="call-1",
        tool_name="query_logs",
        lifecycle=lifecycle,
        evidence_status=EvidenceStatus.EVIDENCE_FOUND if result else None,
        agent_result=result,
        started_at=NOON,
    )


def test_records_come_as_they_were_stored(store: Store) -> None:
    """Bytes that are no record come too: what they are worth is for the guard to say."""
    store.put_invocation("run-1", "call-1", b'{"a": 1}')
    store.put_invocation("run-1", "broken", b"\xff\x00 not JSON")
    store.put_invocation("run-2", "call-2", b"of another run")
    found = store.invocations.fetch("run-1", ("broken", "call-1", "call-2", "never"))
    assert dict(found) == {
        "broken": b"\xff\x00 not JSON",
        "call-1": b'{"a": 1}',
        "call-2": None,
        "never": None,
    }


def test_no_call_named_finds_nothing(store: Store) -> None:
    """A draft that cites nothing asks for nothing."""
    assert dict(store.invocations.fetch("run-1", ())) == {}


@pytest.mark.parametrize("calls", [1, 5, 5000])
def test_records_are_read_in_one_round_trip_at_any_number(client: redis.Redis, calls: int) -> None:
    """One command reads all records, and none reads a raw response."""
    keys = Keys(PREFIX)
    names = [f"call-{number}" for number in range(calls)]
    client.hset(keys.invocations("run-1"), mapping=dict.fromkeys(names, b"{}"))
    client.hset(keys.raw_responses("run-1"), mapping=dict.fromkeys(names, b"raw"))
    client.config_resetstat()
    found = RedisInvocations(client, keys).fetch("run-1", names)
    stats = client.info("commandstats")
    assert isinstance(stats, dict)
    commands = {name: stat["calls"] for name, stat in stats.items()}
    commands.pop("cmdstat_config|resetstat", None)
    assert commands == {"cmdstat_hmget": 1}
    assert len(found) == calls
    assert set(found.values()) == {b"{}"}


@pytest.mark.parametrize("final", [Lifecycle.READY, Lifecycle.ERROR])
def test_final_record_is_immutable(client: redis.Redis, final: Lifecycle) -> None:
    """A READY or ERROR record is never changed: not by another result, not back to PROJECTING."""
    writer = InvocationWriter(client, prefix=PREFIX)
    stands = record(final, "what the agent saw")
    writer.write(stands)
    writer.write(stands)  # the same again is no change
    others = (
        record(final, "something else"),
        record(Lifecycle.PROJECTING),
        record(Lifecycle.ERROR if final is Lifecycle.READY else Lifecycle.READY),
    )
    for other in others:
        with pytest.raises(Immutable):
            writer.write(other)
    stored = RedisInvocations(client, Keys(PREFIX)).fetch("run-1", ["call-1"])["call-1"]
    assert stored == stands.model_dump_json().encode()


def test_projecting_record_becomes_ready(client: redis.Redis) -> None:
    """A record that is still being made may be written again, and lives as long as it must."""
    writer = InvocationWriter(client, prefix=PREFIX, keep=100)
    for written in (
        record(Lifecycle.PROJECTING),
        record(Lifecycle.PROJECTING, "so far"),
        record(Lifecycle.READY, "all"),
    ):
        writer.write(written)
    stored = RedisInvocations(client, Keys(PREFIX)).fetch("run-1", ["call-1"])["call-1"]
    assert stored is not None
    assert InvocationRecord.model_validate_json(stored).agent_result == "all"
    left = client.ttl(Keys(PREFIX).invocations("run-1"))
    assert isinstance(left, int)
    assert 90 <= left <= 100


def test_records_of_another_type_are_not_there(client: redis.Redis) -> None:
    """An agent that wrote a text where the hash should be has recorded nothing."""
    keys = Keys(PREFIX)
    client.set(keys.invocations("run-text"), "x")
    assert RedisInvocations(client, keys).fetch("run-text", ["a", "b"]) == {"a": None, "b": None}
