"""The evidence check: every cited call exists, belongs to this run and holds evidence.

Pure. The records come in as they were stored; whatever is wrong with them is a
violation and never an exception. Each record is read once, however often it is cited.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from contracts.draft import NEGATIVE_OBSERVATION, NORMAL, DiagnosisDraft
from contracts.fallback import VerifiedSource
from contracts.snapshot import Snapshot
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.snapshot import (
    MAX_EVIDENCE_BYTES,
    build_snapshot,
    evidence_size,
    verified_sources,
)
from worker.guards.structure import check_structure
from worker.guards.tools import AnyProjection
from worker.guards.violations import Violation, ViolationCode

Records = Mapping[str, bytes | None]
"""What was stored under each cited tool call id: an InvocationRecord's JSON, or None."""

Tools = Mapping[str, AnyProjection]

_FOUND_BY_KIND = {NORMAL: True, NEGATIVE_OBSERVATION: False}


@dataclass(frozen=True)
class EvidenceReport:
    """The outcome of a check: violations, or a snapshot with its sources, never both."""

    violations: tuple[Violation, ...]
    snapshot: Snapshot | None
    sources: tuple[VerifiedSource, ...]

    def __post_init__(self) -> None:
        if bool(self.violations) == (self.snapshot is not None):
            raise ValueError("a report holds either violations or a snapshot")
        if self.violations and self.sources:
            raise ValueError("a report with violations has no verified sources")


def cited_ids(draft: DiagnosisDraft) -> tuple[str, ...]:
    """The tool call ids that a draft cites, each once, in the order of the draft."""
    return tuple(
        dict.fromkeys(
            tool_call_id for analysis in draft.analyses for tool_call_id in analysis.tool_call_ids
        )
    )


def check_evidence(
    run_id: str, draft: DiagnosisDraft, records: Records, tools: Tools
) -> EvidenceReport:
    """Check a concluded draft: its structure first, then each citation in its order.

    A draft without a conclusion gives CONCLUSION_MISSING. Time is linear in the draft
    and the records.
    """
    calls = _read(run_id, cited_ids(draft), records, tools)
    violations = (*check_structure(draft), *_misused(draft, calls))
    if violations:
        return EvidenceReport(violations, None, ())
    verified = {key: call for key, call in calls.items() if isinstance(call, VerifiedCall)}
    if evidence_size(draft, verified) > MAX_EVIDENCE_BYTES:
        too_large = Violation(ViolationCode.EVIDENCE_TOO_LARGE, "analyses")
        return EvidenceReport((too_large,), None, ())
    return EvidenceReport((), build_snapshot(draft, verified), verified_sources(verified.values()))


def verified_calls(
    run_id: str, ids: Iterable[str], records: Records, tools: Tools
) -> tuple[VerifiedCall, ...]:
    """The calls among these that really looked, each once, in the order of the ids.

    A deduplicated call is left out: it was answered with "seen before" instead of a look.
    """
    calls = _read(run_id, dict.fromkeys(ids), records, tools)
    return tuple(
        call for call in calls.values() if isinstance(call, VerifiedCall) and not call.deduplicated
    )


def verified_references(
    run_id: str, draft: DiagnosisDraft, records: Records, tools: Tools
) -> tuple[VerifiedCall, ...]:
    """The calls that a draft without a conclusion cites rightly, each once, in its order.

    A call counts if at least one analysis may cite it: its kind fits what was found.
    Bad references are left out and break nothing else.
    """
    calls = _read(run_id, cited_ids(draft), records, tools)
    good: dict[str, VerifiedCall] = {}
    for analysis in draft.analyses:
        for tool_call_id in analysis.tool_call_ids:
            call = calls[tool_call_id]
            if isinstance(call, VerifiedCall) and _misuse(analysis.kind, call) is None:
                good[tool_call_id] = call
    return tuple(good.values())


def _read(
    run_id: str, ids: Iterable[str], records: Records, tools: Tools
) -> dict[str, VerifiedCall | ViolationCode]:
    return {key: read_call(run_id, key, records.get(key), tools) for key in ids}


def _misused(
    draft: DiagnosisDraft, calls: Mapping[str, VerifiedCall | ViolationCode]
) -> Iterator[Violation]:
    for index, analysis in enumerate(draft.analyses):
        for position, tool_call_id in enumerate(analysis.tool_call_ids):
            call = calls[tool_call_id]
            code = _misuse(analysis.kind, call) if isinstance(call, VerifiedCall) else call
            if code is not None:
                yield Violation(code, f"analyses[{index}].tool_call_ids[{position}]")


def _misuse(kind: str, call: VerifiedCall) -> ViolationCode | None:
    """Why an analysis of this kind may not cite a good call; None if it may.

    An unsupported kind may cite nothing.
    """
    if call.deduplicated:
        return ViolationCode.CALL_DEDUPLICATED
    if _FOUND_BY_KIND.get(kind) is not call.found:
        return ViolationCode.KIND_STATUS_MISMATCH
    if call.truncated and not call.found:
        return ViolationCode.CALL_TRUNCATED
    return None
