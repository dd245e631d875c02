"""What an agent team calls: submit a draft, cancel a run. Needs no Celery and no openai."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import redis
from kombu import Connection, Queue

from contracts.envelope import MEDIA_TYPE, Incoming, wrap
from contracts.messages import CancelRun, DraftReady, ExecutorOutputReady
from contracts.strict_json import parse
from worker.adapters.keys import Keys
from worker.adapters.queues import broker_of, broker_url_of, failures

MOST_BYTES = 1_048_576
"""What a worker takes by default; see RELEASE_MESSAGE_BYTES."""


class TooLarge(ValueError):
    """The message is over the limit and would be refused. Nothing was sent."""


class StageClient:
    """A connection to the stage's Redis and broker.

    A draft counts as submitted once it is in the inbox: the broker brings it at
    once, and if the broker loses it the relay finds it there.
    """

    def __init__(
        self,
        redis_url: str,
        broker_url: str | None = None,
        *,
        prefix: str = "release:",
        source: str = "/agents",
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._redis: Any = redis.Redis.from_url(redis_url)
        url = broker_url or broker_url_of(redis_url)
        self._broker = broker_of(url)
        self._connection = Connection(url, transport_options=self._broker.connection_options)
        self._keys = Keys(prefix)
        self._source = source
        self._most_bytes = most_bytes

    def submit_draft(self, draft: DraftReady, *, traceparent: str | None = None) -> str:
        """Submit a draft; returns the message's id.

        Raises TooLarge, StrictJsonError for a draft that no worker would take (nested too
        deep), or redis.RedisError when the inbox could not be written. A broker that is
        away raises nothing: the relay admits the draft from the inbox.
        """
        return self._submit(draft, traceparent)

    def submit_claims(self, output: ExecutorOutputReady, *, traceparent: str | None = None) -> str:
        """Submit structured claims, or the answer to a request for evidence; as submit_draft."""
        return self._submit(output, traceparent)

    def _submit(self, message: Incoming, traceparent: str | None) -> str:
        id_, body = self._wrap(message, traceparent)
        seconds, micros = self._redis.time()  # the sweep counts by the same clock
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(self._keys.inbox_entry(id_), body)
            pipe.zadd(self._keys.inbox, {id_: seconds + micros / 1e6})
            pipe.execute()
        try:
            self._publish(body, self._broker.drafts, id_)
        except failures(self._connection):
            pass  # the relay finds it
        return id_

    def cancel_run(self, run_id: str) -> str:
        """Ask for a run to end without a release; returns the message's id.

        Works before the draft has come, too. Raises when the broker is away.
        """
        id_, body = self._wrap(CancelRun(run_id=run_id), None)
        self._publish(body, self._broker.control, id_)
        return id_

    def close(self) -> None:
        self._connection.close()
        self._redis.close()

    def _wrap(self, message: Incoming, traceparent: str | None) -> tuple[str, bytes]:
        id_ = str(uuid4())
        body = wrap(
            message,
            message_id=id_,
            time=datetime.now(UTC),
            source=self._source,
            traceparent=traceparent,
        )
        if len(body) > self._most_bytes:
            raise TooLarge(f"{len(body)} bytes, at most {self._most_bytes} are taken")
        parse(body)
        return id_, body

    def _publish(self, body: bytes, queue: Queue, id_: str) -> None:
        try:
            with self._connection.Producer() as producer:
                producer.publish(
                    body,
                    routing_key=queue.name,
                    message_id=id_,
                    content_type=MEDIA_TYPE,
                    content_encoding="binary",
                    delivery_mode=2,
                    declare=[self._broker.dead, queue],
                    retry=True,
                    retry_policy={"max_retries": 2, "interval_start": 0.1},
                    **self._broker.publish_options,
                )
        except failures(self._connection):
            # A confirmation that is still to come must not be taken for the next message's.
            self._connection.close()
            raise
