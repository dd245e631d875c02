"""Attempts at a guard's model call, and the time that they may take together."""

from worker.run.outcomes import RETRYABLE, AttemptOutcome
from worker.run.policy import Policy
from worker.run.state import Attempt, Run
from worker.run.steps import Step, StepRef

LEAST_CALL = 1.0
"""A model call with less time than this (seconds) is not worth starting."""


def next_attempt(run: Run, round_: int, step: Step, policy: Policy) -> StepRef | None:
    """The attempt that may start or is under way; None when the guard is through."""
    for number in range(1, policy.review_attempts + 1):
        ref = StepRef(round_, step, number)
        attempt = run.attempt(ref)
        if attempt.outcome is None:
            # Once it has started, its own time is spoken for and must not count against it.
            waiting = number > 1 and not attempt.grants
            out_of_time = waiting and time_left_for(run, ref, policy) < LEAST_CALL
            return None if out_of_time else ref
        if attempt.outcome not in RETRYABLE:
            return None
    return None


def outcomes(run: Run, round_: int, step: Step, policy: Policy) -> tuple[AttemptOutcome, ...]:
    """What the attempts so far came to, in their order."""
    found = (run.outcome(round_, step, number) for number in range(1, policy.review_attempts + 1))
    return tuple(outcome for outcome in found if outcome is not None)


def time_left_for(run: Run, ref: StepRef, policy: Policy) -> float:
    """Model time that a guard has left in a round, in seconds. Calls count, queueing does not."""
    if ref.step is Step.REPAIR_EVIDENCE:
        return policy.attempt_timeout
    used = sum(
        _call_time(run.attempt(StepRef(ref.round, ref.step, number)))
        for number in range(1, policy.review_attempts + 1)
    )
    return policy.review_total_timeout - used


def _call_time(attempt: Attempt) -> float:
    if attempt.claimed_at is None:
        return 0.0
    if attempt.outcome is AttemptOutcome.LOST or attempt.ended_at is None:
        return attempt.timeout or 0.0
    return attempt.ended_at - attempt.claimed_at
