"""Numbers with units, as people and tools write them, and when two of them are the same.

A reader rounds: "3.2 GB" stands for any measured value that rounds to it, in
decimal or binary units. A number without a unit may be in any of the units in
which tools count bytes and time.
"""

import math
import re
from dataclasses import dataclass
from enum import StrEnum

_BYTES = "bytes"
_TIME = "time"
_PERCENT = "percent"
_RATIO = "ratio"

_UNITS: dict[str, tuple[str | None, tuple[float, ...]]] = {
    "b": (_BYTES, (1,)),
    "kb": (_BYTES, (1024, 1e3)),
    "mb": (_BYTES, (1024**2, 1e6)),
    "gb": (_BYTES, (1024**3, 1e9)),
    "tb": (_BYTES, (1024**4, 1e12)),
    "k": (None, (1024, 1e3)),
    "m": (None, (1024**2, 1e6, 60)),
    "g": (None, (1024**3, 1e9)),
    "thousand": (None, (1e3,)),
    "million": (None, (1e6,)),
    "us": (_TIME, (1e-6,)),
    "ms": (_TIME, (1e-3,)),
    "s": (_TIME, (1,)),
    "min": (_TIME, (60,)),
    "h": (_TIME, (3600,)),
    "d": (_TIME, (86400,)),
    "%": (_PERCENT, (1,)),
    "x": (_RATIO, (1,)),
}
_SPELLED = {
    "b": ("bytes", "byte", "字节"),
    "kb": ("kib", "kilobytes"),
    "mb": ("mib", "megabytes"),
    "gb": ("gib", "gigabytes"),
    "tb": ("tib", "terabytes"),
    "us": ("µs", "μs", "microseconds"),
    "ms": ("milliseconds", "millisecond", "毫秒"),
    "s": ("seconds", "second", "secs", "sec", "秒"),
    "min": ("minutes", "minute", "mins", "分钟"),
    "h": ("hours", "hour", "hrs", "hr", "小时"),
    "d": ("days", "day", "天"),
    "%": ("percent", "per cent", "pct", "\uff05"),
    "x": ("times", "fold", "\u00d7", "倍"),
}
_CANONICAL = {name: unit for unit, names in _SPELLED.items() for name in names}
_NAMES = sorted([*_UNITS, *_CANONICAL], key=len, reverse=True)
_TOOL_UNITS: dict[str, tuple[tuple[float, float, float], ...]] = {
    _BYTES: ((1, 1e4, math.inf), (1024, 1e5, math.inf)),
    _TIME: ((1, 0, math.inf), (1e-3, 100, math.inf), (1e-6, 1e5, math.inf)),
    _PERCENT: ((1, 0, math.inf), (100, 0, 1)),
}
"""What one step of a number without a unit may be worth in base units, and from which value to
which it is likely to be so: a port is no count of kilobytes."""


class Bound(StrEnum):
    """How loosely a text states a number."""

    EXACT = "exact"
    ABOUT = "about"
    OVER = "over"
    UNDER = "under"


_BOUND_WORDS = {
    Bound.ABOUT: r"about|around|approx(?:imately|\.)?|roughly|nearly|almost|some|~|≈|约|接近|近",
    Bound.OVER: r"over|more than|above|exceed(?:s|ed|ing)?|beyond|at least|>=?|≥|超过",
    Bound.UNDER: r"under|below|less than|fewer than|at most|up to|within|<=?|≤|不足|低于",
}
_BOUNDS = {
    bound: re.compile(rf"(?:{words})\s*(?:the\s+)?$", re.IGNORECASE)
    for bound, words in _BOUND_WORDS.items()
}
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<number>[-+\u2212]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
    r"(?:e[-+]?\d+)?)"
    rf"(?:[ \u00a0-]?(?P<unit>{'|'.join(map(re.escape, _NAMES))})(?![A-Za-z0-9]))?"
    r"(?![A-Za-z0-9_])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Number:
    """A number as it was written.

    ``scales`` are what one step may be worth in base units (bytes, seconds,
    percent); ``step`` is the worth of its last digit in its own unit.
    """

    text: str
    value: float
    step: float
    dimension: str | None = None
    scales: tuple[float, ...] = (1,)
    bound: Bound = Bound.EXACT

    @property
    def base(self) -> float:
        """The value in base units, by the first reading of its unit."""
        return self.value * self.scales[0]

    @property
    def is_percent(self) -> bool:
        return self.dimension == _PERCENT

    @property
    def is_ratio(self) -> bool:
        return self.dimension == _RATIO

    @property
    def is_duration(self) -> bool:
        return self.dimension == _TIME

    @property
    def is_small_count(self) -> bool:
        """A bare 0, 1 or 2: too common in plain speech to be called a fact."""
        return self.dimension in {None, _RATIO} and self.value in {0, 1, 2} and self.step == 1


