"""The relay: sends what was released and not sent, and looks after runs that stand still.

Any number of them may run; one is active, by a lease. It holds nothing in
memory, so killing it at any point loses nothing.
"""

import logging
from collections.abc import Callable
from threading import Event

import redis

from worker.adapters.redis_lease import RedisLease
from worker.stage.engine import Stage
from worker.stage.recover import reconcile, sweep_inbox, sweep_outbox

log = logging.getLogger("release_stage")

LEASE = 10.0
"""Seconds without a sign of life after which another relay takes over."""

DUTIES: tuple[tuple[str, Callable[[Stage], int]], ...] = (
    ("outbox", sweep_outbox),
    ("reconcile", reconcile),
    ("inbox", sweep_inbox),
)


def run_relay(stage: Stage, lease: RedisLease, stop: Event, interval: float) -> None:
    """Work until ``stop`` is set, looking every ``interval`` seconds."""
    active: bool | None = None  # the first look is told, too: a silent relay looks like none
    while not stop.wait(interval):
        try:
            held = lease.hold()
        except redis.RedisError as error:
            log.warning("relay waits for the store error=%s", type(error).__name__)
            continue
        if held != active:
            active = held
            log.info("relay %s", "active" if active else "standing by")
        if active:
            _round(stage)
    if active:
        try:
            lease.release()
        except redis.RedisError as error:
            log.warning("relay lease left to expire error=%s", type(error).__name__)


def _round(stage: Stage) -> None:
    for name, duty in DUTIES:
        try:
            duty(stage)
        except Exception as error:  # noqa: BLE001 - one duty that fails must not stop the others
            log.error("relay duty failed duty=%s error=%s", name, type(error).__name__)
