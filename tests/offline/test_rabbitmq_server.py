"""The private RabbitMQ: a real node on real ports."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kombu import Connection, Queue

from worker.offline.processes import wait_until
from worker.offline.rabbitmq_server import (
    RabbitNotFound,
    RabbitNotStarted,
    RabbitServer,
    find_rabbitmq,
)

HOLDER = """
import sys
from worker.offline.rabbitmq_server import RabbitServer
server = RabbitServer()
server.start()
print(server.pid, server.home, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitServer]:
    with RabbitServer() as running:
        yield running


def state(pid: int) -> str:
    """A process's state letter as Linux tells it; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return ""


def children(pid: int) -> list[int]:
    """The processes that a process started, from all its threads."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def listening(pid: int) -> set[str]:
    """The addresses that a process listens on, as ``ss`` would show them."""
    targets = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {one.removeprefix("socket:[").rstrip("]") for one in targets}
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            found.add(words[1].split(":")[0])
    return found


def put(server: RabbitServer, queue: Queue, body: str) -> None:
    options = {"confirm_publish": True}
    with Connection(server.url, transport_options=options) as connection:
        producer = connection.Producer()
        producer.publish(body, routing_key=queue.name, declare=[queue], delivery_mode=2)


def take(server: RabbitServer, queue: Queue) -> str:
    with Connection(server.url) as connection, connection.SimpleQueue(queue) as simple:
        message = simple.get(timeout=10)
        message.ack()
        return str(message.payload)


def drain(connection: Connection) -> None:
    while True:
        connection.drain_events(timeout=10)


def quorum_queue() -> Queue:
    return Queue(f"kept-{uuid4()}", durable=True, queue_arguments={"x-queue-type": "quorum"})


def test_a_node_listens_on_loopback_only(server: RabbitServer) -> None:
    """Its two ports are on 127.0.0.1, written 0100007F by Linux."""
    assert listening(server.pid) == {"0100007F"}


def test_what_was_confirmed_outlives_restart_and_kill(server: RabbitServer) -> None:
    """Messages in a quorum queue are there afterwards, on the same address.

    The restart comes first, since RabbitMQ 3.10 writes down late that a new queue exists:
    a kill within its first seconds leaves the queue without a leader for ever.
    """
    queue = quorum_queue()
    put(server, queue, "first")
    url, pid = server.url, server.pid
    server.restart()
    put(server, queue, "second")
    server.kill()
    wait_until(lambda: state(pid) in {"", "Z"}, 10, "the node's end")
    server.start()
    assert (server.url, server.pid == pid) == (url, False)
    assert [take(server, queue), take(server, queue)] == ["first", "second"]


def test_dropped_connections_are_gone_and_new_ones_are_taken(server: RabbitServer) -> None:
    """The broker closes what is open and stays up."""
    with Connection(server.url) as connection:
        connection.connect()
        server.drop_connections()
        with pytest.raises(connection.connection_errors):
            drain(connection)
    with Connection(server.url) as connection:
        assert connection.connect()


def test_a_missing_program_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without RabbitMQ the error names the package."""
    monkeypatch.setattr("worker.offline.rabbitmq_server._SCRIPTS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RabbitNotFound, match="package rabbitmq-server"):
        find_rabbitmq()


def test_a_node_that_does_not_come_up_tells_its_own_words() -> None:
    """A wrong setting ends the start with the end of the node's output, and leaves nothing."""
    server = RabbitServer(consumer_timeout=-5)
    with pytest.raises(RabbitNotStarted, match="rabbitmq-server did not start"):
        server.start()
    with pytest.raises(RuntimeError, match="not started"):
        _ = server.home


def test_node_and_name_server_die_with_a_parent_that_was_killed() -> None:
    """A test run that is killed leaves no RabbitMQ and no epmd running."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        pid, home = holder.stdout.readline().decode().split()
        started = children(holder.pid)
        try:
            assert int(pid) in started
            assert len(started) == 2, "the node and its name server"
            os.kill(holder.pid, signal.SIGKILL)
            wait_until(lambda: {state(one) for one in started} <= {"", "Z"}, 10, "their end")
        finally:
            holder.kill()
            shutil.rmtree(home, ignore_errors=True)
