"""Prints at the end of a test run what it has shown: the failure matrix and the exploration."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.failure_table import COLUMNS, PROPERTY, table
from tests.run.setups import EXPLORED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show what each fault of a model came to, and how much of the reducer was explored."""
    rows = [tuple(row) for row in _left(terminalreporter.stats, PROPERTY)]
    if rows:
        terminalreporter.section("failure matrix")
        terminalreporter.write_line(table(COLUMNS, rows))
    lines = [str(line) for line in _left(terminalreporter.stats, EXPLORED)]
    if lines:
        terminalreporter.section("exploration of the reducer")
        for line in lines:
            terminalreporter.write_line(line)


def _left(stats: dict[str, list[Any]], wanted: str) -> Iterator[Any]:
    """What tests left for the summary under this name."""
    for reports in stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                yield from (value for name, value in report.user_properties if name == wanted)
