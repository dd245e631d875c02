"""The stage's app with a point before and after everything that leaves a process.

It is composed as ``worker.app`` composes it, from the same parts. The points are put
around the ports, around Celery's publishing and around every acknowledgement.
"""

import json
import os
from functools import cache
from typing import Any

import redis
from celery import Celery
from celery.signals import after_task_publish, before_task_publish, worker_process_init
from kombu.message import Message

from tests.sweep.points import Points, Told, around
from worker import consumer, revokes, tasks
from worker.adapters.keys import Keys
from worker.app import build_stage, celery_settings, settings
from worker.ports import ModelCall, OutgoingMessage
from worker.run.state import Run
from worker.stage import recover
from worker.stage.engine import Stage

_role = "worker"


def enter(role: str) -> None:
    """Say what this process is: ``worker`` (the main process), ``child`` or ``relay``."""
    global _role  # noqa: PLW0603 - a process is one thing, and a fork makes another of it
    _role = role


@cache
def _points_of(pid: int) -> Points:
    return Points(redis.Redis.from_url(settings().redis_url), _role)


def at(side: str, told: Told) -> None:
    """Pass a point as the process that this is."""
    _points_of(os.getpid()).at(side, told)


@cache
def _stage_of(pid: int) -> Stage:
    stage = build_stage(app, settings())
    client = redis.Redis.from_url(settings().redis_url)
    keys = Keys(settings().key_prefix)

    def taken(message_id: str) -> Told:
        body: Any = client.get(keys.inbox_entry(message_id))
        return None if body is None else (json.loads(body)["subject"], "inbox removal")

    def removal(entry_id: str) -> Told:
        found: Any = client.xrange(keys.outbox, entry_id, entry_id)
        return (found[0][1][b"run_id"].decode(), "outbox removal") if found else None

    around(at, stage.records, "commit", _commit)
    around(at, stage.outbox, "sent", removal)
    around(at, stage.inbox, "taken", taken)
    around(at, stage.model, "ask", _ask)
    around(at, stage.sender, "send", _send)
    return stage


def stage() -> Stage:
    return _stage_of(os.getpid())


def _commit(run: Run, expected: int, **_: Any) -> Told:
    if run.ending is not None:
        return run.run_id, f"commit {run.ending}"
    if not run.attempts:
        return run.run_id, "commit opened"
    key, attempt = list(run.attempts.items())[-1]
    held = "claimed" if attempt.lease_until is not None else "let go"
    return run.run_id, f"commit {key} {attempt.outcome or held}"


def _ask(call: ModelCall) -> Told:
    return call.run_id, f"ask {call.answer_name}"


def _send(message: OutgoingMessage) -> Told:
    return message.run_id, f"send to {message.reply_to or 'results'}"


def _acknowledgement(message: Message, *_: Any, **__: Any) -> Told:
    """Read whose message it is; a Celery message has its arguments in its body."""
    body = json.loads(message.body)
    task = message.headers.get("task")
    if task is None:
        return (body["subject"], f"ack {body['type']}") if "specversion" in body else None
    return _of_arguments(body, f"ack {task}")


def _of_arguments(body: Any, what: str) -> Told:
    run_id = body[1].get("run_id")
    return None if run_id is None else (run_id, what)


def _before_publish(sender: Any, body: Any, **_: Any) -> None:
    at("before", _of_arguments(body, f"enqueue {sender}"))


def _after_publish(sender: Any, body: Any, **_: Any) -> None:
    at("after", _of_arguments(body, f"enqueue {sender}"))


def _in_each_child(**_: Any) -> None:
    enter("child")


def quick_settings() -> dict[str, Any]:
    """Celery's settings with the waits that are no setting of ours scaled down too."""
    chosen = celery_settings()
    if "unacked_restore_interval" in chosen["broker_transport_options"]:
        chosen["broker_transport_options"]["unacked_restore_interval"] = 1
    return {**chosen, "worker_lost_wait": 0.5}


app = Celery("release_stage_swept", set_as_current=False)
app.add_defaults(quick_settings)
tasks.register(app, stage)
consumer.install(app, stage)
revokes.install(app, stage)
before_task_publish.connect(_before_publish, weak=False)
after_task_publish.connect(_after_publish, weak=False)
worker_process_init.connect(_in_each_child, weak=False)
around(at, Message, "ack", _acknowledgement)
recover.OUTBOX_PATIENCE = 0.5
recover.INBOX_PATIENCE = 3.0
