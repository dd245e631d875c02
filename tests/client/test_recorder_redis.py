"""The recorder over a real Redis that is full, gone, or left by a killed agent."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import redis

from contracts.draft import Analysis, Conclusion, DiagnosisDraft
from tests.client.recording import COMMAND, REQUESTS
from worker.adapters.keys import Keys
from worker.adapters.redis_records import RedisInvocations
from worker.client import (
    InvocationReader,
    InvocationWriter,
    LogLine,
    Recorder,
    command_output,
    log_matches,
)
from worker.guards.evidence import check_evidence
from worker.guards.tools import BUILT_IN
from worker.guards.violations import ViolationCode
from worker.offline.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[2]
RUN = "run-1"
BOUND = 1.0


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A Redis of its own for each test, since most of them break it."""
    with RedisServer() as running:
        yield running


def recorder_of(server: RedisServer, run_id: str = RUN) -> Recorder:
    return Recorder.connect(
        server.url, run_id=run_id, session_id="session-1", bound=BOUND, pause=0.05
    )


def record(recorder: Recorder, call_id: str, output: str = "disk is 97% full") -> bool:
    with recorder.call("run_command", COMMAND, tool_call_id=call_id) as call:
        call.ended(command_output(0, output))
    return call.recorded


def guard(url: str, call_id: str, run_id: str = RUN) -> list[ViolationCode]:
    """What the evidence check says of a draft that cites this one call."""
    analysis = Analysis(analysis_id="a", kind="NORMAL", text="x", tool_call_ids=(call_id,))
    draft = DiagnosisDraft(
        conclusion=Conclusion(text="x", based_on_analysis_ids=("a",)), analyses=(analysis,)
    )
    with redis.Redis.from_url(url) as client:
        records = RedisInvocations(client, Keys()).fetch(run_id, [call_id])
    return [one.code for one in check_evidence(run_id, draft, records, BUILT_IN).violations]


def test_a_recorded_call_can_be_cited(server: RedisServer) -> None:
    """From the tool through Redis to the guard, nothing is missing."""
    recorder = recorder_of(server)
    assert record(recorder, "c1")
    assert guard(server.url, "c1") == []
    assert guard(server.url, "c2") == [ViolationCode.RECORD_MISSING]
    recorder.close()


@pytest.mark.scenario("evidence-recording", "Counts are those of the rows")
def test_a_sessions_counts_are_those_of_its_rows(server: RedisServer) -> None:
    """Over two runs, with a failed call, a repeated write and helpers."""
    for number in (1, 2):
        recorder = recorder_of(server, f"run-{number}")
        recorder.model_step(3)
        recorder.helper_call()
        record(recorder, "c1")
        with recorder.call("query_logs", REQUESTS["query_logs"]) as call:
            call.ended(log_matches([LogLine("12:00", "x")]))
        with pytest.raises(OSError, match="gone"), recorder.call("run_command", COMMAND):
            raise OSError("gone")
        recorder.close()
    with redis.Redis.from_url(server.url) as client:
        reader, writer = InvocationReader(client), InvocationWriter(client)
        for one in reader.records("run-1"):
            writer.write(one)
        counts = reader.counts("session-1")
        rows = len(reader.records("run-1")) + len(reader.records("run-2"))
        assert counts.evidence_calls == rows == 6
        assert (counts.model_steps, counts.helper_calls) == (6, 2)
        assert reader.counts("another").evidence_calls == 0
        assert client.ttl(Keys().counts("session-1")) > 0


def test_a_record_that_cannot_be_read_is_left_out(server: RedisServer) -> None:
    """A summary is shown of what can be read; the guard names the rest."""
    recorder = recorder_of(server)
    record(recorder, "c1")
    with redis.Redis.from_url(server.url) as client:
        client.hset(Keys().invocations(RUN), "c2", "{")
        assert [one.tool_call_id for one in InvocationReader(client).records(RUN)] == ["c1"]
    assert guard(server.url, "c2") == [ViolationCode.RECORD_UNREADABLE]


