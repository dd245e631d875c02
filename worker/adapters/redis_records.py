"""The ports of the record, on Redis: runs, outbox, inbox and invocations."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from importlib.resources import files
from time import monotonic
from typing import Any

import redis

from worker.adapters.keys import Keys
from worker.ports import (
    Committed,
    InboxEntry,
    OutboxEntry,
    OutgoingMessage,
    Stored,
    StoreUnavailable,
)
from worker.run.state import Run

_SCRIPT = files("worker.adapters").joinpath("commit.lua").read_text("utf-8")

_UNAVAILABLE = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ReadOnlyError,
)
"""Faults of the store as a whole. Any other error is about one run and must not stop the rest."""


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except _UNAVAILABLE as error:
        raise StoreUnavailable(type(error).__name__) from None


@contextmanager
def _none_if_of_another_type() -> Iterator[None]:
    """What an agent wrote as another type than agreed is as good as not there."""
    try:
        yield
    except redis.ResponseError as error:
        if not str(error).startswith("WRONGTYPE"):
            raise


class RedisRecords:
    """Implements ``Records``. Ended runs and cancel marks live for ``retention`` seconds."""

    def __init__(self, client: redis.Redis, keys: Keys, retention: int) -> None:
        self._client: Any = client
        self._keys = keys
        self._retention = retention
        self._script: Any = client.register_script(_SCRIPT)

    def load(self, run_id: str, blobs: Sequence[str] = ()) -> Stored:
        with _reachable(), self._client.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hmget(self._keys.run(run_id), ["rev", "state", *blobs])
            (seconds, micros), (revision, state, *values) = pipe.execute()
        return Stored(
            run=None if state is None else Run.model_validate_json(state),
            revision=int(revision or 0),
            blobs={
                name: value for name, value in zip(blobs, values, strict=True) if value is not None
            },
            redis_time=seconds + micros / 1e6,
            read_at=monotonic(),
        )

    def commit(
        self,
        run: Run,
        expected: int,
        *,
        due: float | None,
        blobs: Mapping[str, bytes],
        outgoing: Sequence[OutgoingMessage],
        close_calls: bool,
    ) -> Committed | None:
        fields: list[str | bytes] = ["state", run.model_dump_json(exclude_defaults=True)]
        for name, value in blobs.items():
            fields += [name, value]
        messages: list[str | bytes] = []
        for message in outgoing:
            messages += [
                message.run_id,
                message.message_id,
                message.type,
                message.reply_to,
                message.body,
            ]
        keys = [
            self._keys.run(run.run_id),
            self._keys.open_runs,
            self._keys.outbox,
            self._keys.closed_runs,
        ]
        args = [
            expected,
            run.run_id,
            "" if due is None else repr(due),
            "" if run.is_open else self._retention,
            self._keys.closed_calls if close_calls else "",
            len(fields) // 2,
            *fields,
            *messages,
        ]
        with _reachable():
            written, revision, *entry_ids = self._script(keys=keys, args=args)
        if not written:
            return None
        entries = tuple(
            OutboxEntry(entry_id.decode(), message)
            for entry_id, message in zip(entry_ids, outgoing, strict=True)
        )
        return Committed(int(revision), entries)

    def due(self, limit: int) -> Sequence[str]:
        with _reachable():
            seconds, micros = self._client.time()
            found = self._client.zrange(
                self._keys.open_runs,
                "-inf",
                repr(seconds + micros / 1e6),
                byscore=True,
                offset=0,
                num=limit,
            )
        return [run_id.decode() for run_id in found]

    def closed(self, since: float) -> Set[str]:
        with _reachable():
            seconds, _ = self._client.time()
            found = self._client.zrange(
                self._keys.closed_runs, "-inf", seconds - since, byscore=True
            )
        return {run_id.decode() for run_id in found}


class RedisOutbox:
    """Implements ``Outbox`` on the stream that the commit script appends to."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client: Any = client
        self._keys = keys

    def pending(self, older_than: float, limit: int) -> Sequence[OutboxEntry]:
        with _reachable():
            seconds, micros = self._client.time()
            last = int((seconds + micros / 1e6 - older_than) * 1000)
            found = self._client.xrange(self._keys.outbox, "-", str(last), count=limit)
        return [
            OutboxEntry(
                entry_id.decode(),
                OutgoingMessage(
                    run_id=fields[b"run_id"].decode(),
                    message_id=fields[b"message_id"].decode(),
                    type=fields[b"type"].decode(),
                    reply_to=fields[b"reply_to"].decode(),
                    body=fields[b"body"],
                ),
            )
            for entry_id, fields in found
        ]

    def sent(self, entry_id: str) -> None:
        with _reachable(), self._client.pipeline(transaction=True) as pipe:
            pipe.xdel(self._keys.outbox, entry_id)
            pipe.hdel(self._keys.outbox_failures, entry_id)
            pipe.execute()

    def failed(self, entry_id: str) -> int:
        with _reachable():
            return int(self._client.hincrby(self._keys.outbox_failures, entry_id, 1))


class RedisInbox:
    """Implements ``Inbox``; the client writes the entries."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client: Any = client
        self._keys = keys

    def waiting(self, older_than: float, limit: int) -> Sequence[InboxEntry]:
        with _reachable():
            seconds, _ = self._client.time()
            names = self._client.zrange(
                self._keys.inbox, "-inf", seconds - older_than, byscore=True, offset=0, num=limit
            )
            found = []
            for name in names:
                body = self._body(name)
                if body is None:
                    self._client.zrem(self._keys.inbox, name)
                else:
                    found.append(InboxEntry(name.decode(), body))
        return found

    def _body(self, name: bytes) -> bytes | None:
        """The message under a name. Agents write here, so neither need be what it should."""
        try:
            with _none_if_of_another_type():
                body: bytes = self._client.get(self._keys.inbox_entry(name.decode()))
                return body
        except UnicodeDecodeError:
            pass
        return None

    def taken(self, key: str) -> None:
        with _reachable(), self._client.pipeline(transaction=True) as pipe:
            pipe.delete(self._keys.inbox_entry(key))
            pipe.zrem(self._keys.inbox, key)
            pipe.execute()


class RedisInvocations:
    """Implements ``Invocations`` over the hash that the agents' recorder writes."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client: Any = client
        self._keys = keys

    def fetch(self, run_id: str, tool_call_ids: Sequence[str]) -> Mapping[str, bytes | None]:
        if not tool_call_ids:
            return {}
        values: list[bytes | None] = [None] * len(tool_call_ids)
        with _reachable(), _none_if_of_another_type():
            values = self._client.hmget(self._keys.invocations(run_id), list(tool_call_ids))
        return dict(zip(tool_call_ids, values, strict=True))
