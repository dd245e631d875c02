"""A stage over the ports' fakes: one clock, one store, one sender, in this process."""

import time
from dataclasses import dataclass

import pytest

from tests.fakes.model import FakeModel
from tests.fakes.records import (
    FakeInbox,
    FakeInvocations,
    FakeOutbox,
    FakeRecords,
    FakeStore,
)
from tests.fakes.sender import FakeDispatcher, FakeSender
from worker.guards.tools import BUILT_IN
from worker.stage.engine import Stage


@dataclass
class House:
    """A stage, its fakes, and a clock that only the test moves (seconds since the epoch)."""

    now: float

    def __post_init__(self) -> None:
        self.store = FakeStore(clock=lambda: self.now)
        self.records = FakeRecords(self.store)
        self.outbox = FakeOutbox(self.store)
        self.inbox = FakeInbox(self.store)
        self.invocations = FakeInvocations(self.store)
        self.model = FakeModel()
        self.sender = FakeSender()
        self.dispatcher = FakeDispatcher()
        self.stage = Stage(
            records=self.records,
            outbox=self.outbox,
            inbox=self.inbox,
            invocations=self.invocations,
            model=self.model,
            sender=self.sender,
            dispatcher=self.dispatcher,
            tools=BUILT_IN,
        )


@pytest.fixture
def house() -> House:
    return House(now=float(int(time.time())))