@pytest.mark.scenario("evidence-recording", "A full store")
def test_a_full_redis_loses_the_record_and_not_the_result(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The tool's result comes back, the log has a code once, and the guard fails closed."""
    with redis.Redis.from_url(server.url) as client:
        recorder = recorder_of(server)
        client.config_set("maxmemory", "1")
        began = monotonic()
        assert not record(recorder, "c1")
        assert not record(recorder, "c2")
        assert monotonic() - began < 4 * BOUND
        assert caplog.text.count("RECORDER_STORE_UNAVAILABLE") == 1
        assert "97%" not in caplog.text
        client.config_set("maxmemory", "0")
    assert guard(server.url, "c1") == [ViolationCode.RECORD_MISSING]
    assert recorder.progress().completed_tool_call_ids == ()


@pytest.mark.scenario("evidence-recording", "A lost connection")
def test_a_connection_lost_inside_a_tool_leaves_nothing_to_cite(tmp_path: Path) -> None:
    """Redis dies while the tool runs: the result is back within the bound, the record is not."""
    with RedisServer(tmp_path, appendfsync="always") as server:
        recorder = recorder_of(server)
        with recorder.call("run_command", COMMAND, tool_call_id="c1") as call:
            server.kill()
            call.ended(command_output(0, "disk is 97% full"))
            began = monotonic()
        assert monotonic() - began < 2 * BOUND
        assert not call.recorded
        server.restart()
        assert guard(server.url, "c1") == [ViolationCode.RECORD_NOT_READY]
        deadline = monotonic() + 20
        number = 2
        while not record(recorder, f"c{number}"):
            assert monotonic() < deadline, "the recorder does not come back"
            number += 1
        assert guard(server.url, f"c{number}") == []


_AGENT = """
import os, signal, sys
from worker.client import Recorder, command_output
recorder = Recorder.connect(sys.argv[1], run_id="run-1", session_id="s", bound=20)
with recorder.call("run_command", {"command": "df -h", "host": "db-1"}, tool_call_id="c1") as call:
    call.ended(command_output(0, "disk is 97% full"))
with recorder.call("run_command", {"command": "du -x", "host": "db-1"}, tool_call_id="c2") as call:
    call.ended(command_output(0, "12G var"))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.scenario("evidence-recording", "A killed process")
def test_a_killed_agent_leaves_a_call_that_nobody_can_cite(server: RedisServer) -> None:
    """What ended before is evidence; the call that it died in is not, though it had a result."""
    died = subprocess.run(
        [sys.executable, "-c", _AGENT, server.url],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        timeout=60,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert guard(server.url, "c1") == []
    assert guard(server.url, "c2") == [ViolationCode.RECORD_NOT_READY]


def test_a_forked_child_records_over_a_connection_of_its_own(server: RedisServer) -> None:
    """A pool of processes forks after the recorder was used; each child records its calls."""
    recorder = recorder_of(server)
    assert record(recorder, "c1")
    script = (
        "import sys; from worker.client import Recorder, command_output; import os\n"
        "r = Recorder.connect(sys.argv[1], run_id='run-1', session_id='s', bound=20)\n"
        "def one(i):\n"
        "    with r.call('run_command', {'command': 'df'}, tool_call_id=i) as c:\n"
        "        c.ended(command_output(0, 'disk full'))\n"
        "    return c.recorded\n"
        "assert one('c2')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if one('c3') else 1)\n"
        "sys.exit(os.waitpid(child, 0)[1] or not one('c4'))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, server.url],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0
    for call_id in ("c2", "c3", "c4"):
        assert guard(server.url, call_id) == []


def test_a_name_server_that_hangs_holds_up_no_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Socket timeouts do not bound the look-up of a host; the courier does."""
    import socket
    from threading import Event

    release = Event()

    def hang(*_: Any, **__: Any) -> Any:
        release.wait(30)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    recorder = Recorder.connect(
        "redis://redis.invalid:6379/0", run_id=RUN, session_id="s", bound=0.2, pause=60
    )
    began = monotonic()
    try:
        assert not any(record(recorder, f"c{number}") for number in range(10))
        assert monotonic() - began < 5
    finally:
        release.set()
