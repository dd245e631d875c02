"""What a guard holds against a draft: a stable code, and a place in the draft."""

from dataclasses import dataclass
from enum import StrEnum


class ViolationCode(StrEnum):
    """Codes are part of the evaluation record and of the repair question: never rename one."""

    # the draft's own structure
    CONCLUSION_MISSING = "CONCLUSION_MISSING"
    ANALYSIS_ID_BLANK = "ANALYSIS_ID_BLANK"
    ANALYSIS_ID_DUPLICATE = "ANALYSIS_ID_DUPLICATE"
    KIND_UNSUPPORTED = "KIND_UNSUPPORTED"
    TEXT_BLANK = "TEXT_BLANK"
    TOOL_CALLS_EMPTY = "TOOL_CALLS_EMPTY"
    REFERENCES_EMPTY = "REFERENCES_EMPTY"
    REFERENCE_UNKNOWN = "REFERENCE_UNKNOWN"
    REFERENCE_DUPLICATE = "REFERENCE_DUPLICATE"

    # the record behind a cited call
    RECORD_MISSING = "RECORD_MISSING"
    RECORD_TOO_LARGE = "RECORD_TOO_LARGE"
    RECORD_UNREADABLE = "RECORD_UNREADABLE"
    RECORD_FOREIGN_RUN = "RECORD_FOREIGN_RUN"
    RECORD_ID_MISMATCH = "RECORD_ID_MISMATCH"
    RECORD_NOT_READY = "RECORD_NOT_READY"
    STATUS_NOT_CITABLE = "STATUS_NOT_CITABLE"
    RESULT_EMPTY = "RESULT_EMPTY"
    TOOL_UNKNOWN = "TOOL_UNKNOWN"
    REQUEST_INVALID = "REQUEST_INVALID"
    PROJECTION_INVALID = "PROJECTION_INVALID"
    PROJECTION_MISMATCH = "PROJECTION_MISMATCH"
    STATUS_INCONSISTENT = "STATUS_INCONSISTENT"
    EVIDENCE_SELF_AUTHORED = "EVIDENCE_SELF_AUTHORED"

    # what the draft makes of a good record
    CALL_DEDUPLICATED = "CALL_DEDUPLICATED"
    CALL_TRUNCATED = "CALL_TRUNCATED"
    KIND_STATUS_MISMATCH = "KIND_STATUS_MISMATCH"
    EVIDENCE_TOO_LARGE = "EVIDENCE_TOO_LARGE"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    ``target`` is a position such as ``analyses[2].tool_call_ids[0]``: it holds field
    names and indexes only, never an id, a text or anything that was stored.
    """

    code: ViolationCode
    target: str
