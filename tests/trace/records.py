"""Invocation records as a table writes them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOGS = {"source": "gateway", "query": "timeout"}


def record(call_id: str, tool: str = "query_logs", **fields: Any) -> InvocationRecord:
    """A completed call without evidence, unless the fields say otherwise."""
    given: dict[str, Any] = {
        "run_id": "run-1",
        "session_id": "s",
        "tool_call_id": call_id,
        "tool_name": tool,
        "lifecycle": Lifecycle.READY,
        "evidence_status": EvidenceStatus.NO_EVIDENCE,
        "request": LOGS,
        "started_at": NOON + timedelta(seconds=int(call_id.strip("c") or 0)),
        "success": True,
        **fields,
    }
    return InvocationRecord(**given)


def hit(
    call_id: str, content: dict[str, Any] | str, tool: str = "query_logs", **fields: Any
) -> Any:
    """A call that found what ``content`` holds."""
    text = content if isinstance(content, str) else json.dumps(content)
    found = EvidenceStatus.EVIDENCE_FOUND
    return record(call_id, tool, evidence_status=found, agent_result=text, **fields)


def line(message: str, level: str | None = "ERROR") -> dict[str, Any]:
    """A log result of one line."""
    event = {"timestamp": "12:00:01", "message": message, "level": level}
    return {"total_matches": 1, "patterns": [], "events": [event]}


def failed(call_id: str, message: str = "TOOL_TIMED_OUT: 30 s", **fields: Any) -> InvocationRecord:
    return record(
        call_id,
        lifecycle=Lifecycle.ERROR,
        evidence_status=EvidenceStatus.ERROR,
        success=False,
        error_message=message,
        **fields,
    )


def deduplicated(call_id: str, **fields: Any) -> InvocationRecord:
    return record(call_id, deduplicated=True, **fields)


def unfinished(call_id: str) -> InvocationRecord:
    return record(call_id, lifecycle=Lifecycle.PROJECTING, evidence_status=None, success=None)
