"""What a tool returned, in the shape that the evidence check reads: one builder a tool.

A builder takes what tools commonly return, bounds it and says whether it cut something.
The recorder adds the call's id and the status, which follows from the content, and checks
the whole strictly. A further tool has no builder here: ``Finding`` takes its fields as its
result model names them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from contracts.evidence import Retrieval
from worker.trace.bounds import cut

MOST_OUTPUT = 98_304
"""Bytes of a command's output; its error output may have a quarter of that."""
MOST_MESSAGE = 4_096
"""Bytes of one log message, excerpt or cell."""
MOST_ITEMS = 200
"""Events, documents or rows of one result."""
MOST_POINTS = 2_000
"""Points of all series of one result."""
_MOST_ALL = 98_304


@dataclass(frozen=True)
class Finding:
    """The content of a result: ``fields`` of the tool's result model, and how it came about.

    ``shown`` is the text for the preview. ``truncated`` tells that the tool or the builder
    left something out, ``deduplicated`` that the tool answered "seen before".
    """

    fields: Mapping[str, Any]
    shown: str = ""
    truncated: bool = False
    deduplicated: bool = False
    retrieval: Retrieval | None = None


@dataclass(frozen=True)
class Failure:
    """A tool returned, but what it returned is an error; ``message`` explains it."""

    message: str
    shown: str = ""
    retrieval: Retrieval | None = None


Outcome = Finding | Failure


def command_output(
    exit_code: int, stdout: str | bytes, stderr: str | bytes = "", *, truncated: bool = False
) -> Finding:
    """What a shell command wrote, cut after MOST_OUTPUT bytes."""
    out, out_cut = cut(_text(stdout), MOST_OUTPUT)
    err, err_cut = cut(_text(stderr), MOST_OUTPUT // 4)
    return Finding(
        {"exit_code": exit_code, "stdout": out, "stderr": err},
        shown=out if out.strip() else err,
        truncated=truncated or out_cut or err_cut,
    )


@dataclass(frozen=True)
class LogLine:
    """One line of a log; ``timestamp`` as the log wrote it."""

    timestamp: str
    message: str
    level: str | None = None


def log_matches(
    lines: Iterable[LogLine],
    *,
    total_matches: int | None = None,
    patterns: Mapping[str, int] | None = None,
    truncated: bool = False,
) -> Finding:
    """The lines that a log search found; ``total_matches`` where the store counted more."""
    room, given = _Room(), list(lines)
    events = [
        {"timestamp": line.timestamp, "message": message, "level": line.level}
        for line in given
        if (message := room.take(line.message)) is not None
    ]
    counted = [
        {"pattern": text, "count": count}
        for pattern, count in (patterns or {}).items()
        if (text := room.take(pattern)) is not None
    ]
    total = len(given) if total_matches is None else total_matches
    return Finding(
        {"total_matches": total, "patterns": counted, "events": events},
        shown="\n".join(f"{event['timestamp']} {event['message']}" for event in events),
        truncated=truncated or room.left_out or total > len(events),
    )


@dataclass(frozen=True)
class Series:
    """One time series: its labels, and points of time (with an offset) and value."""

    labels: Mapping[str, str]
    points: Sequence[tuple[datetime, float]]
    unit: str | None = None


def metric_series(series: Iterable[Series], *, truncated: bool = False) -> Finding:
    """The series of a metrics query; those without points are left out, as they show nothing."""
    kept: list[dict[str, Any]] = []
    left = MOST_POINTS
    for one in series:
        points = one.points[:left]
        left -= len(points)
        truncated = truncated or len(points) < len(one.points)
        if points:
            kept.append(
                {
                    "labels": dict(one.labels),
                    "points": [{"timestamp": moment, "value": value} for moment, value in points],
                    "unit": one.unit,
                }
            )
    shown = "\n".join(
        f"{one['labels']} {point['timestamp']} {point['value']} {one['unit'] or ''}".rstrip()
        for one in kept
        for point in one["points"][:20]
    )
    return Finding({"series": kept}, shown=shown, truncated=truncated)


def mysql_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    row_count: int | None = None,
    truncated: bool = False,
) -> Finding:
    """The rows of a database query. Decimals and times become text, as pydantic writes them."""
    room, given = _Room(), [list(row) for row in rows]
    kept = []
    for row in given:
        cells = to_jsonable_python([_cell(cell) for cell in row])
        if room.take("\t".join(str(cell) for cell in cells)) is not None:
            kept.append(cells)
    total = len(given) if row_count is None else row_count
    return Finding(
        {"columns": list(columns), "rows": kept, "row_count": total},
        shown="\n".join("\t".join(str(cell) for cell in row) for row in (columns, *kept))
        if kept
        else "",
        truncated=truncated or room.left_out or total > len(kept),
    )


@dataclass(frozen=True)
class Document:
    """A passage of a knowledge base."""

    document_id: str
    title: str
    excerpt: str
    updated_at: datetime | None = None


def knowledge_documents(
    documents: Iterable[Document],
    *,
    retrieval: Retrieval | None = None,
    truncated: bool = False,
) -> Finding:
    """The passages that a lookup found.

    A ``retrieval`` with a ``dedup_reason`` and no passage makes the call a deduplicated one.
    """
    room = _Room()
    kept = [
        {
            "document_id": one.document_id,
            "title": one.title,
            "excerpt": excerpt,
            "updated_at": one.updated_at,
        }
        for one in documents
        if (excerpt := room.take(one.excerpt)) is not None
    ]
    deduplicated = bool(retrieval and retrieval.dedup_reason) and not kept
    return Finding(
        {"documents": kept},
        shown="\n".join(f"{one['title']}: {one['excerpt']}" for one in kept),
        truncated=truncated or room.left_out,
        deduplicated=deduplicated,
        retrieval=retrieval,
    )


class _Room:
    """What still fits into one result: the first items stay, each of them bounded."""

    def __init__(self) -> None:
        self.left_out = False
        self._items = MOST_ITEMS
        self._bytes = _MOST_ALL

    def take(self, text: str) -> str | None:
        """The text, cut to its bound; None when there is no room for it any more."""
        kept, was_cut = cut(text, MOST_MESSAGE)
        size = len(kept.encode())
        if not self._items or size > self._bytes:
            self.left_out, self._items = True, 0
            return None
        self._items -= 1
        self._bytes -= size
        self.left_out = self.left_out or was_cut
        return kept


def _cell(cell: Any) -> Any:
    if isinstance(cell, bytes | bytearray):
        cell = cell.decode(errors="replace")
    return cut(cell, MOST_MESSAGE)[0] if isinstance(cell, str) else cell


def _text(output: str | bytes) -> str:
    return output if isinstance(output, str) else output.decode(errors="replace")
