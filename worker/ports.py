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

from dataclasses import dataclass
from typing import ClassVar, Protocol

from worker.run.outcomes import AttemptOutcome


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
