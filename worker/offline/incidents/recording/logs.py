"""A small real log search: entries of one file, by time, level and words."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_LEVEL = re.compile(
    r"\b(DEBUG|INFO|NOTICE|NOTE|WARNING|WARN|ERROR|FATAL|PANIC|CRITICAL)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
_MULTILINE = 700


@dataclass(frozen=True)
class LogFile:
    """Where a log lies and how it writes its time, as a pattern and a strptime format."""

    path: Path
    time_pattern: str = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    time_format: str = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True)
class Entry:
    timestamp: str
    at: datetime
    level: str | None
    message: str


def search(
    log: LogFile, query: str, start: datetime, end: datetime, level: str | None, scan: int
) -> list[Entry]:
    """Entries in the window that hold ``query`` (letter case aside) and have the level, if named.

    Only the last ``scan`` bytes are looked at. Raises FileNotFoundError if there is no such log.
    """
    return [
        entry
        for entry in entries(log, scan)
        if start <= entry.at <= end
        and query.lower() in entry.message.lower()
        and (level is None or entry.level == level)
    ]


def entries(log: LogFile, scan: int) -> Iterator[Entry]:
    """All entries of the last ``scan`` bytes; a line without a time belongs to the one before."""
    pattern = re.compile(log.time_pattern)
    held: list[str] = []
    stamp = ""
    tail = log.path.read_bytes()[-scan:]
    for line in tail.decode(errors="replace").splitlines():
        found = pattern.search(line[:60])
        if found is None:
            held += [line] if held else []
            continue
        if held:
            yield _entry(log, stamp, held)
        stamp = found.group()
        held = [(line[: found.start()] + line[found.end() :]).strip()]
    if held:
        yield _entry(log, stamp, held)


def patterns(found: list[Entry]) -> list[tuple[str, int]]:
    """The entries' first lines with their numbers blanked, the commonest three first."""
    heads = (_NUMBER.sub("<n>", entry.message.splitlines()[0]) for entry in found)
    return Counter(heads).most_common(3)


def _entry(log: LogFile, stamp: str, lines: list[str]) -> Entry:
    at = datetime.strptime(stamp, log.time_format)
    level = _LEVEL.search(lines[0])
    return Entry(
        timestamp=stamp,
        at=at if at.tzinfo else at.replace(tzinfo=UTC),
        level=level.group().upper() if level else None,
        message="\n".join(lines)[:_MULTILINE],
    )
