"""What one attempt at a step can come to, and which of it may be tried again."""

from enum import StrEnum


class AttemptOutcome(StrEnum):
    """The recorded outcome of one attempt at one step.

    First come the results of check or gate, repair, review, verifier and composer. The
    technical failures after them may be tried again within the policy; the next
    two make a guard unavailable at once; the last three end the run.
    """

    PASSED = "PASSED"
    VIOLATED = "VIOLATED"
    UNCONCLUDED = "UNCONCLUDED"

    REPAIRED = "REPAIRED"
    ALTERED = "ALTERED"

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"

    VERIFIED = "VERIFIED"
    COMPOSED = "COMPOSED"
    BARE = "BARE"

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
