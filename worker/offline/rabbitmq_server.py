"""A private RabbitMQ for tests and the chaos run: one node on loopback, never shared.

It has its own name server (epmd), ports, home and data, so that neither another node
nor a system's own RabbitMQ is touched. Both processes are children that die with
their parent. RabbitMQ needs a few seconds to start: share one where a test allows.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from kombu import Connection

from worker.offline.tied_child import TiedChildren, end

READY_SECONDS = 60.0
"""How long a start may take; about five seconds are usual."""
STOP_SECONDS = 15.0
_LOOPBACK = "127.0.0.1"
_SCRIPTS = Path("/usr/lib/rabbitmq/bin")
"""Where Debian and Fedora keep the scripts; those on ``PATH`` insist on a user of their own."""


class RabbitNotFound(RuntimeError):
    """There is no RabbitMQ to run; the text says what to install."""


class RabbitNotStarted(RuntimeError):
    """RabbitMQ ended or stayed silent; the text holds the end of its output."""


def find_rabbitmq(program: str = "rabbitmq-server") -> str:
    """The path of one of RabbitMQ's programs; raises RabbitNotFound."""
    script = _SCRIPTS / program
    found = str(script) if script.is_file() else shutil.which(program)
    if found is None:
        raise RabbitNotFound(
            f"No {program} was found. Install the package rabbitmq-server of your system "
            "(Debian, Ubuntu, Fedora) or rabbitmq (Homebrew)."
        )
    return found


class RabbitServer:
    """One RabbitMQ node, as a context manager.

    Args:
        consumer_timeout: seconds that a consumer may keep a message unacknowledged, for
            queues that do not say so themselves.

    ``start`` raises RabbitNotFound or RabbitNotStarted.
    """

    def __init__(self, *, consumer_timeout: float = 1_800.0) -> None:
        self._consumer_timeout = consumer_timeout
        self._home: Path | None = None
        self._environment: dict[str, str] = {}
        self._port = 0
        self._epmd: subprocess.Popen[bytes] | None = None
        self._node: subprocess.Popen[bytes] | None = None
        self._children = TiedChildren("rabbitmq")

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
    def url(self) -> str:
        """The address for kombu and Celery. It stays the same over ``kill`` and ``restart``."""
        if self._home is None:
            raise RuntimeError("the RabbitMQ server was not started")
        return f"amqp://guest:guest@{_LOOPBACK}:{self._port}//"

    @property
    def home(self) -> Path:
        """The directory that holds everything of this node."""
        if self._home is None:
            raise RuntimeError("the RabbitMQ server was not started")
        return self._home

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        if self._node is None:
            raise RuntimeError("the RabbitMQ server is not running")
        return self._node.pid

    def start(self) -> None:
        """Start the node and return once it takes connections; does nothing while it runs."""
        if self._node is not None and self._node.poll() is None:
            return
        program = find_rabbitmq()
        if self._home is None:
            self._home = Path(tempfile.mkdtemp(prefix="rabbitmq-"))
            self._prepare(self._home)
        output = self._home / "output.log"
        if self._epmd is None:
            port = self._environment["ERL_EPMD_PORT"]
            command = [_epmd_program(), "-port", port, "-address", _LOOPBACK]
            self._epmd = self._children.start(command, environment=self._environment, log=output)
        self._node = self._children.start([program], environment=self._environment, log=output)
        if not self._becomes_ready(self._node):
            text = output.read_text(errors="replace")[-2000:]
            self.stop()
            raise RabbitNotStarted(f"rabbitmq-server did not start:\n{text}")

    def stop(self) -> None:
        """End node and name server in good order and remove their data."""
        self._end_node(signal.SIGTERM)
        epmd, self._epmd = self._epmd, None
        if epmd is not None:
            end(epmd, signal.SIGTERM, STOP_SECONDS)
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def kill(self) -> None:
        """End the node as a crash would (SIGKILL); what it wrote to disk stays."""
        self._end_node(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the node if it runs, and start it again on the same address and data."""
        self._end_node(signal.SIGTERM)
        self.start()

    def control(self, *words: str) -> str:
        """Run ``rabbitmqctl`` on this node; returns its output. It takes about two seconds."""
        done = subprocess.run(
            [find_rabbitmq("rabbitmqctl"), *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=READY_SECONDS,
        )
        return done.stdout.decode()

    def drop_connections(self) -> None:
        """Close every client's connection from the broker's side."""
        self.control("close_all_connections", "dropped by a test")

    def _prepare(self, home: Path) -> None:
        self._port, epmd, distribution = _free_ports(3)
        interface = "-kernel inet_dist_use_interface {127,0,0,1}"
        config = home / "rabbitmq.conf"
        config.write_text(
            f"listeners.tcp.1 = {_LOOPBACK}:{self._port}\n"
            f"log.file = {home / 'node.log'}\n"
            "log.console = false\n"
            f"consumer_timeout = {round(self._consumer_timeout * 1000)}\n"
            "disk_free_limit.absolute = 50MB\n"
            # Without it each node sets half a gigabyte aside.
            "raft.wal_max_size_bytes = 16000000\n"
        )
        plugins = home / "plugins"
        plugins.write_text("[].\n")
        self._environment = {
            **os.environ,
            "HOME": str(home),  # where Erlang writes the node's cookie
            "ERL_EPMD_PORT": str(epmd),
            "ERL_EPMD_ADDRESS": _LOOPBACK,
            "ERL_CRASH_DUMP": os.devnull,
            "RABBITMQ_NODENAME": f"stage-{os.getpid()}-{self._port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home),
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "no-advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": str(home / "no-env.conf"),
            # The script then becomes the node instead of guarding it, so its pid is the node's.
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                f"-noinput -start_epmd false {interface} +sbwt none +S 2:2"
            ),
            "RABBITMQ_CTL_ERL_ARGS": f"-start_epmd false {interface}",
        }

    def _end_node(self, how: signal.Signals) -> None:
        node, self._node = self._node, None
        if node is not None:
            end(node, how, STOP_SECONDS)

    def _becomes_ready(self, node: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and node.poll() is None:
            with Connection(self.url, connect_timeout=2) as connection:
                try:
                    connection.connect()
                    return True
                except connection.connection_errors:
                    time.sleep(0.05)
        return False


def _epmd_program() -> str:
    found = shutil.which("epmd")
    if found is None:
        raise RabbitNotFound("No epmd was found; it comes with Erlang (Debian: erlang-base).")
    return found


def _free_ports(count: int) -> list[int]:
    """Ports that are free now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((_LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
