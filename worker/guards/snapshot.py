"""The verified snapshot: what the review may see of the evidence, always in the same bytes.

No field is filled from a tool call id, a key or a raw response, so none can be in it.
"""

from collections.abc import Iterable, Mapping

from contracts.draft import DiagnosisDraft
from contracts.fallback import VerifiedSource
from contracts.snapshot import AnalysisEvidence, Snapshot, VerifiedEvidence
from contracts.strict_json import canonical
from worker.guards.calls import VerifiedCall

MAX_SOURCES = 50
"""Sources that a fallback names, at most."""

MAX_EVIDENCE_BYTES = 32 * 1024 * 1024
"""Stored bytes behind all citations, counted once an analysis.

A large result that thousands of analyses cite would otherwise be written out
thousands of times. No model takes that much, so the limit only spares memory.
"""


def evidence_size(draft: DiagnosisDraft, calls: Mapping[str, VerifiedCall]) -> int:
    """The stored bytes that a snapshot of this draft would repeat."""
    return sum(
        calls[tool_call_id].size
        for analysis in draft.analyses
        for tool_call_id in dict.fromkeys(analysis.tool_call_ids)
    )


def build_snapshot(draft: DiagnosisDraft, calls: Mapping[str, VerifiedCall]) -> Snapshot:
    """Group the evidence by analysis, in the order of the draft.

    ``calls`` holds every cited call by its id; a call cited twice by one analysis
    stands there once.
    """
    evidence = {tool_call_id: _evidence(call) for tool_call_id, call in calls.items()}
    return Snapshot(
        analyses=tuple(
            AnalysisEvidence(
                analysis_id=analysis.analysis_id,
                kind=analysis.kind,
                text=analysis.text,
                evidence=tuple(
                    evidence[tool_call_id] for tool_call_id in dict.fromkeys(analysis.tool_call_ids)
                ),
            )
            for analysis in draft.analyses
        )
    )


def snapshot_bytes(snapshot: Snapshot) -> bytes:
    """The one canonical form of a snapshot, for hashing, storing and comparing."""
    return canonical(snapshot.model_dump(mode="json"))


def verified_sources(calls: Iterable[VerifiedCall]) -> tuple[VerifiedSource, ...]:
    """The systems that were looked at, each once, in the order of the calls, the first ones."""
    return tuple(dict.fromkeys(call.origin for call in calls))[:MAX_SOURCES]


def _evidence(call: VerifiedCall) -> VerifiedEvidence:
    scope = dict(call.scope)
    if call.truncated:
        scope["truncated"] = True  # a part is shown: the review must not take it for the whole
    return VerifiedEvidence(
        tool=call.origin.tool,
        source=call.origin.source,
        observed_at=call.origin.observed_at,
        scope=scope,
        found=call.found,
        excerpt=call.excerpt,
        values=call.values,
    )
