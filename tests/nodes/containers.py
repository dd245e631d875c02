"""Local processes where pytest-celery expects Docker containers.

pytest-docker-tools asks little of a container: what it is called, how it is, what it
wrote, and to kill or restart it. A process can do all of that, so that pytest-celery's
own nodes and clusters run on any machine.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from celery import Celery
from pytest_celery import CeleryTestContainer, CeleryTestWorker, CeleryWorkerContainer

from worker.offline.processes import Process
from worker.offline.redis_server import RedisServer

HOST = "local"
"""The host part of every local worker's name."""


class _Local:
    """What every stand-in for a Docker container has. Subclasses say what runs in it."""

    id = HOST

    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self.name = name
        self.attrs: dict[str, Any] = {
            "Config": {"Env": [f"{key}={value}" for key, value in environment.items()]},
            "NetworkSettings": {"Networks": {}, "Ports": {}},
            "HostConfig": {"PortBindings": {}},
        }

    def reload(self) -> None:
        """Nothing is cached that could be read again."""

    def exec_run(self, command: str, **_: Any) -> tuple[int, bytes]:
        """Run a command on this machine; returns exit code and output."""
        done = subprocess.run(
            shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.returncode, done.stdout


class LocalProcess(_Local):
    """A program; ``launch`` starts it anew under the name that it is given."""

    def __init__(
        self, name: str, environment: dict[str, str], launch: Callable[[str], Process]
    ) -> None:
        super().__init__(name, environment)
        self._launch = launch
        self._starts = 0
        self._start()

    @property
    def status(self) -> str:
        return "running" if self.process.running else "exited"

    def logs(self) -> bytes:
        """What it wrote since it was last started."""
        return self.process.log.read_bytes()

    def kill(self, how: str | int | None = None) -> None:
        """Send a signal, SIGKILL to the whole group of the process, any other to it alone."""
        number = (
            signal.SIGKILL if how is None else signal.Signals[how] if isinstance(how, str) else how
        )
        if number == signal.SIGKILL:
            self.process.kill()
        else:
            os.kill(self.process.pid, number)

    def restart(self, timeout: float = 10) -> None:
        self.process.stop()
        self._start()

    def stop(self) -> None:
        self.process.stop()

    def _start(self) -> None:
        self._starts += 1
        self.process = self._launch(f"{self.name}-{self._starts}")


class LocalRedis(_Local):
    """A Redis server that is the test's own."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__("redis", {})
        self._server = server
        self.urls = {"url": server.broker_url, "host_url": server.broker_url}

    @property
    def status(self) -> str:
        with suppress(RuntimeError):
            return "running" if self._server.pid else "exited"
        return "exited"

    def logs(self) -> bytes:
        return b""

    def kill(self, how: str | int | None = None) -> None:
        self._server.kill()

    def restart(self, timeout: float = 10) -> None:
        self._server.restart()


class WorkerContainer(CeleryWorkerContainer):  # type: ignore[misc] # published without types
    """A worker process."""

    def teardown(self) -> None:
        self._container.stop()


class BrokerContainer(CeleryTestContainer):  # type: ignore[misc] # published without types
    """A broker's process."""

    @property
    def celeryconfig(self) -> dict[str, str]:
        return dict(self._container.urls)


class WorkerNode(CeleryTestWorker):  # type: ignore[misc] # published without types
    """A worker under the name that it has on this machine."""

    def __init__(self, process: LocalProcess, app: Celery | None = None) -> None:
        super().__init__(WorkerContainer(process), app)

    def hostname(self) -> str:
        return f"{self.name()}@{HOST}"

    def children(self) -> list[int]:
        """Process ids of the worker's pool."""
        stats = self.app.control.inspect([self.hostname()], timeout=5.0).stats() or {}
        return list(stats[self.hostname()]["pool"]["processes"])
