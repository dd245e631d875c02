"""The composition root: settings, adapters, stage, Celery app.

Importing this module connects to nothing and reads no setting; both happen when
the app is first configured, and clients are made in the process that uses them.
"""

import logging
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import redis
from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_ready
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from worker import consumer, revokes, tasks
from worker.adapters.cancellations import redis_cancellations
from worker.adapters.keys import Keys
from worker.adapters.kombu_sender import KombuSender
from worker.adapters.openai_model import OpenAIModel, OpenAISettings
from worker.adapters.queues import TASKS, broker_of
from worker.adapters.redis_promise import UnsafeStore, examine
from worker.adapters.redis_records import (
    RedisInbox,
    RedisInvocations,
    RedisOutbox,
    RedisRecords,
)
from worker.guards.tools import AnyProjection
from worker.guards.tools.registered import WrongTool, all_tools
from worker.settings import Settings, WrongSettings, read_settings
from worker.stage.engine import Stage

STORE_TIMEOUT = 10.0
"""Seconds that Redis may take for one command; a frozen one must not freeze a worker."""

log = logging.getLogger("release_stage")


@cache
def settings() -> Settings:
    """This process's settings, read once; raises WrongSettings."""
    return read_settings()


def broker_options(chosen: Settings) -> dict[str, Any]:
    """Kombu's transport options, such that they fit the policy.

    A Redis broker gives back what a dead worker held when kombu looks for it, interval by
    throttle seconds after the visibility timeout; with kombu's own values that is 90 s more.
    """
    broker = broker_of(chosen.broker())
    if broker.is_rabbitmq:
        return broker.connection_options
    return {
        "visibility_timeout": chosen.visibility_timeout,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "max_connections": chosen.redis_connections,
    }


def celery_settings() -> dict[str, Any]:
    """Celery's configuration, as the promise of one ending per run needs it."""
    try:
        chosen = settings()
    except WrongSettings as error:
        # Celery's own command line asks for these; a person should read a sentence.
        raise SystemExit(f"release-stage: {error}") from None
    return {
        "broker_url": chosen.broker(),
        "broker_transport_options": broker_options(chosen),
        "broker_connection_retry_on_startup": True,
        "task_default_queue": TASKS,
        "task_queues": [broker_of(chosen.broker()).tasks],
        "worker_consumer": "worker.consumer:StageConsumer",
        "worker_detect_quorum_queues": True,
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_acks_on_timeout": True,
        # One errback, acknowledged: redelivery on Redis has no bound, claims and reconciler have.
        "task_reject_on_worker_lost": False,
        # A repeated step must hand on again.
        "worker_deduplicate_successful_tasks": False,
        # A step goes on without its connection: the claim holds off its repeat, while a
        # cancelled one would have used up an attempt and waited for its lease.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_prefetch_multiplier": 1,
        # Without it a stop that is mapped to SIGQUIT cuts every running call at once.
        "worker_soft_shutdown_timeout": chosen.stop_timeout,
        "worker_send_task_events": True,
        "accept_content": ["json"],
        "task_serializer": "json",
        "worker_hijack_root_logger": True,
    }


@cache
def tools() -> Mapping[str, AnyProjection]:
    """The tools that can be cited, those of installed packages among them.

    Raises SystemExit with a sentence about a package's tool that cannot be used.
    """
    try:
        return all_tools()
    except WrongTool as error:
        raise SystemExit(f"release-stage: {error}") from None


def build_stage(celery: Celery, chosen: Settings) -> Stage:
    """Build the stage with real adapters. Nothing connects before it is used."""
    client = redis.Redis.from_url(
        chosen.redis_url,
        max_connections=chosen.redis_connections,
        socket_timeout=STORE_TIMEOUT,
        # Any command may be sent twice: a commit that was applied is stale the second time.
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 2),
    )
    keys = Keys(chosen.key_prefix)
    return Stage(
        records=RedisRecords(client, keys, chosen.retention),
        outbox=RedisOutbox(client, keys),
        inbox=RedisInbox(client, keys),
        invocations=RedisInvocations(client, keys),
        model=OpenAIModel(
            OpenAISettings(
                base_url=chosen.openai_base_url,
                api_key=chosen.openai_api_key.get_secret_value() or "none",
                model=chosen.model,
                response_format=chosen.response_format,
                temperature=None if chosen.reasoning_model else 0.0,
                token_limit_field=(
                    "max_completion_tokens" if chosen.reasoning_model else "max_tokens"
                ),
            ),
            cancellations=lambda: redis_cancellations(
                chosen.redis_url, keys.closed_calls, keys.closed_runs
            ),
        ),
        sender=KombuSender(chosen.broker(), broker_options(chosen)),
        dispatcher=tasks.CeleryDispatcher(celery, chosen.policy()),
        tools=tools(),
        policy=chosen.policy(),
        limits=chosen.limits(),
        locale=chosen.locale,
        shadow=chosen.shadow,
    )


@cache
def _stage_of(pid: int) -> Stage:
    """One stage per process, never shared over a fork."""
    return build_stage(app, settings())


def stage() -> Stage:
    return _stage_of(os.getpid())


app = Celery("release_stage", set_as_current=False)
app.add_defaults(celery_settings)
tasks.register(app, stage)
consumer.install(app, stage)
revokes.install(app, stage)


def examine_store() -> tuple[str, ...]:
    """Refuse a Redis that evicts; returns which parts of the promise this one cannot keep.

    Raises SystemExit with a sentence.
    """
    client = redis.Redis.from_url(settings().redis_url)
    try:
        return examine(client)
    except UnsafeStore as error:
        raise SystemExit(f"release-stage: {error}") from None
    except redis.RedisError as error:
        raise SystemExit(
            f"release-stage: Redis at REDIS_URL does not answer ({type(error).__name__})"
        ) from None
    finally:
        client.close()


@worker_init.connect(weak=False)
def _before_work(**_: Any) -> None:
    tools()
    examine_store()


@worker_ready.connect(weak=False)
def _when_ready(**_: Any) -> None:
    for shortfall in examine_store():
        log.warning(shortfall)


@worker_process_init.connect(weak=False)
def _in_each_process(**_: Any) -> None:
    """Listen for cancelled runs before the first call is made."""
    model = stage().model
    if isinstance(model, OpenAIModel):
        model.start()
