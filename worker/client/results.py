"""Reading the results: each message reaches a handler once per consumer name, as good as can be."""

from collections.abc import Callable
from typing import Any

import redis
from kombu import Connection, Consumer, Queue
from kombu.message import Message

from contracts.envelope import Envelope
from worker.adapters.keys import Keys
from worker.adapters.queues import broker_of, broker_url_of

WEEK = 604_800
POLL = 0.1
"""Seconds that one question to a Redis broker waits; closing waits for the open one."""


class ResultConsumer:
    """Consumes ``release.results``, or another queue (``reply_to``), and drops repeats.

    The wire is at least once. A message is marked as seen after its handler
    returned, so a handler that dies sees it again, and a repeat of a marked one is
    dropped. ``name`` separates consumers that each want every message.
    """

    def __init__(
        self,
        redis_url: str,
        broker_url: str | None = None,
        *,
        name: str,
        reply_to: str | None = None,
        prefix: str = "release:",
        remember: int = WEEK,
    ) -> None:
        self._redis: Any = redis.Redis.from_url(redis_url)
        url = broker_url or broker_url_of(redis_url)
        broker = broker_of(url)
        options = broker.connection_options or {"polling_interval": POLL}
        self._connection = Connection(url, transport_options=options)
        shared = {None: broker.results, broker.requests.name: broker.requests}
        self._queue = shared.get(reply_to) or Queue(reply_to, durable=True)
        self._name = name
        self._keys = Keys(prefix)
        self._remember = remember

    def consume(self, handler: Callable[[Envelope], None], *, timeout: float) -> int:
        """Handle messages until none came for ``timeout`` seconds; returns how many were handled.

        What the handler raises ends the call and leaves the message in the queue. A broken
        connection is opened again once; a broker that is away raises kombu's or Redis's
        errors, and the next call connects anew.
        """
        handled = 0
        handling = False

        def on_message(message: Message) -> None:
            nonlocal handled, handling
            handling = True
            handled += self._handle(message, handler)
            handling = False
            message.ack()

        for last in (False, True):
            try:
                self._drain(on_message, timeout)
                break
            except self._connection.connection_errors:
                # The handler may have a connection of its own that broke.
                if last or handling:
                    raise
                self._connection.close()
        return handled

    def _handle(self, message: Message, handler: Callable[[Envelope], None]) -> bool:
        """Show a message to the handler unless this consumer has seen it."""
        envelope = Envelope.model_validate_json(_body(message))
        seen = self._keys.seen(self._name, envelope.id)
        if self._redis.exists(seen):
            return False
        try:
            handler(envelope)
        except BaseException:
            message.requeue()
            raise
        self._redis.set(seen, b"1", ex=self._remember)
        return True

    def _drain(self, on_message: Callable[[Message], None], timeout: float) -> None:
        """Take messages until none came for ``timeout`` seconds."""
        self._connection.connect()
        # Closing the channel puts back what the broker gave to a question still open;
        # otherwise a message could be stuck here until the next call.
        with (
            self._connection.channel() as channel,
            Consumer(
                channel,
                queues=[self._queue],
                on_message=on_message,
                accept=None,
                prefetch_count=1,
            ),
        ):
            try:
                while True:
                    self._connection.drain_events(timeout=timeout)
            except TimeoutError:
                return

    def close(self) -> None:
        self._connection.close()
        self._redis.close()


def _body(message: Message) -> bytes:
    body = message.body
    return body.encode() if isinstance(body, str) else bytes(body)
