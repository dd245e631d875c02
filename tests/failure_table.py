"""How the failure matrix is printed."""

from collections.abc import Iterable, Sequence

PROPERTY = "failure_matrix"
"""The user property of a test report that holds one row."""

COLUMNS = ("fault", "hits", "attempts", "calls seen", "ending")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write rows under a head, each column as wide as its widest cell."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
