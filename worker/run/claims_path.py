"""The path of claims: gate, verify twice at most, ask for evidence once, compose, publish.

Round 1 is the agent's answer to a request for evidence; it goes through the same
gate and verifier, and what round 0 found no longer counts.
"""

from contracts.claims import Verdict
from contracts.fallback import FallbackType
from worker.run.model_time import next_attempt, outcomes
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.state import Ending, EndingKind, Run, VerifyFacts
from worker.run.steps import Step, StepRef


def next_step(run: Run, policy: Policy) -> StepRef | None:
    """The one step of an open run that may start now; None while it waits for evidence."""
    publish = StepRef(run.round, Step.PUBLISH, 1)
    gate = run.outcome(run.round, Step.GATE_CLAIMS, 1)
    if gate is None:
        return StepRef(run.round, Step.GATE_CLAIMS, 1)
    if gate is not AttemptOutcome.PASSED:
        return publish
    verify = next_attempt(run, run.round, Step.VERIFY_CLAIMS, policy)
    if verify is not None:
        return verify
    if verified(run, policy) is None:
        return publish
    if run.waits_for_evidence:
        return None
    if run.outcome(run.round, Step.COMPOSE_ANSWER, 1) is None:
        return StepRef(run.round, Step.COMPOSE_ANSWER, 1)
    return publish


def decide_ending(run: Run, policy: Policy) -> Ending:
    """The ending that the record calls for (specs ``claim-routing`` and ``claim-composer``).

    A release needs a passed gate, a verifier's PASS and a composed answer on record.
    Where no verifier came to a verdict, none is made up.
    """
    facts = verified(run, policy)
    composed = run.outcome(run.round, Step.COMPOSE_ANSWER, 1)
    if facts is None or composed is None:
        return _fallback(FallbackType.PRE_VERIFICATION)
    if facts.final is Verdict.REJECT:
        return _fallback(FallbackType.CLAIMS_REJECTED)
    if facts.final is Verdict.PASS and composed is AttemptOutcome.COMPOSED:
        return Ending(kind=EndingKind.SUCCEEDED)
    return _fallback(FallbackType.LOW_CONFIDENCE)


def verified(run: Run, policy: Policy) -> VerifyFacts | None:
    """What the verifier of this round came to; None if the gate or the verifier failed."""
    if run.outcome(run.round, Step.GATE_CLAIMS, 1) is not AttemptOutcome.PASSED:
        return None
    came_to = outcomes(run, run.round, Step.VERIFY_CLAIMS, policy)
    if not came_to or came_to[-1] is not AttemptOutcome.VERIFIED:
        return None
    return run.attempt(StepRef(run.round, Step.VERIFY_CLAIMS, len(came_to))).verify


def _fallback(type_: FallbackType) -> Ending:
    return Ending(kind=EndingKind.FALLBACK, code=type_.value)
