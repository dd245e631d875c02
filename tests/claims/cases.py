"""Claims, records and answers for tests: plain builders on the records of ``tests.strategies``."""

import json
from collections.abc import Mapping
from typing import Any

from contracts.claims import (
    ClaimCheck,
    Classification,
    ExecutorOutput,
    VerifiedClaim,
    VerifiedMaterial,
)
from tests.strategies import FOUND, RUN_ID, record, stored
from worker.claims.gatekeeper import Gate, gatekeep
from worker.claims.output import read_output
from worker.guards.tools import BUILT_IN

SECRET = "the-agent-made-this-up"

QUOTES: dict[str, tuple[str, str]] = {
    "lookup_knowledge": ("$.documents[0].excerpt", "Raise maxmemory."),
    "query_logs": ("$.events[0].message", "upstream db timed out"),
    "query_metrics": ("$.series[0].points[0].value", "4"),
    "query_mysql": ("$.rows[0][0]", "DEAD"),
    "run_command": ("$.stdout", "inactive"),
}
"""A path into ``FOUND`` of each tool, and a text that stands there."""


def binding(tool: str = "run_command", **changes: Any) -> dict[str, Any]:
    """Build a binding that passes against :func:`records`; ``changes`` replace fields."""
    path, text = QUOTES[tool]
    return {
        "invocation_id": f"call-{tool}",
        "tool_name": tool,
        "raw_path": path,
        "matched_text": text,
        **changes,
    }


def claim(claim_id: str = "c1", *bindings: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Build a confirmed, critical claim; without bindings it gets a good one."""
    return {
        "claim_id": claim_id,
        "text": f"Statement {claim_id}.",
        "critical": True,
        "confirmed": True,
        "evidence_bindings": list(bindings) or [binding()],
        **changes,
    }


def document(*claims: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Build a document; without claims it gets two good ones."""
    return {
        "schema_version": "executor_evidence_v2",
        "claims": list(claims) or [claim("c1"), claim("c2", binding("query_logs"))],
        "diagnosis_context": {"systems": ["redis"]},
        **changes,
    }


def output(*claims: Mapping[str, Any], **changes: Any) -> ExecutorOutput:
    """Build a document that parses."""
    parsed = read_output(document(*claims, **changes))
    assert parsed is not None
    return parsed


def records(**changes: bytes | None) -> dict[str, bytes | None]:
    """One good record of each tool under ``call-<tool>``; ``changes`` replace some of them."""
    good: dict[str, bytes | None] = {
        f"call-{tool}": stored(record(tool, tool_call_id=f"call-{tool}")) for tool in FOUND
    }
    return {**good, **{f"call-{tool}": content for tool, content in changes.items()}}


def gate_of(
    found: ExecutorOutput, stored_records: Mapping[str, bytes | None] | None = None
) -> Gate:
    return gatekeep(
        RUN_ID, found, records() if stored_records is None else stored_records, BUILT_IN
    )


def material_of(
    *claims: Mapping[str, Any],
    stored_records: Mapping[str, bytes | None] | None = None,
    **changes: Any,
) -> VerifiedMaterial:
    """What the gate lets through of these claims; something must pass."""
    material = gate_of(output(*claims, **changes), stored_records).material
    assert material is not None
    return material


def verified(claim_id: str, *, critical: bool = True, confirmed: bool = True) -> VerifiedClaim:
    return VerifiedClaim(
        claim_id=claim_id, text=f"Statement {claim_id}.", critical=critical, confirmed=confirmed
    )


def check(claim_id: str, classification: Classification) -> ClaimCheck:
    return ClaimCheck(claim_id=claim_id, classification=classification, evidence_refs=())


def answer(material: VerifiedMaterial, **changes: Any) -> dict[str, Any]:
    """Build the answer that finds every claim observed; ``changes`` replace fields."""
    return {
        "rationale": "The quotations say so.",
        "claim_checks": [
            {
                "claim_id": found.claim_id,
                "classification": "direct_observation",
                "evidence_refs": [
                    {
                        "invocation_id": item.invocation_id,
                        "tool_name": item.tool_name,
                        "raw_path": item.raw_path,
                    }
                    for item in material.evidence
                    if item.claim_id == found.claim_id
                ],
            }
            for found in material.claims
        ],
        "verdict": "PASS",
        "groundedness_score": 0.9,
        **changes,
    }


def answer_text(material: VerifiedMaterial, **changes: Any) -> str:
    return json.dumps(answer(material, **changes))
