"""The stage's app with a model that can also fail inside the worker, for the failure matrix.

A query that holds ``fault=NAME;calls=N.`` has its first N calls hit. A refused
connection is a real one: the same adapter asks a port where nobody listens. The
other two block as code does that ignores every deadline of ours.
"""

import os
import re
import time
from dataclasses import replace
from functools import cache
from typing import Any

import redis
from billiard.exceptions import SoftTimeLimitExceeded
from celery import Celery

from worker import consumer, tasks
from worker.adapters.openai_model import OpenAIModel, OpenAISettings
from worker.app import build_stage, celery_settings, settings
from worker.ports import Model, ModelAnswer, ModelCall
from worker.stage.engine import Stage

NOBODY = "http://127.0.0.1:1/v1"
"""A reserved port that no ordinary program listens on."""

_ORDER = re.compile(r"fault=(?P<name>[a-z ]+);calls=(?P<calls>\d)\.")
_FOR_EVER = 60.0


class FailingModel:
    """The real model, but for the calls that are to fail."""

    def __init__(self, model: Model, counts: Any) -> None:
        self._model = model
        self._counts = counts
        self._refused = OpenAIModel(OpenAISettings(NOBODY, "none", "nobody"))

    def ask(self, call: ModelCall) -> ModelAnswer:
        order = _ORDER.search(call.user)
        if order is None or self._counts.incr(f"tests:{call.run_id}") > int(order["calls"]):
            return self._model.ask(call)
        match order["name"]:
            case "connect refused":
                return self._refused.ask(call)
            case "blocks until the soft limit":
                time.sleep(_FOR_EVER)
            case "blocks until the hard limit":
                _block()
        raise AssertionError("a limit should have ended this call")


def _block() -> None:
    until = time.monotonic() + _FOR_EVER
    while time.monotonic() < until:
        try:
            time.sleep(_FOR_EVER)
        except SoftTimeLimitExceeded:
            continue


@cache
def _stage_of(pid: int) -> Stage:
    stage = build_stage(app, settings())
    counts = redis.Redis.from_url(settings().redis_url)
    return replace(stage, model=FailingModel(stage.model, counts))


def _stage() -> Stage:
    return _stage_of(os.getpid())


app = Celery("release_stage_that_fails", set_as_current=False)
app.add_defaults(celery_settings)
tasks.register(app, _stage)
consumer.install(app, _stage)
