"""Looking at dead letters, and putting them back to where they came from."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kombu import Connection
from kombu.message import Message

from contracts import channels
from worker.adapters.queues import broker_of

_BACK_TO = frozenset({channels.DRAFTS, channels.CONTROL})
"""Queues that a letter may go back to; one that came another way goes to the drafts."""


@dataclass(frozen=True)
class DeadLetter:
    """A kept message: why it was refused, whence it came, and its size in bytes."""

    reason: str
    origin: str
    size: int


class DeadLetters:
    """The queue of dead letters of one broker."""

    def __init__(self, url: str) -> None:
        self._broker = broker_of(url)
        self._url = url

    def look(self, limit: int) -> tuple[DeadLetter, ...]:
        """The letters in the queue, which stay there."""
        with self._taken(limit) as (_, messages):
            letters = tuple(_letter(message) for message in messages)
            for message in reversed(messages):
                message.requeue()
        return letters

    def put_back(self, limit: int) -> tuple[DeadLetter, ...]:
        """Publish the letters to their queues again and take them out of this one.

        A letter leaves only after the broker has its copy, so one may be doubled and
        none is lost; a repeat is dropped at admission.
        """
        with self._taken(limit) as (connection, messages):
            for message in messages:
                letter = _letter(message)
                connection.Producer().publish(
                    message.body,
                    routing_key=letter.origin if letter.origin in _BACK_TO else channels.DRAFTS,
                    content_type=message.content_type,
                    content_encoding="binary",
                    delivery_mode=2,
                    declare=[self._broker.drafts, self._broker.control],
                    **self._broker.publish_options,
                )
                message.ack()
            return tuple(_letter(message) for message in messages)

    @contextmanager
    def _taken(self, limit: int) -> Iterator[tuple[Connection, list[Message]]]:
        options = self._broker.connection_options
        with Connection(self._url, transport_options=options) as connection:
            channel: Any = connection.channel()
            queue = self._broker.dead(channel)
            queue.declare()
            messages: list[Message] = []
            while len(messages) < limit and (message := queue.get(accept=None)) is not None:
                messages.append(message)
            yield connection, messages


def _letter(message: Message) -> DeadLetter:
    headers: dict[str, Any] = message.headers or {}
    counted = "DELIVERED_TOO_OFTEN" if "x-death" in headers else "UNKNOWN"
    return DeadLetter(
        reason=str(headers.get("reason", counted)),
        origin=str(headers.get("origin", "")),
        size=len(message.body or b""),
    )
