"""The way out to the broker, on kombu: results, reply queues, dead letters."""

from typing import Any

import redis
from kombu import Connection
from kombu.exceptions import KombuError
from kombu.pools import ProducerPool

from contracts.envelope import MEDIA_TYPE
from worker.adapters.queues import EVENTS, broker_of, failures
from worker.ports import OutgoingMessage, SendFailed

_POOL_SIZE = 10
_PASSING = (redis.exceptions.OutOfMemoryError, redis.exceptions.ReadOnlyError)
"""Refusals of a Redis broker that are about its state, not about the message."""
_RETRY = {"max_retries": 1, "interval_start": 0.1, "interval_step": 0.2}


class KombuSender:
    """Implements ``Sender``. Connections open when first needed, in the process that needs them."""

    def __init__(self, url: str, transport_options: dict[str, Any]) -> None:
        self._broker = broker_of(url)
        self._connection = Connection(url, transport_options=transport_options)
        self._producers: Any = ProducerPool(
            connections=self._connection.Pool(_POOL_SIZE), limit=_POOL_SIZE
        )

    def send(self, message: OutgoingMessage) -> None:
        headers = {"type": message.type, "run_id": message.run_id}
        if message.reply_to:
            own = (self._broker.requests, self._broker.shadow)
            declare = [queue for queue in own if queue.name == message.reply_to]
            self._publish(
                message.body, message.reply_to, headers, message.message_id, declare=declare
            )
            return
        self._publish(
            message.body,
            message.type,
            headers,
            message.message_id,
            exchange=EVENTS,
            declare=[self._broker.dead, self._broker.results],
        )

    def park(self, raw: bytes, reason: str, origin: str) -> None:
        headers = {"reason": reason, "origin": origin}
        dead = self._broker.dead
        self._publish(raw, dead.name, headers, None, declare=[dead])

    def _publish(
        self,
        body: bytes,
        routing_key: str,
        headers: dict[str, str],
        message_id: str | None,
        **options: Any,
    ) -> None:
        broken = failures(self._connection)
        try:
            with self._producers.acquire(block=True, timeout=5) as producer:
                try:
                    producer.publish(
                        body,
                        routing_key=routing_key,
                        headers=headers,
                        message_id=message_id,
                        content_type=MEDIA_TYPE,
                        content_encoding="binary",
                        delivery_mode=2,
                        retry=True,
                        retry_policy=_RETRY,
                        **self._broker.publish_options,
                        **options,
                    )
                except broken:
                    # RabbitMQ confirms a message that it returned, too, and later: on this
                    # connection the next message would take that confirmation for its own.
                    producer.connection.close()
                    raise
        except broken as error:
            # kombu hides what happened behind an error of its own.
            cause = (isinstance(error, KombuError) and error.__cause__) or error
            passing = isinstance(cause, _PASSING)
            final = isinstance(cause, self._connection.channel_errors) and not passing
            raise SendFailed(type(cause).__name__, final=final) from None
