"""The evaluation record of a claims run, built from what really happened.

There is no parameter for a verdict: the model's is read from its own valid answer and
the effective one is computed here, so where no verifier completed none can be written.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from contracts.claims import (
    TRACEABILITY_VERSION,
    AgentPrompts,
    GatekeeperResult,
    PromptRef,
    Verdict,
    VerifiedMaterial,
    VerifierAnswer,
)
from contracts.claims_evaluation import (
    ComposerOutput,
    ComposerStatus,
    ExecutorStatus,
    GatekeeperStatus,
    PromptAudit,
    PromptNames,
    StructuredOutput,
    VerifierEvaluation,
    VerifierStatus,
)
from worker.claims import composer, verifier
from worker.claims.verdict import final_verdict
from worker.run.outcomes import AttemptOutcome

CHANNEL = "verifier_evaluation"
"""Where the evaluation stands inside ``self_evaluation``."""

_OF_NO_ANSWER = frozenset({AttemptOutcome.UNPARSEABLE, AttemptOutcome.OFF_SCHEMA})


def failed_status(outcome: AttemptOutcome) -> VerifierStatus:
    """The status of a verifier whose last attempt came to this failure."""
    if outcome in _OF_NO_ANSWER:
        return VerifierStatus.INVALID_OUTPUT
    return VerifierStatus.UNAVAILABLE


def prompt_audit(agent: AgentPrompts) -> PromptAudit:
    """Names and versions of the prompts of all four parts."""
    return PromptAudit(
        version=verifier.CATALOGUE_VERSION,
        prompts=PromptNames(
            planner=agent.planner,
            executor=agent.executor,
            verifier=PromptRef(name=verifier.PROMPT_NAME, version=verifier.PROMPT_VERSION),
            composer=PromptRef(name=composer.PROMPT_NAME, version=composer.PROMPT_VERSION),
        ),
    )


def build_evaluation(
    prompts: AgentPrompts,
    *,
    readable: bool,
    gate: GatekeeperResult | None = None,
    material: VerifiedMaterial | None = None,
    answer: VerifierAnswer | None = None,
    verifier_failure: AttemptOutcome | None = None,
    composed: tuple[ComposerStatus, ComposerOutput] | None = None,
    retries: int = 0,
    reasons: Sequence[str] = (),
) -> VerifierEvaluation:
    """Build the evaluation of a run that came as far as what is given.

    ``readable`` tells that the agent's output could be parsed. ``reasons`` are further
    codes, such as an abort's. Raises ValueError for a story that cannot be: an answer
    without a gate that let something through, or a composed answer without a verdict.
    """
    if answer is not None and (gate is None or material is None or verifier_failure is not None):
        raise ValueError("a verifier answers only what a gate let through, and then did not fail")
    if composed is not None and answer is None:
        raise ValueError("an answer is composed only after a verdict")
    verifier_status = _verifier_status(answer, verifier_failure)
    composer_status = ComposerStatus.NOT_RUN if composed is None else composed[0]
    found: dict[str, Any] = {}
    if gate is not None:
        found["gatekeeper_result"] = gate
    if material is not None:
        output = StructuredOutput(claims=material.claims)
        found["verified_output"] = output
        found["executor_structured_output"] = output
        found["verified_evidence"] = verifier.shown_evidence(material.evidence)
    if answer is not None and gate is not None and material is not None:
        found |= _judged(answer, final_verdict(answer, material, gate.ceiling))
    if composed is not None:
        found["composer_output"] = composed[1]
    evaluation = VerifierEvaluation(
        executor_status=ExecutorStatus.COMPLETED if readable else ExecutorStatus.INVALID_OUTPUT,
        gatekeeper_status=(
            GatekeeperStatus.NOT_RUN if gate is None else GatekeeperStatus(gate.ceiling.value)
        ),
        verifier_status=verifier_status,
        composer_status=composer_status,
        evidence_retries=retries,
        failure_reasons=(
            *_failures(readable, gate, verifier_failure, composer_status),
            *reasons,
        ),
        prompt_audit=prompt_audit(prompts),
        traceability_version=TRACEABILITY_VERSION,
    )
    return evaluation.model_copy(update=found)


def merged(
    self_evaluation: Mapping[str, JsonValue], evaluation: VerifierEvaluation
) -> dict[str, JsonValue]:
    """The container with this evaluation in its channel; every other channel as it was."""
    return {**self_evaluation, CHANNEL: evaluation.model_dump(mode="json", exclude_unset=True)}


def _judged(answer: VerifierAnswer, verdict: Verdict) -> dict[str, Any]:
    return {
        "model_verdict": answer.verdict,
        "effective_verdict": verdict,
        "verdict": verdict,
        "groundedness_score": answer.groundedness_score,
        "rationale": answer.rationale,
        "claim_checks": answer.claim_checks,
        "facts_checked": answer.facts_checked,
    }


def _verifier_status(
    answer: VerifierAnswer | None, failure: AttemptOutcome | None
) -> VerifierStatus:
    if answer is not None:
        return VerifierStatus.COMPLETED
    return VerifierStatus.NOT_RUN if failure is None else failed_status(failure)


def _failures(
    readable: bool,
    gate: GatekeeperResult | None,
    verifier_failure: AttemptOutcome | None,
    composer_status: ComposerStatus,
) -> tuple[str, ...]:
    found: list[str] = []
    if not readable:
        found.append("EXECUTOR_INVALID_OUTPUT")
    if gate is not None and gate.ceiling is Verdict.REJECT:
        found.append("GATEKEEPER_REJECT")
    if verifier_failure is not None:
        found.append(f"VERIFIER_{verifier_failure.value}")
    if composer_status is ComposerStatus.FALLBACK:
        found.append("COMPOSER_OVER_LIMIT")
    return tuple(found)
