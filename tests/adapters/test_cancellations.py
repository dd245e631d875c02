"""Cancelled runs over a real Redis channel."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from tests.adapters.fault_server import HANG, FaultServer, eventually
from worker.adapters import cancellations
from worker.adapters.cancellations import redis_cancellations
from worker.adapters.openai_model import OpenAIModel, OpenAISettings
from worker.offline.redis_server import RedisServer
from worker.ports import ModelCall, ModelCancelled, ModelFailure

CHANNEL = "test:cancelled"
CLOSED = "test:closed"


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
def provider() -> Iterator[FaultServer]:
    with FaultServer(otherwise=HANG) as running:
        yield running


def call(run_id: str) -> ModelCall:
    return ModelCall(run_id, "s", "u", 10.0, 10, 10, "n", {})


def subscribers(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.pubsub_numsub(CHANNEL)[0][1])


def test_a_published_run_id_closes_the_call_also_after_redis_restarted(
    redis_server: RedisServer, provider: FaultServer
) -> None:
    """The listener lives from before the first call, survives Redis, and cancels at once."""
    url = redis_server.url
    model = OpenAIModel(
        OpenAISettings(provider.url, "key", "judge"),
        lambda: redis_cancellations(url, CHANNEL, CLOSED),
    )
    try:
        model.start()
        for run_id in ("run-1", "run-2"):
            eventually(lambda: subscribers(url) == 1)
            assert _cancel_latency(model, provider, url, run_id) < 0.25
            redis_server.restart()
    finally:
        model.close()


def _cancel_latency(model: OpenAIModel, provider: FaultServer, url: str, run_id: str) -> float:
    asked, left = len(provider.requests), len(provider.left_at)
    with ThreadPoolExecutor(1) as threads, redis.Redis.from_url(url) as client:
        asking = threads.submit(model.ask, call(run_id))
        eventually(lambda: len(provider.requests) == asked + 1)
        client.publish(CHANNEL, "another-run")
        client.publish(CHANNEL, b"\xff")
        published_at = time.monotonic()
        client.publish(CHANNEL, run_id)
        assert isinstance(asking.exception(5), ModelCancelled)
    eventually(lambda: len(provider.left_at) == left + 1)
    return provider.left_at[-1] - published_at


def test_a_quiet_channel_stays_subscribed(
    redis_server: RedisServer, provider: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long silence is probed, and answered probes keep the one connection."""
    monkeypatch.setattr(cancellations, "_QUIET_SECONDS", 0.02)
    url = redis_server.url
    model = OpenAIModel(
        OpenAISettings(provider.url, "key", "judge"),
        lambda: redis_cancellations(url, CHANNEL, CLOSED),
    )
    try:
        model.start()
        eventually(lambda: subscribers(url) == 1)
        with redis.Redis.from_url(url) as client:
            pings = "cmdstat_ping"
            eventually(lambda: client.info("commandstats").get(pings, {}).get("calls", 0) > 5)
            listeners = {one["id"] for one in client.client_list() if int(one["sub"]) > 0}
            before = client.info("commandstats")[pings]["calls"]
            eventually(lambda: client.info("commandstats")[pings]["calls"] > before + 5)
            now = {one["id"] for one in client.client_list() if int(one["sub"]) > 0}
        assert now == listeners
    finally:
        model.close()


def test_a_server_that_falls_silent_is_left_and_tried_again(
    provider: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is open but dead does not stay the listener for ever."""
    monkeypatch.setattr(cancellations, "_QUIET_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        accepted: list[socket.socket] = []

        def accept() -> None:
            while len(accepted) < 2:
                accepted.append(mute.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        model = OpenAIModel(
            OpenAISettings(provider.url, "key", "judge"),
            lambda: redis_cancellations(
                f"redis://127.0.0.1:{port}?socket_timeout=0.2", CHANNEL, CLOSED
            ),
        )
        try:
            model.start()
            eventually(lambda: len(accepted) == 2)
        finally:
            model.close()
            for connection in accepted:
                connection.close()


def test_calls_do_not_wait_for_a_redis_that_is_away() -> None:
    """Without its channel the model still answers; the record keeps cancelled runs unreleased."""
    with FaultServer() as answering:
        model = OpenAIModel(
            OpenAISettings(answering.url, "key", "judge"),
            lambda: redis_cancellations("redis://127.0.0.1:1", CHANNEL, CLOSED),
        )
        try:
            assert model.ask(call("run-1")).text == "{}"
        except ModelFailure as failure:
            pytest.fail(f"the call failed: {failure}")
        finally:
            model.close()
