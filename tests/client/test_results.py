"""Reading the results: repeats are dropped, and a handler that dies sees its message again."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from kombu import Connection

from contracts.envelope import Envelope, wrap
from contracts.messages import AbortReason, ReleaseAborted
from worker.adapters.kombu_sender import KombuSender
from worker.client import ResultConsumer
from worker.offline.redis_server import RedisServer
from worker.ports import OutgoingMessage
from worker.run.steps import message_id

Consumers = Callable[[str], ResultConsumer]


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
def consumer(server: RedisServer) -> Iterator[Consumers]:
    """Make consumers by name; all are closed in the end."""
    made: list[ResultConsumer] = []

    def make(name: str) -> ResultConsumer:
        made.append(ResultConsumer(server.url, name=name))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ending(run_id: str, reply_to: str = "") -> OutgoingMessage:
    message = ReleaseAborted(run_id=run_id, session_id="s", round=0, reason=AbortReason.CANCELLED)
    id_ = message_id(run_id, message.TYPE, 0)
    body = wrap(message, message_id=id_, time=datetime.now(UTC))
    return OutgoingMessage(run_id, id_, message.TYPE, body, reply_to)


def send(server: RedisServer, *run_ids: str) -> None:
    sender = KombuSender(server.broker_url, {})
    for run_id in run_ids:
        sender.send(ending(run_id))


@pytest.mark.scenario("delivery", "A repeat on the wire")
def test_a_repeat_is_handled_once(server: RedisServer, consumer: Consumers) -> None:
    """Two messages of one id reach the handler once, also when it asks again later."""
    handled: list[str] = []
    reader = consumer("readers")
    send(server, "run-1", "run-2", "run-1")
    count = reader.consume(lambda envelope: handled.append(envelope.subject), timeout=0.1)
    assert (handled, count) == (["run-1", "run-2"], 2)
    send(server, "run-2")
    assert consumer("readers").consume(lambda _: handled.append("again"), timeout=0.1) == 0
    assert handled == ["run-1", "run-2"]


@pytest.mark.scenario("delivery", "A handler that dies")
def test_a_handler_that_raises_sees_the_message_again(
    server: RedisServer, consumer: Consumers
) -> None:
    """A message is marked only after its handler returned."""

    def dies(_: Envelope) -> None:
        raise RuntimeError("the reader's own fault")

    send(server, "run-1")
    with pytest.raises(RuntimeError):
        consumer("readers").consume(dies, timeout=0.1)
    handled: list[str] = []
    consumer("readers").consume(lambda envelope: handled.append(envelope.subject), timeout=0.1)
    assert handled == ["run-1"]


@pytest.mark.scenario("delivery", "Consumers of two names")
def test_each_name_remembers_for_itself(server: RedisServer, consumer: Consumers) -> None:
    """What one consumer has seen is new to another."""
    handled: list[str] = []
    for name in ("first", "second", "first"):
        send(server, "run-1")
        reader = consumer(name)
        handled += [name] * reader.consume(lambda _: None, timeout=0.1)
    assert handled == ["first", "second"]


@pytest.mark.scenario("delivery", "Nobody reads yet")
def test_an_ending_waits_in_the_queue_for_its_first_reader(
    server: RedisServer, consumer: Consumers
) -> None:
    """The results queue exists from the first ending on, read or not."""
    send(server, "run-1")
    handled: list[str] = []
    consumer("late").consume(lambda envelope: handled.append(envelope.type), timeout=0.1)
    assert handled == [ReleaseAborted.TYPE]


def test_an_ending_says_what_it_is_in_its_headers(server: RedisServer) -> None:
    """A reader can sort messages by run and type without opening them."""
    send(server, "run-1")
    with Connection(server.broker_url) as connection:
        queue = connection.SimpleQueue("release.results")
        message = queue.get(block=False)
        assert message.headers == {"type": ReleaseAborted.TYPE, "run_id": "run-1"}
        assert message.content_type == "application/cloudevents+json"
        queue.close()
