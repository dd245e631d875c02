"""A store that is away, slow or full: the tool never notices, and the log gets a code once."""

import logging
import os
from threading import Event
from time import monotonic

import pytest
import redis

from tests.client.recording import COMMAND, recorder_of
from tests.fakes.record_store import FakeRecordStore
from worker.client import Recorder, command_output
from worker.client.recorder_store import Courier


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def call(recorder: Recorder, call_id: str, output: str = "disk is 97% full") -> bool:
    with recorder.call("run_command", COMMAND, tool_call_id=call_id) as one:
        one.ended(command_output(0, output))
    return one.recorded


@pytest.mark.scenario("evidence-recording", "The store is away")
def test_a_store_that_is_away_is_asked_once_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """After a failure nothing is tried for a while; then recording goes on by itself."""
    store, clock = FakeRecordStore(), Clock()
    store.fault = redis.ConnectionError("secret words of a server")
    recorder = recorder_of(store, courier=Courier(bound=5, pause=30, clock=clock))
    caplog.set_level(logging.INFO)
    assert [call(recorder, f"c{number}") for number in range(20)] == [False] * 20
    assert store.tries == 1
    assert [record.getMessage() for record in caplog.records] == [
        "RECORDER_STORE_UNAVAILABLE ConnectionError"
    ]

    clock.now += 31
    assert not call(recorder, "c20")
    assert store.tries == 2
    store.fault = None
    clock.now += 31
    assert call(recorder, "c21")
    assert caplog.records[-1].getMessage() == "RECORDER_STORE_BACK"
    assert len(caplog.records) == 2
    assert recorder.progress().completed_tool_call_ids == ("c21",)


@pytest.mark.scenario("evidence-recording", "The store is away")
def test_a_hanging_store_costs_one_bounded_wait() -> None:
    """However long a write hangs, the tools wait once, and not one wait each."""
    store = FakeRecordStore()
    store.stuck = Event()
    recorder = recorder_of(store, courier=Courier(bound=0.2, pause=60))
    began = monotonic()
    try:
        for number in range(50):
            assert not call(recorder, f"c{number}")
        assert monotonic() - began < 2
        assert store.tries == 1
    finally:
        store.stuck.set()


def test_a_count_that_cannot_be_kept_raises_nothing() -> None:
    """Counting is recording: it never gets in the agent's way."""
    store = FakeRecordStore()
    store.fault = OSError()
    recorder_of(store).model_step()
    assert not store.counts


def test_a_closed_recorder_still_records() -> None:
    """Closing ends the writing thread; a late call starts another one."""
    store = FakeRecordStore()
    recorder = recorder_of(store)
    assert call(recorder, "c1")
    recorder.close()
    assert call(recorder, "c2")


def test_a_forked_child_records_with_a_thread_of_its_own() -> None:
    """Threads do not survive a fork; the recorder does."""
    store = FakeRecordStore()
    recorder = recorder_of(store, courier=Courier(bound=5))
    courier = recorder._courier
    assert call(recorder, "c1")
    courier._pid = os.getpid() + 1  # as it looks to a child: another process started the thread
    assert call(recorder, "c2")
    assert len(store.records) == 2
