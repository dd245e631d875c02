"""How the agents speak with the house: by every way in, and until they are heard."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar
from uuid import uuid4

import redis
from amqp.exceptions import AMQPError
from celery.exceptions import CeleryError
from kombu import Connection, Queue
from kombu.exceptions import KombuError

from contracts.envelope import MEDIA_TYPE, Incoming, wrap
from contracts.messages import DraftReady, ExecutorOutputReady
from contracts.strict_json import parse
from tests.chaos.house import House
from tests.chaos.plan import Way
from worker.client import StageClient
from worker.ports import SendFailed, StoreUnavailable
from worker.tasks import SUBMIT

AWAY = (
    redis.RedisError,
    KombuError,
    AMQPError,
    CeleryError,
    OSError,
    StoreUnavailable,
    SendFailed,
)
"""What a client sees of a store or broker that is away."""
PATIENCE = 120.0
"""Seconds after which whoever was not heard gives up."""
AGAIN = 0.2
"""Seconds before a producer tries again what was not taken."""

T = TypeVar("T")


class Silenced(Exception):
    """The house never came back; what was to be said could not be."""


class Producer:
    """Speaks for all agents. Safe from any thread, with a client for each."""

    def __init__(self, house: House) -> None:
        self.retries = 0
        self._house = house

    def submit(
        self, message: DraftReady | ExecutorOutputReady, way: Way, client: StageClient
    ) -> None:
        """Submit once; raises one of ``AWAY`` if it was not taken."""
        match way:
            case Way.PLAIN:
                self.publish(message, self._house.broker.drafts)
            case Way.TASK:
                self._send_task(message)
            case Way.CLIENT if isinstance(message, DraftReady):
                client.submit_draft(message)
            case Way.CLIENT:
                client.submit_claims(message)

    def publish(self, message: Incoming, queue: Queue) -> None:
        """Publish as any producer would, without the inbox."""
        broker = self._house.broker
        with Connection(
            self._house.broker_url, transport_options=broker.connection_options
        ) as connection:
            connection.Producer().publish(
                _wrapped(message),
                routing_key=queue.name,
                content_type=MEDIA_TYPE,
                content_encoding="binary",
                delivery_mode=2,
                declare=[broker.dead, queue],
                **broker.publish_options,
            )

    def _send_task(self, message: Incoming) -> None:
        with self._house.celery.producer_or_acquire() as producer:
            try:
                self._house.celery.send_task(
                    SUBMIT,
                    args=[parse(_wrapped(message))],
                    producer=producer,
                    retry=False,
                    **self._house.broker.publish_options,
                )
            except AWAY:
                # Its confirmation may still come, and must not be taken for another's.
                producer.connection.close()
                raise

    def insist(self, speak: Callable[[], T]) -> T:
        """Try until it is taken, as a producer does that must not lose what it says."""
        gives_up = time.monotonic() + PATIENCE
        while True:
            try:
                return speak()
            except AWAY as error:
                self.retries += 1
                if time.monotonic() > gives_up:
                    raise Silenced(type(error).__name__) from error
            time.sleep(AGAIN)


def _wrapped(message: Incoming) -> bytes:
    return wrap(message, message_id=str(uuid4()), time=datetime.now(UTC))
