"""Prints the failure matrix at the end of a test run."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.failure_table import COLUMNS, PROPERTY, table


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show what each fault of a model came to, if the matrix was run."""
    rows = list(_rows(terminalreporter.stats))
    if rows:
        terminalreporter.section("failure matrix")
        terminalreporter.write_line(table(COLUMNS, rows))


def _rows(stats: dict[str, list[Any]]) -> Iterator[Sequence[str]]:
    for reports in stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, row in report.user_properties:
                    if name == PROPERTY and isinstance(row, (tuple, list)):
                        yield row
