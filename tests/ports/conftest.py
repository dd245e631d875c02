"""One private Redis for the suites of this folder, and each store behind the same ports."""

from collections.abc import Iterator

import pytest
import redis

from tests.ports.stores import Store, memory_store, redis_store
from worker.offline.redis_server import RedisServer


@pytest.fixture(scope="session")
def private_redis() -> Iterator[RedisServer]:
    """A real redis-server on a socket of its own."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def client(private_redis: RedisServer) -> Iterator[redis.Redis]:
    """A connection to the private Redis; it is emptied afterwards."""
    with redis.Redis.from_url(private_redis.url) as connected:
        yield connected
        connected.flushall()


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest) -> Store:
    """The ports over memory, then over Redis."""
    if request.param == "memory":
        return memory_store()
    return redis_store(request.getfixturevalue("client"))
