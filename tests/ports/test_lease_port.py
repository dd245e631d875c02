"""One relay at a time: the lease on a real Redis."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from worker.adapters.redis_lease import RedisLease

KEY = "lease-test"


def eventually(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_one_holder_at_a_time(client: redis.Redis) -> None:
    """The holder may renew; nobody else gets the lease meanwhile."""
    first = RedisLease(client, KEY, "first", 30)
    second = RedisLease(client, KEY, "second", 30)
    assert [first.hold(), second.hold(), first.hold(), second.hold()] == [True, False, True, False]


def test_released_lease_is_free_at_once(client: redis.Redis) -> None:
    """Giving it up lets the next one in; giving up what another holds changes nothing."""
    first = RedisLease(client, KEY, "first", 30)
    second = RedisLease(client, KEY, "second", 30)
    assert first.hold()
    second.release()
    assert not second.hold()
    first.release()
    assert second.hold()


@pytest.mark.scenario("delivery", "One relay at a time")
def test_lease_of_a_dead_holder_passes_on(client: redis.Redis) -> None:
    """Without renewal it ends after its time, and the next one takes over."""
    second = RedisLease(client, KEY, "second", 30)
    assert RedisLease(client, KEY, "first", 0.15).hold()
    assert not second.hold()
    assert eventually(second.hold)


def test_renewal_counts_from_the_renewal(client: redis.Redis) -> None:
    """Each renewal gives the whole time again."""
    short = RedisLease(client, KEY, "first", 0.5)
    assert short.hold()
    assert RedisLease(client, KEY, "first", 30).hold()
    left = client.pttl(KEY)
    assert isinstance(left, int)
    assert left > 20_000


@pytest.mark.scenario("delivery", "One relay at a time")
def test_racing_relays_are_one(client: redis.Redis) -> None:
    """Of many that ask at the same moment exactly one is active."""
    leases = [RedisLease(client, KEY, f"relay-{number}", 30) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(RedisLease.hold, leases)) == 1
