"""The stage's app with a model that gets stuck inside the worker when a query tells it to.

``stuck=asleep;calls=N.`` has the run's first N calls sleep far beyond every deadline: a
signal still reaches them. ``stuck=in C;calls=N.`` has them compute inside one call of a
C library: nothing reaches that but the end of the process.
"""

import hashlib
import os
import re
import time
from dataclasses import replace
from functools import cache
from typing import Any

import redis
from celery import Celery

from worker import consumer, revokes, tasks
from worker.app import build_stage, celery_settings, settings
from worker.ports import Model, ModelAnswer, ModelCall
from worker.stage.engine import Stage

_ORDER = re.compile(r"stuck=(?P<how>asleep|in C);calls=(?P<calls>\d)\.")
_FOR_EVER = 120.0
_ROUNDS = 1_000_000_000
"""Far more than a machine computes in the time of any test."""


class StuckModel:
    """The real model, but for the calls that are to get stuck."""

    def __init__(self, model: Model, counts: Any) -> None:
        self._model = model
        self._counts = counts

    def ask(self, call: ModelCall) -> ModelAnswer:
        order = _ORDER.search(call.user)
        if order is None or self._counts.incr(f"tests:{call.run_id}") > int(order["calls"]):
            return self._model.ask(call)
        if order["how"] == "asleep":
            time.sleep(_FOR_EVER)
        else:
            hashlib.pbkdf2_hmac("sha256", b"stuck", b"in C", _ROUNDS)
        raise AssertionError("a limit should have ended this call")


@cache
def _stage_of(pid: int) -> Stage:
    stage = build_stage(app, settings())
    counts = redis.Redis.from_url(settings().redis_url)
    return replace(stage, model=StuckModel(stage.model, counts))


def _stage() -> Stage:
    return _stage_of(os.getpid())


app = Celery("release_stage_that_gets_stuck", set_as_current=False)
app.add_defaults(celery_settings)
tasks.register(app, _stage)
consumer.install(app, _stage)
revokes.install(app, _stage)
