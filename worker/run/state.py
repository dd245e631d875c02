"""A run's record: everything that decides what comes next, and nothing of the draft."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from contracts.claims import Verdict
from contracts.messages import Budget
from worker.run.outcomes import AttemptOutcome
from worker.run.steps import Step, StepRef


class State(BaseModel):
    """A frozen part of the record. Unknown fields of a newer worker are kept out, not refused."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class Spend(State):
    """What model calls cost: reserved when an attempt starts, settled when it ends."""

    model_calls: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    tokens: int = 0

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(
            model_calls=self.model_calls + other.model_calls,
            input_bytes=self.input_bytes + other.input_bytes,
            output_bytes=self.output_bytes + other.output_bytes,
            tokens=self.tokens + other.tokens,
        )

    def fits(self, budget: Budget) -> bool:
        """Tell whether the sum stays within every limit that the budget names."""
        return all(
            limit is None or getattr(self, name) <= limit
            for name, limit in (
                ("model_calls", budget.model_calls),
                ("input_bytes", budget.input_bytes),
                ("output_bytes", budget.output_bytes),
                ("tokens", budget.tokens),
            )
        )


class Protocol(StrEnum):
    """Which messages a run belongs to: those of drafts or those of claims."""

    DRAFT = "draft"
    CLAIMS = "claims"


class CheckFacts(State):
    """What an evidence check found, as far as it decides the ending."""

    readable: bool
    stopped: bool
    concluded: bool
    violations: int
    named_calls: bool
    """The draft or the progress names at least one tool call."""
    verified: bool
    """At least one of the named calls was verified."""
    missing_context: bool


class VerifyFacts(State):
    """What a verifier came to. ``final`` is the verdict after every cap."""

    effective: Verdict
    final: Verdict
    wants_evidence: bool


class Attempt(State):
    """One attempt at one step. Times are Redis time, seconds since the epoch.

    ``grants`` counts its starts; ``lease_until`` is None when nobody holds it.
    ``timeout`` is the model time fixed at the start, ``deadline_bound`` tells that
    the run's deadline set it.
    """

    grants: int = 0
    claimed_at: float | None = None
    holder: str = ""
    lease_until: float | None = None
    timeout: float | None = None
    deadline_bound: bool = False
    outcome: AttemptOutcome | None = None
    ended_at: float | None = None
    retry_at: float | None = None
    charged: Spend = Spend()
    settled: bool = False
    input_sha256: str | None = None
    prompt: str = ""
    """Name and version of the prompt, such as ``semantic_review/1``; never its text."""
    check: CheckFacts | None = None
    verify: VerifyFacts | None = None


class EndingKind(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FALLBACK = "FALLBACK"
    ABORTED = "ABORTED"


class Ending(State):
    """How a run ended; ``code`` is a FallbackType, an AbortReason, or empty for a release."""

    kind: EndingKind
    code: str = ""

    def __str__(self) -> str:
        return self.code or self.kind.value


class Run(State):
    """One run. A run without ``opened_at`` is a cancel mark: its draft has not come yet."""

    run_id: str
    session_id: str = ""
    protocol: Protocol = Protocol.DRAFT
    round: int = 0
    """Rises to 1 when the agent answers a request for evidence."""
    opened_at: float | None = None
    deadline_at: float = 0.0
    locale: str | None = None
    reply_to: str | None = None
    budget: Budget = Budget()
    messages: dict[str, str] = {}
    """SHA-256 of each admitted message, by ``type/round``."""
    attempts: dict[str, Attempt] = {}
    resend_at: float | None = None
    resends: int = 0
    evidence_until: float | None = None
    """Set when evidence was asked for: how long round 0 waits for round 1."""
    evidence_waived: bool = False
    """The wait is over, and the run goes on without an answer."""
    cancelled_at: float | None = None
    ending: Ending | None = None
    ended_at: float | None = None

    def attempt(self, ref: StepRef) -> Attempt:
        return self.attempts.get(ref.key, _UNTOUCHED)

    def outcome(self, round_: int, step: Step, attempt: int) -> AttemptOutcome | None:
        return self.attempt(StepRef(round_, step, attempt)).outcome

    def with_attempt(self, ref: StepRef, attempt: Attempt) -> "Run":
        return self.model_copy(update={"attempts": {**self.attempts, ref.key: attempt}})

    @property
    def spent(self) -> Spend:
        """All that the run's attempts are charged with, reservations included."""
        total = Spend()
        for attempt in self.attempts.values():
            total = total + attempt.charged
        return total

    @property
    def waits_for_evidence(self) -> bool:
        asked = self.evidence_until is not None and self.round == 0
        return asked and not self.evidence_waived

    @property
    def is_open(self) -> bool:
        return self.opened_at is not None and self.ending is None


_UNTOUCHED = Attempt()
