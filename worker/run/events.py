"""What can happen to a run, and what the reducer answers."""

from dataclasses import dataclass
from enum import StrEnum

from contracts.messages import Budget
from worker.run.outcomes import AttemptOutcome
from worker.run.state import CheckFacts, Protocol, Run, Spend, VerifyFacts
from worker.run.steps import StepRef


@dataclass(frozen=True)
class Admitted:
    """A message that belongs to the run has arrived. ``key`` is ``type/round``."""

    run_id: str
    key: str
    sha256: str
    session_id: str
    deadline_at: float
    protocol: Protocol = Protocol.DRAFT
    round: int = 0
    locale: str | None = None
    reply_to: str | None = None
    budget: Budget = Budget()


@dataclass(frozen=True)
class Claimed:
    """A worker wants to start an attempt; a model step says what it may cost at most.

    ``holder`` names this very delivery: if the answer to its claim was lost on the way,
    asking again is answered as before. An empty one is nobody. ``prompt`` is the name and
    version of the prompt that a model step uses.
    """

    ref: StepRef
    spend: Spend | None = None
    input_sha256: str | None = None
    prompt: str = ""
    holder: str = ""


@dataclass(frozen=True)
class Used:
    """What a call really cost, as far as it is known."""

    output_bytes: int | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Finished:
    """An attempt came to an outcome."""

    ref: StepRef
    outcome: AttemptOutcome
    check: CheckFacts | None = None
    verify: VerifyFacts | None = None
    used: Used | None = None
    retry_after: float = 0.0


@dataclass(frozen=True)
class Lost:
    """The process of an attempt's ``grant``-th start is known to be gone."""

    ref: StepRef
    grant: int


@dataclass(frozen=True)
class Published:
    """The publishing step asks for the decision."""

    ref: StepRef


@dataclass(frozen=True)
class Cancelled:
    """Somebody wants the run to end without a release."""

    run_id: str


@dataclass(frozen=True)
class Ticked:
    """Time has passed; the reconciler asks what is due."""


Event = Admitted | Claimed | Finished | Lost | Published | Cancelled | Ticked


class Answer(StrEnum):
    OPENED = "OPENED"
    REPEATED = "REPEATED"
    CONFLICT = "CONFLICT"
    CONTINUED = "CONTINUED"
    """The message opened the run's next round."""
    IGNORED = "IGNORED"
    """The message came too late to be used; that it came is on record."""

    GRANTED = "GRANTED"
    HELD = "HELD"
    DONE = "DONE"
    REFUSED = "REFUSED"

    RECORDED = "RECORDED"
    STANDS = "STANDS"
    """The first result or ending is kept; the caller goes on from it."""

    ENDED = "ENDED"
    """This event ended the run."""
    MARKED = "MARKED"

    SEND = "SEND"
    WAIT = "WAIT"
    UNKNOWN = "UNKNOWN"
    """There is no such run."""


@dataclass(frozen=True)
class Decision:
    """The run as it should be from now on, and the answer to whoever asked.

    ``run`` is the very object that was given when nothing changes.
    """

    run: Run | None
    answer: Answer
