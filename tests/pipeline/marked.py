"""Drafts and records in which every word of content carries a mark of its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

MARK = "zqleak"
"""No text of ours holds it, so wherever it stands, content has leaked."""


@dataclass
class Marks:
    """Gives out marked words, no two of them equal."""

    _numbers: Iterator[int] = field(default_factory=count)

    def word(self, where: str) -> str:
        return f"{MARK}-{where}-{next(self._numbers)}"


def marked_draft(marks: Marks, *citations: str) -> dict[str, Any]:
    """A concluded draft whose every text and id is marked, which cites these calls as hits."""
    analysis_id = marks.word("analysis-id")
    item = {
        "text": marks.word("item"),
        "based_on_analysis_ids": [analysis_id],
        "requires_human_confirmation": True,
    }
    return {
        "conclusion": {"text": marks.word("conclusion"), "based_on_analysis_ids": [analysis_id]},
        "analyses": [
            {
                "analysis_id": analysis_id,
                "kind": "NORMAL",
                "text": marks.word("analysis"),
                "tool_call_ids": list(citations),
            }
        ],
        "action_plan": [item],
        "recommendations": [{**item, "text": marks.word("recommendation")}],
        "limitations": [marks.word("limitation")],
        "missing_context": [marks.word("missing-context")],
    }


def marked_content(marks: Marks, tool: str) -> dict[str, Any]:
    """What a tool was asked and found, marked wherever it is content and not a name."""
    word = marks.word
    window = {"start": "2026-05-01T13:00:00Z", "end": "2026-05-01T14:00:00Z"}
    match tool:
        case "run_command":
            return {
                "request": {"command": f"tail {word('command')}", "host": "web-1"},
                "content": {"exit_code": 0, "stdout": word("stdout"), "stderr": word("stderr")},
            }
        case "query_logs":
            request = {"source": "gateway", "query": word("log-query"), "level": word("level")}
            event = {"timestamp": word("timestamp"), "message": word("message")}
            return {
                "request": {**request, **window},
                "content": {"total_matches": 1, "patterns": [], "events": [event]},
            }
        case _:
            sql = f"SELECT a FROM {word('table')}"
            rows = [[word("row")]]
            return {
                "request": {"data_source": "orders", "sql": sql, "params": [word("parameter")]},
                "content": {"columns": [word("column")], "rows": rows, "row_count": 1},
            }
