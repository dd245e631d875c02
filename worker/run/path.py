"""What comes next, and how it ends: pure functions of the record.

Step, repeat, errback, reconciler and admission all hand on through
:func:`next_step`, so a crash between recording and handing on costs nothing.
"""

from contracts.fallback import FallbackType
from worker.run.outcomes import RETRYABLE, AttemptOutcome
from worker.run.policy import Policy
from worker.run.state import Attempt, CheckFacts, Ending, EndingKind, Run
from worker.run.steps import MODEL_STEPS, Step, StepRef

ROUND = 0
"""Drafts have one round."""

LEAST_CALL = 1.0
"""A model call with less time than this (seconds) is not worth starting."""

_PUBLISH = StepRef(ROUND, Step.PUBLISH, 1)


def next_step(run: Run, policy: Policy) -> StepRef | None:
    """The one step that may start now; None when the run is not open."""
    if not run.is_open:
        return None
    first = run.outcome(ROUND, Step.CHECK_EVIDENCE, 1)
    if first is None:
        return StepRef(ROUND, Step.CHECK_EVIDENCE, 1)
    if first is AttemptOutcome.PASSED:
        return _next_review(run, policy)
    if first is AttemptOutcome.VIOLATED and policy.repair_attempts:
        return _next_repair(run, policy)
    return _PUBLISH


def hand_on(run: Run, policy: Policy) -> StepRef | None:
    """The next step, to be sent at once; None also while it has to wait.

    A provider may ask for a wait before the second attempt. The reconciler sends it
    then: a task that waits in a worker's memory would be lost with that worker.
    """
    step = next_step(run, policy)
    if step is None or step.attempt == 1:
        return step
    before = run.attempt(StepRef(step.round, step.step, step.attempt - 1))
    return None if before.retry_at is not None else step


def _next_repair(run: Run, policy: Policy) -> StepRef:
    repair = run.outcome(ROUND, Step.REPAIR_EVIDENCE, 1)
    if repair is None:
        return StepRef(ROUND, Step.REPAIR_EVIDENCE, 1)
    if repair is not AttemptOutcome.REPAIRED:
        return _PUBLISH
    second = run.outcome(ROUND, Step.CHECK_EVIDENCE, 2)
    if second is None:
        return StepRef(ROUND, Step.CHECK_EVIDENCE, 2)
    return _next_review(run, policy) if second is AttemptOutcome.PASSED else _PUBLISH


def _next_review(run: Run, policy: Policy) -> StepRef:
    for number in range(1, policy.review_attempts + 1):
        ref = StepRef(ROUND, Step.REVIEW_SEMANTICS, number)
        attempt = run.attempt(ref)
        if attempt.outcome is None:
            # Once it has started, its own time is spoken for and must not count against it.
            waiting = number > 1 and not attempt.grants
            if waiting and time_left_for(run, Step.REVIEW_SEMANTICS, policy) < LEAST_CALL:
                return _PUBLISH
            return ref
        if attempt.outcome not in RETRYABLE:
            return _PUBLISH
    return _PUBLISH


def time_left_for(run: Run, step: Step, policy: Policy) -> float:
    """Model time that a guard has left, in seconds. Calls count, queueing does not."""
    if step is Step.REPAIR_EVIDENCE:
        return policy.attempt_timeout
    used = 0.0
    for number in range(1, policy.review_attempts + 1):
        used += _call_time(run.attempt(StepRef(ROUND, step, number)))
    return policy.review_total_timeout - used


def _call_time(attempt: Attempt) -> float:
    if attempt.claimed_at is None:
        return 0.0
    if attempt.outcome is AttemptOutcome.LOST or attempt.ended_at is None:
        return attempt.timeout or 0.0
    return attempt.ended_at - attempt.claimed_at


def after(ref: StepRef) -> tuple[StepRef, ...]:
    """The steps that follow if this one goes well: the rest of a straight chain."""
    review = StepRef(ref.round, Step.REVIEW_SEMANTICS, 1)
    match ref.step:
        case Step.CHECK_EVIDENCE:
            return (review, _PUBLISH)
        case Step.REPAIR_EVIDENCE:
            return (StepRef(ref.round, Step.CHECK_EVIDENCE, 2), review, _PUBLISH)
        case Step.REVIEW_SEMANTICS:
            return (_PUBLISH,)
        case Step.PUBLISH:
            return ()


def decide_ending(run: Run, policy: Policy) -> Ending:
    """The ending that the record calls for, first match wins (design section 6, rows 2 to 11).

    A release needs two things to be on record, a passed check and a SUPPORTED
    review; whatever is missing or strange is a fallback.
    """
    facts, outcome = last_check(run)
    if facts is None:
        return _fallback(FallbackType.EVIDENCE_VALIDATION_FAILED)
    if outcome is AttemptOutcome.UNCONCLUDED:
        return _fallback(_without_conclusion(facts))
    if outcome is not AttemptOutcome.PASSED:
        return _fallback(FallbackType.EVIDENCE_VALIDATION_FAILED)
    verdicts = [
        run.outcome(ROUND, Step.REVIEW_SEMANTICS, number)
        for number in range(1, policy.review_attempts + 1)
    ]
    if AttemptOutcome.UNSUPPORTED in verdicts:
        return _fallback(FallbackType.SEMANTIC_UNSUPPORTED)
    if AttemptOutcome.SUPPORTED in verdicts:
        return Ending(kind=EndingKind.SUCCEEDED)
    return _fallback(FallbackType.SEMANTIC_UNAVAILABLE)


def last_check(run: Run) -> tuple[CheckFacts | None, AttemptOutcome | None]:
    """Facts and outcome of the check that counts: the second where there was one."""
    for number in (2, 1):
        attempt = run.attempt(StepRef(ROUND, Step.CHECK_EVIDENCE, number))
        if attempt.outcome is not None:
            return attempt.check, attempt.outcome
    return None, None


def was_repaired(run: Run) -> bool:
    return run.outcome(ROUND, Step.REPAIR_EVIDENCE, 1) is AttemptOutcome.REPAIRED


def _without_conclusion(facts: CheckFacts) -> FallbackType:
    if facts.stopped:
        return FallbackType.INSUFFICIENT_EVIDENCE
    if not facts.readable and not facts.verified:
        return FallbackType.EVIDENCE_VALIDATION_FAILED
    if facts.readable and not facts.named_calls and facts.missing_context:
        return FallbackType.MISSING_REQUIRED_CONTEXT
    return FallbackType.INSUFFICIENT_EVIDENCE


def _fallback(type_: FallbackType) -> Ending:
    return Ending(kind=EndingKind.FALLBACK, code=type_.value)


def due_at(run: Run, policy: Policy) -> float | None:
    """When the reconciler should look at the run again (Redis time); None when it is not open."""
    step = next_step(run, policy)
    if step is None:
        return None
    lease_until = run.attempt(step).lease_until
    wake = lease_until if lease_until is not None else run.resend_at
    return run.deadline_at if wake is None else min(wake, run.deadline_at)


def is_model_step(ref: StepRef) -> bool:
    return ref.step in MODEL_STEPS
