"""The small tools with which the incidents were recorded look where they say they look."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from worker.offline.incidents.recording import knowledge, logs

DAY = datetime(2026, 1, 2, tzinfo=UTC)
EVENING = DAY.replace(hour=23)
LOG = """\
2026-01-02T10:00:00.000Z INFO started
2026-01-02T10:00:01.000Z ERROR write 17 refused
Traceback: line two of the same entry
2026-01-02T10:00:02.000Z ERROR write 18 refused
"""


@pytest.fixture
def log(tmp_path: Path) -> logs.LogFile:
    path = tmp_path / "app.log"
    path.write_text(LOG)
    return logs.LogFile(path)


def found(
    log: logs.LogFile,
    query: str,
    *,
    end: datetime = EVENING,
    level: str | None = None,
    scan: int = 10_000,
) -> list[str]:
    return [entry.message for entry in logs.search(log, query, DAY, end, level, scan)]


def test_a_line_without_a_time_belongs_to_the_entry_before_it(log: logs.LogFile) -> None:
    """A traceback stays with the line that announced it."""
    assert found(log, "17")[0].splitlines()[1].startswith("Traceback")


def test_a_search_keeps_to_its_window_level_and_reach(log: logs.LogFile) -> None:
    """Entries outside the window, of another level or before the last bytes are not found."""
    assert len(found(log, "REFUSED")) == 2
    assert len(found(log, "refused", end=DAY.replace(hour=10, second=1))) == 1
    assert found(log, "refused", level="INFO") == []
    assert found(log, "refused", scan=60) == ["ERROR write 18 refused"]


def test_patterns_count_lines_that_differ_in_numbers_only(log: logs.LogFile) -> None:
    """Two refused writes are one pattern, twice."""
    entries = logs.search(log, "refused", DAY, EVENING, None, 10_000)
    assert logs.patterns(entries) == [("ERROR write <n> refused", 2)]


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("redis noeviction writes refused", "runbook/redis-maxmemory#1"),
        ("证书过期 续期", "runbook/expired-certificate#1"),
        ("currency rounding exchange rate ledger", None),
    ],
)
def test_a_lookup_finds_the_section_that_the_question_is_about(
    query: str, document: str | None
) -> None:
    """The best section comes first; a question about something else finds nothing."""
    sections = knowledge.search(query)
    assert (sections[0].document_id if sections else None) == document
