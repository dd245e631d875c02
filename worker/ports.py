"""What the stage needs from outside, as protocols.

Model failures form one small tree; whether a failure may be tried again is
written in ``run.outcomes`` and nowhere else:

    ModelFailure
    ├── ModelTimeout        the attempt's total time is over
    ├── ModelTransport      connection, 408, 5xx
    ├── ModelRateLimited    429, with the wait that the provider asked for
    ├── ModelUnparseable    a body that is no chat completion
    ├── ModelOffSchema      refusal, cut by length, no choices, over the output limit
    ├── ModelRefused        400, 401, 403, 404: asking again is useless
    └── ModelCancelled      the run was cancelled while the call was open
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar, Protocol

from worker.run.outcomes import AttemptOutcome
from worker.run.state import Run
from worker.run.steps import StepRef


@dataclass(frozen=True)
class ModelCall:
    """One attempt at one question: a system message and a user message, nothing else.

    ``timeout`` is the total wall-clock time in seconds, connecting and reading
    included. ``max_output_bytes`` bounds the answer's text, ``max_output_tokens`` is
    sent to the provider. ``answer_name`` and ``answer_schema`` (JSON Schema) serve
    providers that take a response format.
    """

    run_id: str
    system: str
    user: str
    timeout: float
    max_output_bytes: int
    max_output_tokens: int
    answer_name: str
    answer_schema: dict[str, object]


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counted them; None where it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class ModelAnswer:
    """The text of the one choice, untouched."""

    text: str
    usage: Usage


class ModelFailure(Exception):
    """A call that gave no answer. Its text is its code: no provider's words pass through."""

    outcome: ClassVar[AttemptOutcome]

    def __init__(self, usage: Usage = Usage(), retry_after: float | None = None) -> None:
        super().__init__(self.outcome.value)
        self.usage = usage
        self.retry_after = retry_after


class ModelTimeout(ModelFailure):
    outcome = AttemptOutcome.TIMEOUT


class ModelTransport(ModelFailure):
    outcome = AttemptOutcome.TRANSPORT


class ModelRateLimited(ModelFailure):
    outcome = AttemptOutcome.RATE_LIMITED


class ModelUnparseable(ModelFailure):
    outcome = AttemptOutcome.UNPARSEABLE


class ModelOffSchema(ModelFailure):
    outcome = AttemptOutcome.OFF_SCHEMA


class ModelRefused(ModelFailure):
    outcome = AttemptOutcome.PROVIDER_REFUSED


class ModelCancelled(ModelFailure):
    outcome = AttemptOutcome.CANCELLED


class Model(Protocol):
    """The one boundary through which a model is asked."""

    def ask(self, call: ModelCall) -> ModelAnswer:
        """Ask once; raises ModelFailure. Safe from any thread; never retries."""
        ...


@dataclass(frozen=True)
class Stored:
    """A run as it was read: its record, revision (0 for none), blobs, and Redis time then.

    ``read_at`` is the process's monotonic clock at that moment, so that Redis time
    can be told later without asking again.
    """

    run: Run | None
    revision: int
    blobs: Mapping[str, bytes]
    redis_time: float
    read_at: float

    def now(self) -> float:
        """Redis time, seconds since the epoch."""
        return self.redis_time + (monotonic() - self.read_at)


@dataclass(frozen=True)
class OutgoingMessage:
    """A message to send. ``reply_to`` is empty for the results queue, else a reply queue."""

    run_id: str
    message_id: str
    type: str
    body: bytes
    reply_to: str = ""


@dataclass(frozen=True)
class OutboxEntry:
    """A message in the outbox, from its release until it is known to be sent."""

    entry_id: str
    message: OutgoingMessage


@dataclass(frozen=True)
class Committed:
    revision: int
    entries: tuple[OutboxEntry, ...]


class Records(Protocol):
    """The runs' records. Raises StoreUnavailable when the store cannot be reached."""

    def load(self, run_id: str, blobs: Sequence[str] = ()) -> Stored:
        """Read a run, the named blobs and the store's time in one round trip."""
        ...

    def commit(
        self,
        run: Run,
        expected: int,
        *,
        due: float | None,
        blobs: Mapping[str, bytes],
        outgoing: Sequence[OutgoingMessage],
        close_calls: bool,
    ) -> Committed | None:
        """Write all of it, or none: None when the revision is no longer ``expected``.

        The append to the outbox is the release. ``due`` is when the reconciler looks
        again; ``close_calls`` tells every process to close the run's model calls.
        """
        ...

    def due(self, limit: int) -> Sequence[str]:
        """Ids of open runs whose due time has come, the longest overdue first."""
        ...

    def closed(self, since: float) -> Set[str]:
        """Ids of runs that were aborted at least ``since`` seconds and at most an hour ago."""
        ...


class Outbox(Protocol):
    """Released messages that are not yet known to be sent."""

    def pending(self, older_than: float, limit: int) -> Sequence[OutboxEntry]:
        """Entries that were appended more than ``older_than`` seconds ago, oldest first."""
        ...

    def sent(self, entry_id: str) -> None: ...

    def failed(self, entry_id: str) -> int:
        """Count one failed try to send; returns how many there were."""
        ...


@dataclass(frozen=True)
class InboxEntry:
    """A message that a client stored before it published it."""

    key: str
    body: bytes


class Inbox(Protocol):
    def waiting(self, older_than: float, limit: int) -> Sequence[InboxEntry]:
        """Entries that no admission has taken within ``older_than`` seconds."""
        ...

    def taken(self, key: str) -> None: ...


class Invocations(Protocol):
    def fetch(self, run_id: str, tool_call_ids: Sequence[str]) -> Mapping[str, bytes | None]:
        """The stored records of these calls, in one round trip at any number of them.

        The value is the record's JSON as it was stored, or None where there is none.
        The raw response is never read.
        """
        ...


class Sender(Protocol):
    """The way out to the broker. Raises SendFailed when the broker did not take the message."""

    def send(self, message: OutgoingMessage) -> None: ...

    def park(self, raw: bytes, reason: str, origin: str) -> None:
        """Keep a message that cannot be admitted, raw and with its reason code."""
        ...


class Dispatcher(Protocol):
    def dispatch(self, run: Run, step: StepRef) -> None:
        """Enqueue this step and the straight path behind it; raises SendFailed."""
        ...

    def waiting(self) -> int:
        """How many steps wait for a worker, repeats among them; raises SendFailed."""
        ...


class StoreUnavailable(Exception):
    """The store of records cannot be reached; nothing was decided."""


class SendFailed(Exception):
    """The broker did not take a message; ``final`` tells that it never will."""

    def __init__(self, code: str, *, final: bool = False) -> None:
        super().__init__(code)
        self.final = final
