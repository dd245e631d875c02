"""Small sound drafts and records, to be broken by the tests."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from contracts.base import isoformat
from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle
from contracts.messages import DraftReady
from contracts.strict_json import canonical

STARTED = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def command_record(
    run_id: str, call_id: str, *, command: str, stdout: str, exit_code: int = 0, **changes: Any
) -> InvocationRecord:
    found = bool(stdout.strip())
    status = EvidenceStatus.EVIDENCE_FOUND if found else EvidenceStatus.NO_EVIDENCE
    result = {
        "tool_name": "run_command",
        "tool_call_id": call_id,
        "evidence_status": status.value,
        "exit_code": exit_code,
        "stdout": stdout,
        "stderr": "",
    }
    fields: dict[str, Any] = {
        "run_id": run_id,
        "session_id": "session-1",
        "tool_call_id": call_id,
        "tool_name": "run_command",
        "lifecycle": Lifecycle.READY,
        "evidence_status": status,
        "request": {"command": command, "host": "web-1"},
        "agent_result": canonical(result).decode(),
        "started_at": STARTED,
        "completed_at": STARTED + timedelta(seconds=1),
        "success": True,
    }
    return InvocationRecord(**{**fields, **changes})


def disk_records(run_id: str) -> tuple[InvocationRecord, ...]:
    return (
        command_record(
            run_id,
            "call-df",
            command="df -h /var",
            stdout="Filesystem Size Used Avail Use% Mounted on\n/dev/sdb1 20G 20G 0 100% /var",
        ),
        command_record(
            run_id,
            "call-grep",
            command="grep -c oom-killer /var/log/kern.log",
            stdout="",
            exit_code=1,
        ),
    )


def disk_draft() -> dict[str, Any]:
    """A sound draft on :func:`disk_records`."""
    return {
        "conclusion": {
            "text": "The file system /var on /dev/sdb1 is full: 100% of 20G are used.",
            "based_on_analysis_ids": ["a1"],
        },
        "analyses": [
            {
                "analysis_id": "a1",
                "kind": "NORMAL",
                "text": "df shows /dev/sdb1 on /var with 20G of 20G used, 100%.",
                "tool_call_ids": ["call-df"],
            },
            {
                "analysis_id": "a2",
                "kind": "NEGATIVE_OBSERVATION",
                "text": "No oom-killer lines were found in kern.log.",
                "tool_call_ids": ["call-grep"],
            },
        ],
        "action_plan": [
            {
                "text": "Free space on /var.",
                "based_on_analysis_ids": ["a1"],
                "requires_human_confirmation": True,
            }
        ],
        "recommendations": [],
        "limitations": ["Only one host was looked at."],
        "missing_context": [],
    }


def draft_ready(run_id: str, draft: Any, **changes: Any) -> DraftReady:
    fields = {
        "run_id": run_id,
        "session_id": "session-1",
        "query": f"Why does checkout fail? ({run_id})",
        "draft": draft,
    }
    return DraftReady.model_validate({**fields, **changes}, strict=False)


def event(run_id: str, draft: Any, *, data: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """A CloudEvent as a producer in any language would write it, as a plain object.

    ``data`` adds to or replaces fields of the data, ``attributes`` those of the envelope.
    """
    return {
        "specversion": "1.0",
        "id": str(uuid4()),
        "source": "/agents/plain",
        "type": "release_stage.DraftReady.v1",
        "subject": run_id,
        "time": isoformat(datetime.now(UTC)),
        **attributes,
        "data": {
            "run_id": run_id,
            "session_id": "session-1",
            "query": f"Why does checkout fail? ({run_id})",
            "draft": draft,
            **(data or {}),
        },
    }
