"""An invocation record through its life: PROJECTING, then READY or ERROR, then final.

Pure: who writes the records, and where, is decided elsewhere. Each function returns a new
record. Sizes are bytes of UTF-8.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from contracts.evidence import (
    EvidenceStatus,
    InvocationRecord,
    Lifecycle,
    OutputState,
    Retrieval,
)
from contracts.strict_json import canonical, parse
from worker.trace.bounds import cut

MOST_REQUEST = 32_768
MOST_RESULT = 262_144
MOST_PREVIEW = 2_048
MOST_ERROR = 500
MOST_DETAILS = 8_192
"""Retrieval details that are larger are left out, and ``details`` says so."""


class ErrorCode(StrEnum):
    """Why a record is an ERROR; words of the tool may follow. The last ones are of transcripts."""

    TOOL_FAILED = "TOOL_FAILED"
    TOOL_TIMED_OUT = "TOOL_TIMED_OUT"
    TOOL_CANCELLED = "TOOL_CANCELLED"
    TOOL_INTERRUPTED = "TOOL_INTERRUPTED"
    TOOL_UNKNOWN = "TOOL_UNKNOWN"
    NOTHING_REPORTED = "NOTHING_REPORTED"
    REQUEST_INVALID = "REQUEST_INVALID"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    PROJECTION_FAILED = "PROJECTION_FAILED"
    PROJECTION_INVALID = "PROJECTION_INVALID"
    PROJECTION_CONTRADICTORY = "PROJECTION_CONTRADICTORY"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    NO_RESULT = "NO_RESULT"
    RESULT_WITHOUT_CONTENT = "RESULT_WITHOUT_CONTENT"
    RESULT_INCOMPLETE = "RESULT_INCOMPLETE"
    RESULT_NOT_JSON = "RESULT_NOT_JSON"
    ARGUMENTS_NOT_A_JSON_OBJECT = "ARGUMENTS_NOT_A_JSON_OBJECT"
    ARGUMENTS_WITHOUT_COMMAND = "ARGUMENTS_WITHOUT_COMMAND"


@dataclass(frozen=True)
class Ended:
    """When a call ended, and how long it took in milliseconds, as far as that is known."""

    at: datetime | None = None
    duration_ms: int | None = None


def readable_request(request: Any) -> tuple[dict[str, JsonValue], ErrorCode | None]:
    """A call's arguments as a JSON object, or none of them and the reason why not.

    Times, decimals, paths and the like become text, as pydantic writes them.
    """
    try:
        plain = parse(canonical(to_jsonable_python(request)))
    except (ValueError, TypeError, RecursionError):
        return {}, ErrorCode.REQUEST_INVALID
    if not isinstance(plain, dict):
        return {}, ErrorCode.REQUEST_INVALID
    if len(canonical(plain)) > MOST_REQUEST:
        return {}, ErrorCode.REQUEST_TOO_LARGE
    return plain, None


def ready(
    record: InvocationRecord,
    ended: Ended,
    *,
    result: str,
    status: EvidenceStatus,
    shown: str,
    truncated: bool,
    deduplicated: bool = False,
    retrieval: Retrieval | None = None,
) -> InvocationRecord:
    """The record of a call that completed, with or without evidence.

    ``result`` is a projection's JSON, ``shown`` the text of which the preview is the
    beginning. A result over MOST_RESULT is an ERROR: half a projection is none.
    """
    if len(result.encode()) > MOST_RESULT:
        return failed(record, ended, ErrorCode.RESULT_TOO_LARGE)
    return record.model_copy(
        update={
            "lifecycle": Lifecycle.READY,
            "evidence_status": status,
            "agent_result": result,
            "success": True,
            "truncated": truncated,
            "deduplicated": deduplicated,
            **_retrieval(retrieval),
            **_end(ended),
            **_preview(shown),
        }
    )


def failed(
    record: InvocationRecord,
    ended: Ended,
    message: str,
    *,
    shown: str = "",
    retrieval: Retrieval | None = None,
) -> InvocationRecord:
    """The record of a call that failed, or whose result cannot be projected.

    ``message`` is an ErrorCode, words behind one, or the words of the tool alone.
    """
    return record.model_copy(
        update={
            "lifecycle": Lifecycle.ERROR,
            "evidence_status": EvidenceStatus.ERROR,
            "agent_result": None,
            "success": False,
            "error_message": cut(message, MOST_ERROR)[0],
            **_retrieval(retrieval),
            **_end(ended),
            **_preview(shown),
        }
    )


def _end(ended: Ended) -> dict[str, object]:
    return {"completed_at": ended.at, "duration_ms": ended.duration_ms}


def _preview(shown: str) -> dict[str, object]:
    if not shown.strip():
        return {"output_state": OutputState.NO_OUTPUT, "output_preview": None}
    preview, was_cut = cut(shown, MOST_PREVIEW)
    return {
        "output_state": OutputState.PREVIEW,
        "output_preview": preview,
        "preview_truncated": was_cut,
    }


def _retrieval(retrieval: Retrieval | None) -> dict[str, object]:
    if retrieval is None:
        return {}
    try:
        fits = len(canonical(retrieval.details)) <= MOST_DETAILS
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        retrieval = retrieval.model_copy(update={"details": {"left_out": True}})
    return {"retrieval": retrieval}
