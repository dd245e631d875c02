"""What every outbox must do, shown over memory and over a real Redis."""

import time

import pytest

from tests.ports.stores import Store, message, open_run
from worker.ports import OutboxEntry


def release(store: Store, *run_ids: str) -> list[OutboxEntry]:
    """Put one message a run into the outbox, in this order."""
    entries: list[OutboxEntry] = []
    for run_id in run_ids:
        committed = store.records.commit(
            open_run(run_id),
            0,
            due=None,
            blobs={},
            outgoing=(message(run_id),),
            close_calls=False,
        )
        assert committed is not None
        entries += committed.entries
    time.sleep(0.002)  # the next millisecond, in which the entries are in the past
    return entries


def test_pending_entries_come_oldest_first_and_bounded(store: Store) -> None:
    """The relay sends in the order of the releases, a batch at a time."""
    entries = release(store, "c", "a", "b")
    assert list(store.outbox.pending(0, 10)) == entries
    assert list(store.outbox.pending(0, 2)) == entries[:2]


@pytest.mark.scenario("delivery", "Young entries are left alone")
def test_young_entries_are_left_to_whoever_released_them(store: Store) -> None:
    """An entry is pending only once it is older than the patience."""
    release(store, "a")
    assert list(store.outbox.pending(60, 10)) == []


def test_sent_entry_is_gone_for_good(store: Store) -> None:
    """Saying it twice, or of an entry that never was, changes nothing."""
    first, second = release(store, "a", "b")
    for entry_id in (first.entry_id, first.entry_id, "1-0"):
        store.outbox.sent(entry_id)
    assert list(store.outbox.pending(0, 10)) == [second]


def test_failed_tries_are_counted_per_entry(store: Store) -> None:
    """An entry that failed stays pending, with its count, until it is sent."""
    first, second = release(store, "a", "b")
    assert [store.outbox.failed(first.entry_id) for _ in range(3)] == [1, 2, 3]
    assert store.outbox.failed(second.entry_id) == 1
    assert list(store.outbox.pending(0, 10)) == [first, second]
    store.outbox.sent(first.entry_id)
    assert store.outbox.failed(second.entry_id) == 2