def measured(value: float, unit: str | None = None) -> Number:
    """A number that a tool reported as such, with the unit's name if it has one."""
    dimension, scales = _unit(unit)
    return Number(repr(value), float(value), 0.0, dimension, scales)


def seconds(value: float) -> Number:
    """A duration in seconds that follows from two times."""
    return Number(repr(value), value, 0.0, _TIME)


def is_unit(name: str) -> bool:
    """Tell whether a word names a unit that numbers are compared in."""
    return name.lower() in _UNITS or name.lower() in _CANONICAL


def numbers(text: str) -> list[tuple[Number, int]]:
    """All numbers of a text, each with the place where it ends."""
    return [(_read(match, text), match.end()) for match in _NUMBER.finditer(text)]


def same(claim: Number, found: Number) -> bool:
    """Tell whether ``claim`` is what a writer could make of ``found`` by rounding or bounding."""
    return any(
        _covers(claim.value * mine, claim.step * mine, claim.bound, found.value * theirs)
        for mine, theirs in _readings(claim, found)
    )


def _readings(claim: Number, found: Number) -> list[tuple[float, float]]:
    if claim.dimension is not None and found.dimension is not None:
        if claim.dimension != found.dimension:
            return []
        return [(mine, theirs) for mine in claim.scales for theirs in found.scales]
    pairs = [(1.0, 1.0)]
    pairs += [(mine, theirs) for mine in claim.scales for theirs in _steps(found, claim)]
    pairs += [(mine, theirs) for theirs in found.scales for mine in _steps(claim, found)]
    return pairs


def _steps(number: Number, other: Number) -> tuple[float, ...]:
    """What one step of ``number`` is worth beside a number that may have a unit."""
    if number.dimension is None and other.dimension is not None:
        likely = _TOOL_UNITS.get(other.dimension, ())
        return tuple(scale for scale, low, high in likely if low <= abs(number.value) <= high)
    return number.scales


def _covers(claimed: float, step: float, bound: Bound, found: float) -> bool:
    slack = step / 2 + 1e-9 * abs(claimed)
    if bound is Bound.ABOUT:
        slack += 0.05 * abs(claimed)
    if abs(found - claimed) <= slack:
        return True
    if bound is Bound.OVER:
        return claimed <= found <= 1.5 * claimed
    if bound is Bound.UNDER:
        return 0.5 * claimed <= found <= claimed
    return False


def _read(match: re.Match[str], text: str) -> Number:
    written = match["number"].replace(",", "").replace("\u2212", "-")
    mantissa, _, exponent = written.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    dimension, scales = _unit(match["unit"])
    before = text[max(0, match.start() - 16) : match.start()]
    bound = next((name for name, words in _BOUNDS.items() if words.search(before)), Bound.EXACT)
    step = 10.0 ** (int(exponent or 0) - decimals) if abs(int(exponent or 0)) < 300 else 0.0
    return Number(match[0], float(written), step, dimension, scales, bound)


def _unit(name: str | None) -> tuple[str | None, tuple[float, ...]]:
    if name is None:
        return None, (1.0,)
    name = name.lower()
    dimension, scales = _UNITS.get(_CANONICAL.get(name, name), (None, (1.0,)))
    # "64m" may also be a plain count or a name: the bare value stays possible.
    return dimension, scales if dimension else (1.0, *scales)
