"""Reading what an agent handed in, and what can be told of it without any record."""

from collections.abc import Container, Iterator
from typing import Any

from pydantic import ValidationError

from contracts.base import is_blank
from contracts.claims import OUTPUT_VERSION, Claim, EvidenceGap, ExecutorOutput, Finding
from contracts.strict_json import Flaw, StrictJsonError, canonical, flaws, parse
from worker.claims.rules import GateCode, Rule, finding

MAX_CLAIMS = 200
MAX_CLAIM_ID = 128
"""Characters: ids are written to the record, which is no place for prose."""
MAX_BINDINGS = 500
"""Bindings of all claims together."""

REMOVED = ("diagnosis_summary", "user_facing_answer")
"""Free text that earlier agents sent along. Even a null there fails the schema rule."""


def read_output(value: Any) -> ExecutorOutput | None:
    """Read a document, or a string that holds one, strictly. None is INVALID_OUTPUT.

    ``value`` may hold the flaws of :func:`contracts.strict_json.read`.
    """
    try:
        if isinstance(value, str):
            value = parse(value)
        if isinstance(value, Flaw) or any(flaws(value)):
            return None
        return ExecutorOutput.model_validate_json(canonical(value))
    except (StrictJsonError, ValidationError):
        return None


def bound_ids(output: ExecutorOutput) -> tuple[str, ...]:
    """The invocation ids that the claims name, each once, in their order."""
    return tuple(
        dict.fromkeys(
            binding.invocation_id for claim in output.claims for binding in claim.evidence_bindings
        )
    )


def known_gaps(output: ExecutorOutput, tools: Container[str]) -> tuple[EvidenceGap, ...]:
    """The gaps that name an existing claim and a known tool, in their order."""
    claims = {claim.claim_id for claim in output.claims}
    return tuple(
        gap for gap in output.evidence_gaps if gap.claim_id in claims and gap.tool_name in tools
    )


def check_schema(output: ExecutorOutput) -> tuple[Finding, ...]:
    """All that breaks ``schema.executor_v2``, in the order of the document."""
    return tuple(_schema(output))


def check_gaps(output: ExecutorOutput, tools: Container[str]) -> tuple[Finding, ...]:
    """Warnings about gaps that name nothing that there is; such a gap asks for nothing."""
    claims = {claim.claim_id for claim in output.claims}
    found: list[Finding] = []
    for index, gap in enumerate(output.evidence_gaps):
        target = f"evidence_gaps[{index}]"
        if gap.claim_id not in claims:
            found.append(finding(Rule.GAP_REF, GateCode.GAP_CLAIM_UNKNOWN, f"{target}.claim_id"))
        if gap.tool_name not in tools:
            found.append(finding(Rule.GAP_REF, GateCode.GAP_TOOL_UNKNOWN, f"{target}.tool_name"))
    return tuple(found)


def _schema(output: ExecutorOutput) -> Iterator[Finding]:
    for name in REMOVED:
        if name in output.model_fields_set:
            yield finding(Rule.SCHEMA, GateCode.FIELD_REMOVED, name)
    if output.schema_version != OUTPUT_VERSION:
        yield finding(Rule.SCHEMA, GateCode.VERSION_UNKNOWN, "schema_version")
    if not output.claims:
        yield finding(Rule.SCHEMA, GateCode.CLAIMS_EMPTY, "claims")
    if len(output.claims) > MAX_CLAIMS:
        yield finding(Rule.SCHEMA, GateCode.CLAIMS_TOO_MANY, "claims")
    if sum(len(claim.evidence_bindings) for claim in output.claims) > MAX_BINDINGS:
        yield finding(Rule.SCHEMA, GateCode.BINDINGS_TOO_MANY, "claims")
    seen: set[str] = set()
    for index, claim in enumerate(output.claims):
        for code, field in _claim(claim, claim.claim_id in seen):
            yield finding(Rule.SCHEMA, code, f"claims[{index}].{field}")
        seen.add(claim.claim_id)


def _claim(claim: Claim, repeated: bool) -> Iterator[tuple[GateCode, str]]:
    if is_blank(claim.claim_id):
        yield GateCode.CLAIM_ID_BLANK, "claim_id"
    elif repeated:
        yield GateCode.CLAIM_ID_DUPLICATE, "claim_id"
    if len(claim.claim_id) > MAX_CLAIM_ID:
        yield GateCode.CLAIM_ID_TOO_LONG, "claim_id"
    if is_blank(claim.text):
        yield GateCode.TEXT_BLANK, "text"
    if claim.confirmed and not claim.evidence_bindings:
        yield GateCode.BINDINGS_MISSING, "evidence_bindings"
