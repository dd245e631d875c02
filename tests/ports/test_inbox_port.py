"""What every inbox must do, shown over memory and over a real Redis."""

import time

import redis

from tests.ports.stores import Store
from worker.adapters.keys import Keys
from worker.adapters.redis_records import RedisInbox
from worker.ports import InboxEntry


def test_waiting_entries_come_oldest_first_and_bounded(store: Store) -> None:
    """What no admission took within the patience is given out, whole and in order."""
    now = time.time()
    store.put_inbox("second", b"\x002", now - 40)
    store.put_inbox("first", b"\xff1", now - 50)
    store.put_inbox("young", b"3", now - 10)
    first, second = InboxEntry("first", b"\xff1"), InboxEntry("second", b"\x002")
    assert list(store.inbox.waiting(30, 10)) == [first, second]
    assert list(store.inbox.waiting(30, 1)) == [first]


def test_taken_entry_is_gone_for_good(store: Store) -> None:
    """Taking it twice, or one that never was, changes nothing."""
    store.put_inbox("one", b"1", time.time() - 50)
    store.put_inbox("two", b"2", time.time() - 40)
    for key in ("one", "one", "never"):
        store.inbox.taken(key)
    assert list(store.inbox.waiting(30, 10)) == [InboxEntry("two", b"2")]


def test_index_without_its_entry_is_cleared_away(client: redis.Redis) -> None:
    """An index entry whose message is gone blocks nothing and does not come again."""
    keys = Keys("inbox-test:")
    client.zadd(keys.inbox, {"gone": 1.0})
    assert list(RedisInbox(client, keys).waiting(30, 10)) == []
    assert client.zcard(keys.inbox) == 0


def test_strange_entries_keep_no_other_waiting(client: redis.Redis) -> None:
    """Agents write here: a name that is no text, or another type under it, is cleared away."""
    keys = Keys("inbox-test:")
    client.zadd(keys.inbox, {b"\xff": 1.0, b"a-list": 2.0, b"sound": 3.0})
    client.lpush(keys.inbox_entry("a-list"), "x")
    client.set(keys.inbox_entry("sound"), b"body")
    assert list(RedisInbox(client, keys).waiting(30, 10)) == [InboxEntry("sound", b"body")]
    assert client.zcard(keys.inbox) == 1
