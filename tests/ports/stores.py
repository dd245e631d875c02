"""A fake store and a real one behind the same ports, for the suites of this folder."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import redis

from tests.fakes.records import FakeInbox, FakeInvocations, FakeOutbox, FakeRecords, FakeStore
from worker.adapters.keys import Keys
from worker.adapters.redis_records import (
    RedisInbox,
    RedisInvocations,
    RedisOutbox,
    RedisRecords,
)
from worker.ports import Inbox, Invocations, Outbox, OutgoingMessage, Records
from worker.run.state import Run

RETENTION = 3600
OPENED_AT = 1000.0


@dataclass(frozen=True)
class Store:
    """The four ports over one store, and the hands of those who write from outside.

    ``forget`` lets the retention of a run pass; ``closed`` lists the runs whose
    calls were told to close.
    """

    records: Records
    outbox: Outbox
    inbox: Inbox
    invocations: Invocations
    put_inbox: Callable[[str, bytes, float], None]
    put_invocation: Callable[[str, str, bytes], None]
    ttl: Callable[[str], float | None]
    closed: Callable[[], list[str]]


def memory_store() -> Store:
    store = FakeStore(retention=RETENTION)
    inbox, invocations = FakeInbox(store), FakeInvocations(store)

    def ttl(run_id: str) -> float | None:
        expires_at = store.rows[run_id].expires_at
        return None if expires_at is None else expires_at - time.time()

    return Store(
        records=FakeRecords(store),
        outbox=FakeOutbox(store),
        inbox=inbox,
        invocations=invocations,
        put_inbox=inbox.put,
        put_invocation=invocations.put,
        ttl=ttl,
        closed=lambda: list(store.closed_calls),
    )


def redis_store(client: redis.Redis) -> Store:
    keys = Keys(f"test-{uuid4()}:")
    channel: Any = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    channel.subscribe(keys.closed_calls)
    channel.get_message(timeout=5)  # the confirmation: from here on nothing is missed

    def put_inbox(key: str, body: bytes, at: float) -> None:
        client.set(keys.inbox_entry(key), body)
        client.zadd(keys.inbox, {key: at})

    def put_invocation(run_id: str, tool_call_id: str, record: bytes) -> None:
        client.hset(keys.invocations(run_id), tool_call_id, record)

    def ttl(run_id: str) -> float | None:
        left = client.pttl(keys.run(run_id))
        assert isinstance(left, int)
        return None if left < 0 else left / 1000

    def closed() -> list[str]:
        found = []
        while (message := channel.get_message(timeout=0.05)) is not None:
            found.append(message["data"].decode())
        return found

    return Store(
        records=RedisRecords(client, keys, RETENTION),
        outbox=RedisOutbox(client, keys),
        inbox=RedisInbox(client, keys),
        invocations=RedisInvocations(client, keys),
        put_inbox=put_inbox,
        put_invocation=put_invocation,
        ttl=ttl,
        closed=closed,
    )


def open_run(run_id: str = "run-1") -> Run:
    return Run(run_id=run_id, session_id="s-1", opened_at=OPENED_AT, deadline_at=OPENED_AT + 900)


def message(run_id: str = "run-1", reply_to: str = "", body: bytes = b"{}") -> OutgoingMessage:
    return OutgoingMessage(run_id, f"id-of-{run_id}", "release_stage.Made.v1", body, reply_to)
