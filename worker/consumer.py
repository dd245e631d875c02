"""The plain queues: CloudEvents from any language, taken into the stage by the worker itself.

The callback runs in the worker's main process, so it only admits: it checks the
envelope, stores the raw bytes, enqueues the first step and acknowledges.
"""

import json
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from celery import Celery, bootsteps
from celery.worker.consumer import Consumer as WorkerConsumer
from kombu import Consumer
from kombu.message import Message

from worker.adapters.plain_redis import accept_plain, keep_whole
from worker.adapters.queues import broker_of
from worker.ports import SendFailed, StoreUnavailable
from worker.stage.admit import admit
from worker.stage.engine import Stage
from worker.task_messages import is_task, refuse_compression

log = logging.getLogger("release_stage")

PREFETCH = 16
"""Messages a worker may hold of each plain queue."""
NOT_A_TASK = "NOT_A_TASK"
PAUSE = 1.0
"""Seconds to wait before a message is tried again when the store or the broker is away."""


class StageConsumer(WorkerConsumer):
    """Celery's consumer without its delayed delivery, and without its words about strays.

    On quorum queues Celery would declare two dozen queues for tasks with a countdown.
    The stage sends none: what is due later is sent later, by the relay. A message on
    the task queue that is no task of ours Celery would log in full and drop; it may
    hold a draft, so it is kept instead, with a code.
    """

    class Blueprint(WorkerConsumer.Blueprint):
        default_steps = tuple(
            step
            for step in WorkerConsumer.Blueprint.default_steps
            if not step.endswith(":DelayedDelivery")
        )

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Message], None]:
        handle: Callable[[Message], None] = super().create_task_handler(*args, **kwargs)
        refuse_compression()

        def on_message(message: Message) -> None:
            if is_task(message):
                handle(message)
            else:
                self._keep(message)

        return on_message

    def on_unknown_message(self, body: object, message: Message) -> None:
        self._keep(message)

    def on_unknown_task(self, body: object, message: Message, exc: Exception) -> None:
        self._keep(message)

    def on_invalid_task(self, body: object, message: Message, exc: Exception) -> None:
        self._keep(message)

    def on_decode_error(self, message: Message, exc: Exception) -> None:
        self._keep(message)

    def _keep(self, message: Message) -> None:
        log.error("message kept as a dead letter error=%s", NOT_A_TASK)
        try:
            self.app.stage().sender.park(_raw(message), NOT_A_TASK, "tasks")
        except SendFailed as error:
            # Unacknowledged, it comes again.
            log.warning("not kept yet error=%s", error)
        else:
            message.ack()


def install(app: Celery, stage: Callable[[], Stage]) -> None:
    """Make every worker of this app consume the plain queues."""
    app.stage = stage

    class PlainQueues(bootsteps.ConsumerStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def get_consumers(self, channel: Any) -> list[Consumer]:
            accept_plain(channel)
            broker = broker_of(app.conf.broker_url)
            broker.dead(channel).declare()  # where the others put what they cannot deliver
            consumers = []
            for queue in (broker.control, broker.drafts):
                consumer = Consumer(
                    channel,
                    queues=[queue],
                    on_message=self.on_message,
                    # Its bytes are judged as they are, and refused.
                    on_decode_error=lambda message, _: self.on_message(message),
                    accept=None,
                    auto_declare=True,
                )
                consumer.qos(prefetch_count=PREFETCH)
                consumers.append(consumer)
            return consumers

        def start(self, c: Any) -> None:
            self.timer = c.timer
            keep_whole(c.task_consumer.channel)
            # Those of a lost connection are the broker's again.
            self.held: deque[Message] = deque()
            super().start(c)

        def on_message(self, message: Message) -> None:
            """Take a message in, or hold it behind those that already wait for the store.

            A held message stays unacknowledged, so the prefetch ends consumption. Giving it
            back would count as a delivery, and RabbitMQ bounds those.
            """
            self.held.append(message)
            if len(self.held) == 1:
                self.take(self.held)

        def take(self, held: deque[Message]) -> None:
            """Take in what is held, in order; at the first that cannot be, wait again."""
            while held and held is self.held:
                try:
                    self.settle(held[0])
                except (StoreUnavailable, SendFailed) as error:
                    log.warning("consumption pauses error=%s", type(error).__name__)
                    self.timer.call_after(PAUSE, self.take, (held,))
                    return
                held.popleft().ack()

        def settle(self, message: Message) -> None:
            """Admit a message or keep it as a dead letter; afterwards it can be acknowledged."""
            try:
                admit(stage(), _raw(message), message.delivery_info.get("routing_key") or "")
            except (StoreUnavailable, SendFailed):
                raise
            except Exception as error:  # noqa: BLE001 - it would kill the worker
                log.error("message kept as a dead letter error=%s", type(error).__name__)
                stage().sender.park(_raw(message), type(error).__name__, "consumer")

    app.steps["consumer"].add(PlainQueues)


def _raw(message: Message) -> bytes:
    body = message.body
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    text = body if isinstance(body, str) else json.dumps(body)
    return text.encode("utf-8", "surrogatepass")
