"""What one attempt at a model call can come to, and which of it may be tried again."""

from enum import StrEnum


class AttemptOutcome(StrEnum):
    """The outcome of one attempt at a guard's model call.

    The first group is an answer; the second may be tried again within the policy;
    the third makes the guard unavailable at once; the fourth ends the run.
    """

    ANSWERED = "ANSWERED"

    TIMEOUT = "TIMEOUT"
    TRANSPORT = "TRANSPORT"
    RATE_LIMITED = "RATE_LIMITED"
    UNPARSEABLE = "UNPARSEABLE"
    OFF_SCHEMA = "OFF_SCHEMA"
    LOST = "LOST"

    PROVIDER_REFUSED = "PROVIDER_REFUSED"
    INPUT_TOO_LARGE = "INPUT_TOO_LARGE"

    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"


RETRYABLE = frozenset(
    {
        AttemptOutcome.TIMEOUT,
        AttemptOutcome.TRANSPORT,
        AttemptOutcome.RATE_LIMITED,
        AttemptOutcome.UNPARSEABLE,
        AttemptOutcome.OFF_SCHEMA,
        AttemptOutcome.LOST,
    }
)
"""Technical failures: a valid answer that we dislike is never among them."""
