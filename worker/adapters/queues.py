"""The queues and the exchange as kombu declares them, for worker and client.

Whoever opens a queue first decides what it is, and RabbitMQ refuses everybody who
then asks for something else. So worker and client both ask here.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from amqp.exceptions import MessageNacked
from kombu import Connection, Exchange, Queue
from kombu.exceptions import KombuError

from contracts import channels

TASKS = "release.tasks"
"""The queue where the steps of all runs wait for a worker."""
EVENTS = Exchange(channels.EVENTS, type="topic", durable=True)

DELIVERIES = 20
"""Deliveries that RabbitMQ tries before it keeps a message as a dead letter."""
READINGS = 1_000
"""The same for a result, whose reader may be ill for long."""
DEAD_READINGS = 1_000_000
"""The same for a dead letter, which a person may look at and put back."""
HOLD_SECONDS = 1_800
"""How long RabbitMQ lets a consumer hold a message; the server's own default. From RabbitMQ
3.12 on the queue says so; an older one needs the server's ``consumer_timeout``."""
CONFIRM_SECONDS = 10.0
"""How long a publisher waits for RabbitMQ to have a message on disk."""


@dataclass(frozen=True)
class Broker:
    """What one kind of broker asks of everybody who speaks with it.

    ``connection_options`` are kombu's transport options, ``publish_options`` go with each
    message. Redis knows none of either.
    """

    tasks: Queue
    drafts: Queue
    control: Queue
    results: Queue
    requests: Queue
    shadow: Queue
    dead: Queue
    is_rabbitmq: bool
    connection_options: dict[str, Any]
    publish_options: dict[str, Any]


def is_rabbitmq(url: str) -> bool:
    """Whether a broker's URL names a RabbitMQ."""
    return url.split(":", 1)[0] in {"amqp", "amqps", "pyamqp"}


def broker_of(url: str) -> Broker:
    """The queues and options for a broker's URL."""
    return _rabbitmq() if is_rabbitmq(url) else _redis()


@cache
def _redis() -> Broker:
    return Broker(
        tasks=Queue(TASKS, durable=True),
        drafts=Queue(channels.DRAFTS, durable=True),
        control=Queue(channels.CONTROL, durable=True),
        results=Queue(channels.RESULTS, exchange=EVENTS, routing_key="#", durable=True),
        requests=Queue(channels.REQUESTS, durable=True),
        shadow=Queue(channels.SHADOW, durable=True),
        dead=Queue(channels.DEAD, durable=True),
        is_rabbitmq=False,
        connection_options={},
        publish_options={},
    )


@cache
def _rabbitmq() -> Broker:
    """Replicated queues that count deliveries; nothing counts as sent before it is confirmed."""
    return Broker(
        tasks=_quorum(TASKS, DELIVERIES),
        drafts=_quorum(channels.DRAFTS, DELIVERIES),
        control=_quorum(channels.CONTROL, DELIVERIES),
        results=_quorum(channels.RESULTS, READINGS, exchange=EVENTS, routing_key="#"),
        requests=_quorum(channels.REQUESTS, READINGS),
        shadow=_quorum(channels.SHADOW, READINGS),
        dead=_quorum(channels.DEAD, DEAD_READINGS, keep=False),
        is_rabbitmq=True,
        connection_options={"confirm_publish": True},
        # An unroutable message is confirmed, too, unless it must be routed.
        publish_options={"mandatory": True, "confirm_timeout": CONFIRM_SECONDS},
    )


def _quorum(name: str, deliveries: int, *, keep: bool = True, **binding: Any) -> Queue:
    arguments: dict[str, Any] = {
        "x-queue-type": "quorum",
        "x-delivery-limit": deliveries,
        "x-consumer-timeout": HOLD_SECONDS * 1000,
    }
    if keep:
        arguments |= {
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": channels.DEAD,
            # Moved only once the other queue has it; needs the overflow rule beside it.
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        }
    return Queue(name, durable=True, queue_arguments=arguments, **binding)


def failures(connection: Connection) -> tuple[type[BaseException], ...]:
    """What publishing may raise when broker or way refuse a message, or are away."""
    return (
        KombuError,
        OSError,
        MessageNacked,
        *connection.channel_errors,
        *connection.connection_errors,
    )


def broker_url_of(redis_url: str) -> str:
    """The same Redis as kombu writes it: redis-py and kombu name unix sockets differently."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path, _, query = redis_url.removeprefix("unix://").partition("?")
    return f"redis+socket://{path}?virtual_host={query.removeprefix('db=') or '0'}"
