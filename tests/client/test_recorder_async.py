"""Async tools: cancellation and timeouts are records, and the event loop goes on."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Event
from time import monotonic
from typing import Any

import pytest

from contracts.evidence import Lifecycle
from tests.client.recording import COMMAND, recorder_of
from tests.fakes.record_store import FakeRecordStore
from worker.client import command_output
from worker.client.recorder_store import Courier


@pytest.fixture
def store() -> FakeRecordStore:
    return FakeRecordStore()


def decorated(
    store: FakeRecordStore, body: Callable[[], Coroutine[Any, Any, str]], **options: Any
) -> Callable[[], Coroutine[Any, Any, str]]:
    recorder = recorder_of(store, **options)
    return recorder.tool(
        "run_command", request=lambda: COMMAND, outcome=lambda text: command_output(0, text)
    )(body)


async def active() -> str:
    await asyncio.sleep(0)
    return "active (running) since Monday"


async def never() -> str:
    await asyncio.Event().wait()
    return ""


def test_an_async_tool_is_recorded(store: FakeRecordStore) -> None:
    """What is awaited is what is recorded; the function stays a coroutine function."""
    tool = decorated(store, active)
    assert asyncio.iscoroutinefunction(tool)
    assert asyncio.run(tool()) == "active (running) since Monday"
    assert [record.lifecycle for record in store.written] == ["PROJECTING", "READY"]


@pytest.mark.scenario("evidence-recording", "Cancelled coroutines")
def test_a_cancelled_tool_is_a_record(store: FakeRecordStore) -> None:
    """The cancellation goes on, and the record tells of it."""

    async def main() -> None:
        looking = asyncio.Event()

        async def look() -> str:
            looking.set()
            return await never()

        task = asyncio.create_task(decorated(store, look)())
        await looking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert str(store.one().error_message).startswith("TOOL_CANCELLED")
    assert store.one().lifecycle is Lifecycle.ERROR


@pytest.mark.scenario("evidence-recording", "Cancelled coroutines")
def test_a_tool_that_runs_out_of_time_is_a_record(store: FakeRecordStore) -> None:
    """``wait_for`` outside cancels the tool; a timeout inside it is told as a timeout."""

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(decorated(store, never)(), 0.05)

        async def impatient() -> str:
            return await asyncio.wait_for(never(), 0.01)

        with pytest.raises(TimeoutError):
            await decorated(store, impatient)()

    asyncio.run(main())
    messages = [str(record.error_message).split(":")[0] for record in store.records]
    assert messages == ["TOOL_CANCELLED", "TOOL_TIMED_OUT"]


def test_parallel_tools_have_a_record_each(store: FakeRecordStore) -> None:
    """Calls that overlap do not mix."""
    recorder = recorder_of(store)

    async def look(number: int) -> None:
        async with recorder.call("run_command", COMMAND, tool_call_id=f"c{number}") as call:
            await asyncio.sleep(0)
            call.ended(command_output(0, f"output number {number}"))

    async def main() -> None:
        await asyncio.gather(*(look(number) for number in range(50)))

    asyncio.run(main())
    assert len(store.records) == 50
    for record in store.records:
        assert f"output number {record.tool_call_id[1:]}" in str(record.agent_result)


@pytest.mark.scenario("evidence-recording", "The store is away")
def test_a_hanging_store_stops_neither_tool_nor_loop(store: FakeRecordStore) -> None:
    """The loop turns while the store hangs, and the tool is back within the bound."""
    store.stuck = Event()
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.005)

    async def main() -> float:
        ticking = asyncio.create_task(tick())
        began = monotonic()
        text = await decorated(store, active, courier=Courier(bound=0.2, pause=60))()
        ticking.cancel()
        assert text == "active (running) since Monday"
        return monotonic() - began

    try:
        assert asyncio.run(main()) < 2
    finally:
        store.stuck.set()
    assert turns > 3


def test_a_task_cancelled_while_its_record_is_written_is_cancelled(store: FakeRecordStore) -> None:
    """The wait for a record can be cancelled like any other; the write goes on by itself."""
    store.stuck = Event()

    async def main() -> None:
        task = asyncio.create_task(decorated(store, active)())
        assert await asyncio.to_thread(store.trying.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.stuck is not None
        store.stuck.set()

    asyncio.run(main())
