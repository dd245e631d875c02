"""Prints how much of the reducer was explored, so that a run of the tests says it."""

import pytest

EXPLORED = "explored"
"""The property under which a test leaves its line for the summary."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        str(value)
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == EXPLORED
    ]
    if lines:
        terminalreporter.section("exploration of the reducer")
        for line in lines:
            terminalreporter.write_line(line)
