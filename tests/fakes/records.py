"""The record's ports in memory, as ``worker.adapters.redis_records`` keeps them in Redis."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from worker.ports import (
    Committed,
    InboxEntry,
    OutboxEntry,
    OutgoingMessage,
    Stored,
    StoreUnavailable,
)
from worker.run.state import Run

WEEK = 604_800


@dataclass
class _Row:
    revision: int = 0
    state: bytes = b""
    blobs: dict[str, bytes] = field(default_factory=dict)
    expires_at: float | None = None


class FakeStore:
    """What the four fakes share: one lock, one clock (seconds), and the data.

    ``away`` makes every operation raise StoreUnavailable. ``closed_calls`` lists the
    runs whose model calls were told to close.
    """

    def __init__(self, clock: Callable[[], float] = time.time, retention: int = WEEK) -> None:
        self.clock = clock
        self.retention = retention
        self.away = False
        self.lock = threading.RLock()
        self.rows: dict[str, _Row] = {}
        self.due: dict[str, float] = {}
        self.outbox: dict[str, tuple[float, OutgoingMessage]] = {}
        self.failures: dict[str, int] = {}
        self.inbox: dict[str, tuple[float, bytes]] = {}
        self.invocations: dict[tuple[str, str], bytes] = {}
        self.closed_calls: list[str] = []
        self.closed_at: dict[str, float] = {}
        self._entries = 0

    def reach(self) -> None:
        """Raise StoreUnavailable while the store is away."""
        if self.away:
            raise StoreUnavailable("ConnectionError")

    def append(self, message: OutgoingMessage) -> str:
        """Add one message to the outbox; returns its entry id. Ids grow."""
        self._entries += 1
        entry_id = f"{int(self.clock() * 1000):015d}-{self._entries:09d}"
        self.outbox[entry_id] = (self.clock(), message)
        return entry_id


class FakeRecords:
    """Implements ``Records``. A record is kept as JSON, as it is in Redis."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def load(self, run_id: str, blobs: Sequence[str] = ()) -> Stored:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            row = self._row(run_id)
            return Stored(
                run=Run.model_validate_json(row.state) if row.state else None,
                revision=row.revision,
                blobs={name: row.blobs[name] for name in blobs if name in row.blobs},
                redis_time=self._store.clock(),
                read_at=time.monotonic(),
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
        """As the port says."""
        store = self._store
        with store.lock:
            store.reach()
            row = self._row(run.run_id)
            if row.revision != expected:
                return None
            row.revision += 1
            row.state = run.model_dump_json(exclude_defaults=True).encode()
            row.blobs.update(blobs)
            if not run.is_open:
                row.expires_at = store.clock() + store.retention
            store.rows[run.run_id] = row
            if due is None:
                store.due.pop(run.run_id, None)
            else:
                store.due[run.run_id] = due
            entries = tuple(OutboxEntry(store.append(message), message) for message in outgoing)
            if close_calls:
                store.closed_calls.append(run.run_id)
                store.closed_at[run.run_id] = store.clock()
            return Committed(row.revision, entries)

    def due(self, limit: int) -> Sequence[str]:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            now = self._store.clock()
            found = sorted((at, run_id) for run_id, at in self._store.due.items() if at <= now)
            return [run_id for _, run_id in found[:limit]]

    def closed(self, since: float) -> Set[str]:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            latest = self._store.clock() - since
            return {run_id for run_id, at in self._store.closed_at.items() if at <= latest}

    def _row(self, run_id: str) -> _Row:
        row = self._store.rows.get(run_id)
        if row is None or (row.expires_at is not None and row.expires_at <= self._store.clock()):
            return _Row()
        return row


class FakeOutbox:
    """Implements ``Outbox``."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def pending(self, older_than: float, limit: int) -> Sequence[OutboxEntry]:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            last = self._store.clock() - older_than
            found = [
                OutboxEntry(entry_id, message)
                for entry_id, (at, message) in sorted(self._store.outbox.items())
                if at <= last
            ]
            return found[:limit]

    def sent(self, entry_id: str) -> None:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            self._store.outbox.pop(entry_id, None)
            self._store.failures.pop(entry_id, None)

    def failed(self, entry_id: str) -> int:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            self._store.failures[entry_id] = self._store.failures.get(entry_id, 0) + 1
            return self._store.failures[entry_id]


class FakeInbox:
    """Implements ``Inbox``; ``put`` is what a client does before it publishes."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def put(self, key: str, body: bytes, at: float) -> None:
        """Store one message, written at ``at`` (seconds since the epoch)."""
        with self._store.lock:
            self._store.inbox[key] = (at, body)

    def waiting(self, older_than: float, limit: int) -> Sequence[InboxEntry]:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            last = self._store.clock() - older_than
            found = sorted(
                (at, key, body) for key, (at, body) in self._store.inbox.items() if at <= last
            )
            return [InboxEntry(key, body) for _, key, body in found[:limit]]

    def taken(self, key: str) -> None:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            self._store.inbox.pop(key, None)


class FakeInvocations:
    """Implements ``Invocations``; ``put`` is what the agents' recorder does."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def put(self, run_id: str, tool_call_id: str, record: bytes) -> None:
        """Store one record as it is, sound or not."""
        with self._store.lock:
            self._store.invocations[run_id, tool_call_id] = record

    def fetch(self, run_id: str, tool_call_ids: Sequence[str]) -> Mapping[str, bytes | None]:
        """As the port says."""
        with self._store.lock:
            self._store.reach()
            return {name: self._store.invocations.get((run_id, name)) for name in tool_call_ids}
