"""The client that an agent team imports, on a real Redis without any worker."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from kombu.exceptions import OperationalError

from contracts.envelope import Envelope
from contracts.messages import DraftReady, ExecutorOutputReady
from tests.pipeline.cases import draft_ready
from worker.adapters.keys import Keys
from worker.client import ResultConsumer, StageClient, TooLarge
from worker.offline.redis_server import RedisServer

RUN = "run-1"
KEYS = Keys()


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
def client(server: RedisServer) -> Iterator[StageClient]:
    one = StageClient(server.url, most_bytes=2_000)
    yield one
    one.close()


@pytest.fixture
def store(server: RedisServer) -> Iterator[Any]:
    with redis.Redis.from_url(server.url) as one:
        yield one


def draft(**changes: Any) -> DraftReady:
    return draft_ready(RUN, {"any": "JSON"}, **changes)


def queued(server: RedisServer, queue: str) -> list[Envelope]:
    """What is in a queue, taken out of it."""
    found: list[Envelope] = []
    consumer = ResultConsumer(server.url, name="tests", reply_to=queue)
    consumer.consume(found.append, timeout=0.1)
    consumer.close()
    return found


@pytest.mark.scenario("admission", "A draft is stored before it is published")
def test_a_draft_is_in_the_inbox_and_in_the_queue(
    server: RedisServer, client: StageClient, store: Any
) -> None:
    """Both hold the same bytes under the message's id."""
    before = datetime.now(UTC).timestamp()
    message_id = client.submit_draft(draft(), traceparent="00-1-2-01")
    body = store.get(KEYS.inbox_entry(message_id))
    written = store.zscore(KEYS.inbox, message_id)
    assert before <= written <= datetime.now(UTC).timestamp()
    (message,) = queued(server, "release.drafts")
    assert message == Envelope.model_validate_json(body)
    assert message.id == message_id
    assert message.subject == RUN
    assert message.traceparent == "00-1-2-01"
    assert message.data == draft().model_dump(mode="json", exclude_unset=True)


@pytest.mark.scenario("admission", "Claims are stored before they are published")
def test_claims_are_in_the_inbox_and_in_the_queue(
    server: RedisServer, client: StageClient, store: Any
) -> None:
    """They go the way of drafts, under the same promise."""
    name = {"name": "planner", "version": "1"}
    output = ExecutorOutputReady.model_validate(
        {
            "run_id": RUN,
            "session_id": "session-1",
            "query": "Why?",
            "output": {"claims": []},
            "prompts": {"planner": name, "executor": name},
            "round": 1,
        }
    )
    message_id = client.submit_claims(output)
    (message,) = queued(server, "release.drafts")
    assert message == Envelope.model_validate_json(store.get(KEYS.inbox_entry(message_id)))
    assert message.type == "release_stage.ExecutorOutputReady.v1"
    assert message.data["round"] == 1


@pytest.mark.scenario("admission", "The broker is away")
def test_a_broker_that_is_away_costs_no_draft(server: RedisServer, store: Any) -> None:
    """The call returns, and the draft waits in the inbox for the relay."""
    client = StageClient(server.url, "redis+socket:///nowhere/redis.sock?virtual_host=0")
    message_id = client.submit_draft(draft())
    client.close()
    assert store.zscore(KEYS.inbox, message_id) is not None
    assert store.exists(KEYS.inbox_entry(message_id))


def test_a_client_sends_again_once_its_broker_is_back(server: RedisServer, store: Any) -> None:
    """A connection that broke is not kept."""
    client = StageClient(server.url)
    client.submit_draft(draft())
    store.client_kill_filter(_type="normal", skipme=True)
    client.submit_draft(draft())
    client.submit_draft(draft())
    client.close()
    assert len(queued(server, "release.drafts")) >= 2


@pytest.mark.scenario("admission", "The store is away")
def test_a_store_that_is_away_is_told_and_nothing_is_sent(server: RedisServer) -> None:
    """Without its inbox entry a draft counts as not submitted."""
    client = StageClient("unix:///nowhere/redis.sock?db=0", server.broker_url)
    with pytest.raises(redis.ConnectionError):
        client.submit_draft(draft())
    client.close()
    assert queued(server, "release.drafts") == []


@pytest.mark.scenario("admission", "A draft over the limit")
def test_a_draft_over_the_limit_is_refused_before_anything_is_written(
    server: RedisServer, client: StageClient, store: Any
) -> None:
    """The sender learns at once what a worker would refuse; the error quotes nothing."""
    with pytest.raises(TooLarge) as raised:
        client.submit_draft(draft(query="secret " * 1_000))
    assert "secret" not in str(raised.value)
    assert store.keys("*") == []
    assert queued(server, "release.drafts") == []


@pytest.mark.scenario("admission", "A cancel has a queue of its own")
def test_a_cancel_goes_to_the_control_queue(server: RedisServer, client: StageClient) -> None:
    """It never waits behind drafts."""
    message_id = client.cancel_run(RUN)
    assert queued(server, "release.drafts") == []
    (message,) = queued(server, "release.control")
    assert message.id == message_id
    assert message.type == "release_stage.CancelRun.v1"
    assert message.data == {"run_id": RUN}


def test_a_cancel_that_no_broker_takes_is_told(server: RedisServer) -> None:
    """A cancel has no inbox, so its failure must not pass in silence."""
    client = StageClient(server.url, "redis+socket:///nowhere/redis.sock?virtual_host=0")
    with pytest.raises(OperationalError):
        client.cancel_run(RUN)
    client.close()


@pytest.mark.scenario("local-stage", "An agent's process")
def test_the_client_loads_neither_celery_nor_a_provider() -> None:
    """An agent's process stays as light as its broker library."""
    check = (
        "import sys, worker.client;"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'celery', 'openai', 'httpx2'}))"
    )
    printed = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True)
    assert printed.stdout.strip() == b"[]"
