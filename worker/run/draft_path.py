"""The path of a draft: check, repair once, review twice at most, publish."""

from contracts.fallback import FallbackType
from worker.run.model_time import next_attempt, outcomes
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.state import CheckFacts, Ending, EndingKind, Run
from worker.run.steps import Step, StepRef

ROUND = 0
"""Drafts have one round."""

_PUBLISH = StepRef(ROUND, Step.PUBLISH, 1)


def next_step(run: Run, policy: Policy) -> StepRef:
    """The one step of an open run that may start now."""
    first = run.outcome(ROUND, Step.CHECK_EVIDENCE, 1)
    if first is None:
        return StepRef(ROUND, Step.CHECK_EVIDENCE, 1)
    if first is AttemptOutcome.PASSED:
        return next_attempt(run, ROUND, Step.REVIEW_SEMANTICS, policy) or _PUBLISH
    if first is AttemptOutcome.VIOLATED and policy.repair_attempts:
        return _next_repair(run, policy)
    return _PUBLISH


def _next_repair(run: Run, policy: Policy) -> StepRef:
    repair = run.outcome(ROUND, Step.REPAIR_EVIDENCE, 1)
    if repair is None:
        return StepRef(ROUND, Step.REPAIR_EVIDENCE, 1)
    if repair is not AttemptOutcome.REPAIRED:
        return _PUBLISH
    second = run.outcome(ROUND, Step.CHECK_EVIDENCE, 2)
    if second is None:
        return StepRef(ROUND, Step.CHECK_EVIDENCE, 2)
    if second is not AttemptOutcome.PASSED:
        return _PUBLISH
    return next_attempt(run, ROUND, Step.REVIEW_SEMANTICS, policy) or _PUBLISH


def decide_ending(run: Run, policy: Policy) -> Ending:
    """The ending that the record calls for, first match wins (spec ``release-policy``).

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
    verdicts = outcomes(run, ROUND, Step.REVIEW_SEMANTICS, policy)
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
    """Tell whether references of the draft were mended on the way."""
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
