"""Drafts of any size with the records that they cite, all of them sound."""

from typing import Any

from contracts.evidence import InvocationRecord
from tests.pipeline.cases import command_record

ANALYSES, CALLS = 4, 5
"""The size of an ordinary run: 20 tool calls."""


def draft_of(analyses: int = ANALYSES, calls: int = CALLS) -> dict[str, Any]:
    """A draft whose every analysis cites ``calls`` calls of its own."""
    return {
        "conclusion": {
            "text": "The file system /var on /dev/sdb1 is full: 100% of 20G are used.",
            "based_on_analysis_ids": ["a0"],
        },
        "analyses": [
            {
                "analysis_id": f"a{index}",
                "kind": "NORMAL",
                "text": f"df shows /dev/sdb1 on /var with 20G of 20G used, 100%, look {index}.",
                "tool_call_ids": [_call_id(index, call) for call in range(calls)],
            }
            for index in range(analyses)
        ],
        "action_plan": [{"text": "Free space on /var.", "based_on_analysis_ids": ["a0"]}],
    }


def records_of(
    run_id: str, analyses: int = ANALYSES, calls: int = CALLS
) -> tuple[InvocationRecord, ...]:
    """The records that :func:`draft_of` cites."""
    return tuple(
        command_record(
            run_id,
            _call_id(index, call),
            command=f"df -h /var # {index}.{call}",
            stdout="Filesystem Size Used Avail Use% Mounted on\n/dev/sdb1 20G 20G 0 100% /var",
        )
        for index in range(analyses)
        for call in range(calls)
    )


def _call_id(index: int, call: int) -> str:
    return f"call-{index}-{call}"
