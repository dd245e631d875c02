"""The bench's table: what was measured, the figure, and the number to reach."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

_WHAT, _FIGURE, _TARGET = 62, 14, 18


@dataclass(frozen=True)
class Row:
    """One figure. Where there is a target, ``at_most`` tells on which side of it is good."""

    what: str
    figure: float
    unit: str
    target: float | None = None
    at_most: bool = True

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.figure <= self.target if self.at_most else self.figure >= self.target


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not below ``share`` of them (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def heading() -> str:
    """The table's head, with how busy the machine was before: other work makes figures worse."""
    load = f"load before the bench: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    titles = f"{'what':<{_WHAT}} {'figure':>{_FIGURE}}  {'to reach':<{_TARGET}}"
    return f"{load}\n\n{titles}\n{'-' * (_WHAT + _FIGURE + _TARGET + 10)}"


def line(row: Row) -> str:
    figure = f"{row.figure:,.{_digits(row.figure)}f} {row.unit}"
    if row.target is None:
        return f"{row.what:<{_WHAT}} {figure:>{_FIGURE}}"
    side = "at most" if row.at_most else "at least"
    target = f"{side} {row.target:g} {row.unit}"
    verdict = "reached" if row.reached else "MISSED"
    return f"{row.what:<{_WHAT}} {figure:>{_FIGURE}}  {target:<{_TARGET}} {verdict}"


def _digits(figure: float) -> int:
    return 2 if figure < 10 else 1 if figure < 100 else 0
