"""What the way out to the broker says when the broker does not take a message."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from worker.adapters.kombu_sender import KombuSender
from worker.offline.redis_server import RedisServer
from worker.ports import OutgoingMessage, SendFailed

REPLY = OutgoingMessage(
    "run-1", "id-1", "release_stage.ReleaseAborted.v1", b"{}", "release.reply.x"
)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


def store_of(server: RedisServer) -> Any:
    return redis.Redis.from_url(server.url)


def test_a_queue_that_cannot_be_is_final(server: RedisServer) -> None:
    """A key of another kind never takes a message: trying again is useless."""
    with store_of(server) as store:
        store.hset("release.reply.x", "no", "list")
    with pytest.raises(SendFailed) as raised:
        KombuSender(server.broker_url, {}).send(REPLY)
    assert raised.value.final
    assert "WRONGTYPE" not in str(raised.value)


def test_a_broker_that_is_away_is_not_final() -> None:
    """It may come back, for sending and for keeping aside alike."""
    sender = KombuSender("redis+socket:///nowhere/redis.sock?virtual_host=0", {})
    sends: tuple[Callable[[], None], ...] = (
        lambda: sender.send(REPLY),
        lambda: sender.park(b"{}", "CODE", "tests"),
    )
    for send in sends:
        with pytest.raises(SendFailed) as raised:
            send()
        assert not raised.value.final
        assert "nowhere" not in str(raised.value)


def test_a_broker_that_is_full_is_not_final(server: RedisServer) -> None:
    """Its memory may be freed; the message is not to blame."""
    with store_of(server) as store:
        store.config_set("maxmemory", "1")
    with pytest.raises(SendFailed) as raised:
        KombuSender(server.broker_url, {}).send(REPLY)
    assert not raised.value.final
    with store_of(server) as store:
        store.config_set("maxmemory", "0")  # so that it can end in good order
