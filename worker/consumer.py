"""The plain queues: CloudEvents from any language, taken into the stage by the worker itself.

The callback runs in the worker's main process, so it only admits: it checks the
envelope, stores the raw bytes, enqueues the first step and acknowledges.
"""

import logging
from collections.abc import Callable
from typing import Any

from celery import Celery, bootsteps
from kombu import Consumer
from kombu.message import Message

from worker.adapters.plain_redis import accept_plain
from worker.adapters.queues import CONTROL, DRAFTS
from worker.ports import SendFailed, StoreUnavailable
from worker.stage.admit import admit
from worker.stage.engine import Stage

log = logging.getLogger("release_stage")

PREFETCH = 16
PAUSE = 1.0
"""Seconds to wait before a message is tried again when the store or the broker is away."""


def install(app: Celery, stage: Callable[[], Stage]) -> None:
    """Make every worker of this app consume the plain queues."""

    class PlainQueues(bootsteps.ConsumerStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def get_consumers(self, channel: Any) -> list[Consumer]:
            accept_plain(channel)
            self.timer = self._consumer.timer
            consumers = []
            for queue in (CONTROL, DRAFTS):
                consumer = Consumer(
                    channel,
                    queues=[queue],
                    on_message=self.on_message,
                    accept=None,
                    auto_declare=True,
                )
                consumer.qos(prefetch_count=PREFETCH)
                consumers.append(consumer)
            return consumers

        def start(self, c: Any) -> None:
            self._consumer = c
            super().start(c)

        def on_message(self, message: Message) -> None:
            try:
                admit(stage(), _raw(message), message.delivery_info.get("routing_key") or "")
            except (StoreUnavailable, SendFailed) as error:
                self.again_later(message, error)
            except Exception as error:  # noqa: BLE001 - it would kill the worker
                self.keep(message, error)
            else:
                message.ack()

        def again_later(self, message: Message, error: Exception) -> None:
            log.warning("consumption pauses error=%s", type(error).__name__)
            self.timer.call_after(PAUSE, message.requeue)

        def keep(self, message: Message, error: Exception) -> None:
            log.error("message kept as a dead letter error=%s", type(error).__name__)
            try:
                stage().sender.park(_raw(message), type(error).__name__, "consumer")
            except SendFailed as failed:
                self.again_later(message, failed)
            else:
                message.ack()

    app.steps["consumer"].add(PlainQueues)


def _raw(message: Message) -> bytes:
    body = message.body
    return body.encode() if isinstance(body, str) else bytes(body or b"")
