"""The verified evidence snapshot: all that the semantic review may see of the evidence.

It holds no tool call id, no key, no raw response and nothing that the draft
does not cite.
"""

from pydantic import JsonValue

from contracts.base import Contract, SourceName, Timestamp


class VerifiedEvidence(Contract):
    """One verified call: where it looked (``scope``) and what stood there.

    ``excerpt`` is exact text; ``values`` are bounded structured values. Both are
    absent for an empty result.
    """

    tool: str
    source: SourceName
    observed_at: Timestamp
    scope: dict[str, JsonValue]
    found: bool
    excerpt: str | None = None
    values: JsonValue = None


class AnalysisEvidence(Contract):
    analysis_id: str
    kind: str
    text: str
    evidence: tuple[VerifiedEvidence, ...]


class Snapshot(Contract):
    analyses: tuple[AnalysisEvidence, ...]
