"""Claims with their evidence bindings: what an agent states, and what is made of it.

``ExecutorOutput`` is the agent's own document, ``executor_evidence_v2``. It is strict in
types only: a removed field, a confirmed claim without a binding, blank or repeated ids
parse here and break the gatekeeper's schema rule there. Unknown fields do not parse,
since nothing would look at them. The other shapes are what gate, verifier and composer
hand to each other, to the reader and to the record.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from contracts.base import Contract, OpenContract, SourceName
from contracts.evidence import TimeWindow
from contracts.fallback import Locale, VerifiedSource

OUTPUT_VERSION = "executor_evidence_v2"
TRACEABILITY_VERSION = "claim_evidence_v1"
"""Version of the references that tie a claim to a record: see ``ShownEvidence``."""

# --- what the agent hands in ----------------------------------------------------


class EvidenceBinding(Contract):
    """One place in one tool result: ``matched_text`` is what stands at ``raw_path``."""

    invocation_id: str
    tool_name: str
    raw_path: str
    matched_text: str


class Claim(Contract):
    """One statement. ``confirmed`` is the agent's own opinion of it."""

    claim_id: str
    text: str
    critical: bool
    confirmed: bool
    evidence_bindings: tuple[EvidenceBinding, ...] = ()


class EvidenceGap(Contract):
    """What the agent could not look at: the claim concerned, and the tool that might tell."""

    claim_id: str
    tool_name: str
    critical: bool
    description: str = ""


class DiagnosisContext(Contract):
    """What the incident is about, in names and times."""

    systems: tuple[str, ...] = ()
    window: TimeWindow | None = None


class ExecutorOutput(Contract):
    """A whole ``executor_evidence_v2`` document. The last two fields were removed from it."""

    schema_version: str = OUTPUT_VERSION
    claims: tuple[Claim, ...]
    evidence_gaps: tuple[EvidenceGap, ...] = ()
    diagnosis_context: DiagnosisContext = DiagnosisContext()
    diagnosis_summary: Annotated[JsonValue, Field(repr=False, deprecated=True)] = None
    user_facing_answer: Annotated[JsonValue, Field(repr=False, deprecated=True)] = None


class PromptRef(OpenContract):
    """Name and version of a prompt. Neither can hold the prompt itself."""

    name: SourceName
    version: SourceName


class AgentPrompts(OpenContract):
    """The prompts that the agent worked with."""

    planner: PromptRef
    executor: PromptRef


# --- what the gatekeeper finds --------------------------------------------------


class Verdict(StrEnum):
    """A verdict, and a ceiling over one. PASS is the most lenient."""

    PASS = "PASS"  # noqa: S105 - a verdict, no secret
    LOW_CONFID = "LOW_CONFID"
    REJECT = "REJECT"


class GateStatus(StrEnum):
    PASS = "pass"  # noqa: S105 - a status, no secret
    FAIL = "fail"


class Severity(StrEnum):
    NONE = "none"
    LOW_CONFID = "low_confid"
    REJECT = "reject"


class Finding(Contract):
    """A broken rule: its name, a stable code, and a place such as ``claims[0].claim_id``."""

    rule: str
    code: str
    target: str


class CheckedBinding(Contract):
    """One binding as it was checked; ``failed_rule`` and ``code`` are null if it passed."""

    target: str
    claim_id: str
    invocation_id: str
    tool_name: str
    raw_path: str
    passed: bool
    failed_rule: str | None
    code: str | None


class GatekeeperResult(Contract):
    """The whole result of the gate. ``rules`` names what was checked, in order."""

    status: GateStatus
    severity: Severity
    ceiling: Verdict
    checked_bindings: tuple[CheckedBinding, ...]
    rules: tuple[str, ...]
    failed_rules: tuple[str, ...]
    warnings: tuple[Finding, ...]
    errors: tuple[Finding, ...]


# --- what passed ----------------------------------------------------------------


class VerifiedClaim(Contract):
    """A claim of which at least one binding passed."""

    claim_id: str
    text: str
    critical: bool
    confirmed: bool


class ShownEvidence(Contract):
    """One passed binding, as the verifier sees it and the record keeps it."""

    claim_id: str
    invocation_id: str
    tool_name: str
    raw_path: str
    matched_text: str


class VerifiedBinding(ShownEvidence):
    """A passed binding with the system that was looked at."""

    origin: VerifiedSource


class NamedGap(Contract):
    """A gap that names an existing claim and a known tool, without the agent's words."""

    claim_id: str
    tool_name: str
    critical: bool


class VerifiedMaterial(Contract):
    """All that goes on from the gate.

    ``left_out`` counts the claims without a passed binding; ``left_out_critical`` tells
    that a critical one is among them.
    """

    claims: tuple[VerifiedClaim, ...]
    evidence: tuple[VerifiedBinding, ...]
    gaps: tuple[NamedGap, ...]
    left_out: Annotated[int, Field(ge=0)]
    left_out_critical: bool


# --- what the verifier answers --------------------------------------------------


class Classification(StrEnum):
    DIRECT_OBSERVATION = "direct_observation"
    REASONABLE_INFERENCE = "reasonable_inference"
    OVERSTATED = "overstated"
    UNSUPPORTED = "unsupported"
    EXTERNAL_UNKNOWN = "external_unknown"
    CONTRADICTED = "contradicted"


class FactClass(StrEnum):
    """The older, coarser classes, kept for those who still read ``facts_checked``."""

    DIRECT_EVIDENCE = "direct_evidence"
    INDIRECT_SUPPORT = "indirect_support"
    NO_EVIDENCE = "no_evidence"
    CONTRADICTED = "contradicted"


class EvidenceRef(Contract):
    """Points at one verified binding of the claim that is checked."""

    invocation_id: str
    tool_name: str
    raw_path: str


class ClaimCheck(Contract):
    claim_id: str
    classification: Classification
    evidence_refs: tuple[EvidenceRef, ...]


class FactCheck(Contract):
    claim_id: str
    classification: FactClass


class VerifierAnswer(Contract):
    """A valid answer. ``rationale`` is for the evaluation record and for nothing else."""

    rationale: str
    claim_checks: tuple[ClaimCheck, ...]
    verdict: Verdict
    groundedness_score: Annotated[float, Field(ge=0, le=1)]
    facts_checked: tuple[FactCheck, ...] = ()


class RetryContext(Contract):
    """Tells the verifier that evidence was asked for once, and what was asked for."""

    requested: tuple[NamedGap, ...]


# --- what a reader gets ---------------------------------------------------------


class Statement(Contract):
    """One claim in the agent's words, labelled in ours, with the systems it rests on."""

    label: str
    text: str
    critical: bool
    sources: tuple[VerifiedSource, ...]


class GapNote(Contract):
    """What is missing, in fixed words. ``tool`` might tell; null where no tool was named."""

    tool: str | None
    critical: bool
    text: str


class ComposedAnswer(Contract):
    """The answer of a claims run: what is confirmed, what is possible, what is missing.

    ``bare`` tells that only the fixed words are left: the claims were rejected, or the
    answer would have been over a limit.
    """

    locale: Locale
    title: str
    message: str
    confirmed: tuple[Statement, ...]
    possible: tuple[Statement, ...]
    gaps: tuple[GapNote, ...]
    bare: bool
