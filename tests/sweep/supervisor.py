"""Runs a swept worker and relay, and starts each again when it is gone.

``python -m tests.sweep.supervisor``; as systemd or a container would, it ends what is
left of a process's group before it starts the next one. The code is imported once and
each process is a fork, so that a restart costs a moment and not a second of imports.
"""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event

import redis

from tests.sweep import app as swept
from worker.adapters.keys import Keys
from worker.adapters.redis_lease import RedisLease
from worker.app import settings
from worker.relay import run_relay

LEASE = 1.0
"""Seconds until another relay may follow a killed one."""
LOOK = 0.02


def _worker() -> None:
    swept.enter("worker")
    swept.app.worker_main(
        [
            *("worker", "--pool", "prefork", "--concurrency", "2", "--loglevel", "INFO"),
            *("--without-mingle", "--without-gossip"),  # a second at each start
        ]
    )


def _relay() -> None:
    swept.enter("relay")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    client = redis.Redis.from_url(settings().redis_url)
    holder = f"{socket.gethostname()}:{os.getpid()}"
    lease = RedisLease(client, Keys(settings().key_prefix).relay_lease, holder, LEASE)
    run_relay(swept.stage(), lease, Event(), settings().relay_interval)


ROLES: dict[str, Callable[[], None]] = {"worker": _worker, "relay": _relay}


class Supervisor:
    """Keeps one process of each role alive until it is told to stop, or is left alone.

    What it runs is made for dying, so that it stops them without ceremony.
    """

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._stopping = False
        self._roles: dict[int, str] = {}

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for role in ROLES:
            self._start(role)
        while self._roles:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in self._roles:
                self._gone(pid, status)
            else:
                time.sleep(LOOK)
            if os.getppid() != self._parent:
                for left in self._roles:
                    _kill_group(left)
                return

    def _start(self, role: str) -> None:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            try:
                ROLES[role]()
            except BaseException as error:  # noqa: BLE001 - a fork must never return into the loop
                print(f"supervisor: {role} ended {error!r}", file=sys.stderr, flush=True)
            sys.stdout.flush()
            os._exit(0)
        self._roles[pid] = role

    def _gone(self, pid: int, status: int) -> None:
        role = self._roles.pop(pid)
        _kill_group(pid)
        if not self._stopping:
            print(f"supervisor: {role} is gone status={status}, starting it again", flush=True)
            self._start(role)

    def _stop(self, *_: object) -> None:
        self._stopping = True
        for pid in self._roles:
            _kill_group(pid)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    Supervisor().run()
