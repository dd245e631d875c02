"""Real processes of the stage on this machine: Redis, judge, workers, relay, Flower.

For the demo, the bench and the tests. Everything listens on loopback or a
private socket, logs into one folder, and is stopped in the order that loses
nothing: workers and relay first, Redis last.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_SECONDS = 20.0
READY_SECONDS = 30.0


class NotReady(RuntimeError):
    """A process ended or stayed silent; the text holds the end of its log."""


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Poll until the condition holds; raises NotReady after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise NotReady(f"waited {seconds:g} s for {what}")
        time.sleep(0.02)


class Process:
    """One child process with its log; a context manager that stops it in good order."""

    def __init__(
        self, name: str, command: list[str], environment: Mapping[str, str], logs: Path
    ) -> None:
        self.name = name
        self.log = logs / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def text(self) -> str:
        """The log so far."""
        return self.log.read_text("utf-8", errors="replace")

    def ready(self, sign: str, seconds: float = READY_SECONDS) -> Self:
        """Wait for a line in the log; raises NotReady with the end of the log.

        One that does not get ready is killed: nobody holds it yet who could stop it, and
        it does not hear the Ctrl-C that may have ended the waiting.
        """
        try:
            wait_until(lambda: sign in self.text() or not self.running, seconds, self.name)
        except NotReady:
            self.kill()
            raise NotReady(f"{self.name} is not ready:\n{self.text()[-2000:]}") from None
        except BaseException:
            self.kill()
            raise
        if sign not in self.text():
            raise NotReady(f"{self.name} ended:\n{self.text()[-2000:]}")
        return self

    def stop(self) -> None:
        """Ask it to end, and insist after a while."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it and its children as a crash would."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def start_worker(
    name: str,
    environment: Mapping[str, str],
    logs: Path,
    *,
    concurrency: int = 2,
    pool: str = "prefork",
) -> Process:
    """Start a Celery worker of the stage and wait until it consumes."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "worker.app", "worker"),
        *("--loglevel", "INFO", "--pool", pool, "--concurrency", str(concurrency)),
        *("--hostname", f"{name}@local", "--task-events"),
    ]
    return Process(name, command, environment, logs).ready(f"{name}@local ready.")


def start_relay(name: str, environment: Mapping[str, str], logs: Path) -> Process:
    """Start a relay and wait until it works or stands by."""
    command = [sys.executable, "-m", "worker.cli", "relay"]
    return Process(name, command, environment, logs).ready("relay ")
