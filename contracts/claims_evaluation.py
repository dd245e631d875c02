"""What the record of a claims run holds under ``self_evaluation.verifier_evaluation``.

It tells how far each part came and why, with names and versions of prompts. It holds
no prompt, no raw output of the agent and no tool trace. A field that does not apply is
absent; above all there is no verdict unless a verifier came to one.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from contracts.base import Contract
from contracts.claims import (
    ClaimCheck,
    FactCheck,
    GatekeeperResult,
    PromptRef,
    ShownEvidence,
    Verdict,
    VerifiedClaim,
)

Code = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
"""A reason that can hold no prose."""


class ExecutorStatus(StrEnum):
    COMPLETED = "COMPLETED"
    INVALID_OUTPUT = "INVALID_OUTPUT"


class GatekeeperStatus(StrEnum):
    NOT_RUN = "NOT_RUN"
    PASS = "PASS"  # noqa: S105 - a status, no secret
    LOW_CONFID = "LOW_CONFID"
    REJECT = "REJECT"


class VerifierStatus(StrEnum):
    NOT_RUN = "NOT_RUN"
    COMPLETED = "COMPLETED"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    """Its last answer could not be read or had another shape."""
    UNAVAILABLE = "UNAVAILABLE"
    """It did not answer: timeout, transport, a provider's refusal, an input over its limit."""


class ComposerStatus(StrEnum):
    NOT_RUN = "NOT_RUN"
    COMPLETED = "COMPLETED"
    FALLBACK = "FALLBACK"
    """The answer was over a limit; the bare template took its place."""


class ComposerOutput(Contract):
    """The composed answer without its words: which claims stand where."""

    confirmed_claim_ids: tuple[str, ...]
    possible_claim_ids: tuple[str, ...]
    gaps: Annotated[int, Field(ge=0)]
    bare: bool


class PromptNames(Contract):
    planner: PromptRef
    executor: PromptRef
    verifier: PromptRef
    composer: PromptRef


class PromptAudit(Contract):
    """``version`` is the version of the catalogue that our own two prompts belong to."""

    version: str
    prompts: PromptNames


class StructuredOutput(Contract):
    """The agent's document as far as it was verified, and nothing else of it."""

    claims: tuple[VerifiedClaim, ...]


class VerifierEvaluation(Contract):
    """The whole evaluation. ``verdict`` repeats ``effective_verdict`` for older readers.

    ``evidence_retries`` is 0 or 1.
    """

    executor_status: ExecutorStatus
    gatekeeper_status: GatekeeperStatus
    verifier_status: VerifierStatus
    composer_status: ComposerStatus
    evidence_retries: Annotated[int, Field(ge=0, le=1)]
    failure_reasons: tuple[Code, ...]
    prompt_audit: PromptAudit
    traceability_version: str
    gatekeeper_result: GatekeeperResult | None = None
    verified_output: StructuredOutput | None = None
    verified_evidence: tuple[ShownEvidence, ...] | None = None
    executor_structured_output: StructuredOutput | None = None
    model_verdict: Verdict | None = None
    effective_verdict: Verdict | None = None
    verdict: Verdict | None = None
    groundedness_score: float | None = None
    rationale: str | None = None
    claim_checks: tuple[ClaimCheck, ...] | None = None
    facts_checked: tuple[FactCheck, ...] | None = None
    composer_output: ComposerOutput | None = None
