"""The way out to the broker, and the way on to the next step, in memory."""

from dataclasses import dataclass

from worker.ports import OutgoingMessage, SendFailed
from worker.run.state import Run
from worker.run.steps import StepRef


@dataclass(frozen=True)
class Parked:
    """A message that was kept aside, raw and with its reason code."""

    raw: bytes
    reason: str
    origin: str


class FakeSender:
    """Implements ``Sender``.

    ``away`` refuses everything; ``gone`` names reply queues that never take a
    message again.
    """

    def __init__(self) -> None:
        self.sent: list[OutgoingMessage] = []
        self.parked: list[Parked] = []
        self.away = False
        self.gone: set[str] = set()

    def send(self, message: OutgoingMessage) -> None:
        """As the port says."""
        if self.away:
            raise SendFailed("OperationalError")
        if message.reply_to in self.gone:
            raise SendFailed("NO_QUEUE", final=True)
        self.sent.append(message)

    def park(self, raw: bytes, reason: str, origin: str) -> None:
        """As the port says."""
        if self.away:
            raise SendFailed("OperationalError")
        self.parked.append(Parked(raw, reason, origin))


class FakeDispatcher:
    """Implements ``Dispatcher``; ``dispatched`` lists run id and step, in order.

    ``queued`` is how many steps are said to wait.
    """

    def __init__(self) -> None:
        self.dispatched: list[tuple[str, StepRef]] = []
        self.queued = 0
        self.away = False

    def dispatch(self, run: Run, step: StepRef) -> None:
        """As the port says."""
        if self.away:
            raise SendFailed("OperationalError")
        self.dispatched.append((run.run_id, step))

    def waiting(self) -> int:
        """As the port says."""
        if self.away:
            raise SendFailed("OperationalError")
        return self.queued
