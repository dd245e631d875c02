"""What a set of verified calls holds, in the form in which a draft's facts are looked up."""

import re
from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any, Self

from worker.offline.judge_facts import Facts, Time, take_times, without_dates, words
from worker.offline.judge_numbers import Number, is_unit, measured, numbers, same, seconds

_FEW = 12
"""Up to this many values, any two may be combined. Beyond it nearly every small number is some
difference, so only values that the text itself states are combined."""

_COMBINES = re.compile(
    r"more|fewer|less|increas|decreas|differ|total|together|combin|\bsum\b|dropp|gr[eo]w|ris|rose"
    r"|f[ae]ll|left|remain|free|longer|later|earlier|gap|both|missing|lost|out of|增|减|差|共|剩",
    re.IGNORECASE,
)


class Evidence:
    """The words, numbers, times and counts of some texts and JSON values."""

    def __init__(self) -> None:
        self.words = " "
        self.numbers: list[Number] = []
        self.times: set[Time] = set()
        self._counts: set[int] = set()
        self._lines: list[str] = []

    @classmethod
    def of(cls, values: Iterable[Any]) -> Self:
        """Collect the evidence of JSON values, whatever their shape."""
        evidence = cls()
        texts: list[str] = []
        for value in values:
            evidence._take(value, None, texts)
        text = "\n".join(texts)
        evidence.words = words(text)
        reported = " ".join(number.text for number in evidence.numbers)
        evidence.words += words(reported).lstrip()
        times, rest = take_times(text)
        evidence.times = set(times)
        evidence.numbers += [number for number, _ in numbers(without_dates(rest))]
        evidence._lines = [words(line) for line in text.splitlines() if line.strip()]
        return evidence

    def missing(self, stated: Facts, text: str) -> list[str]:
        """The facts of ``text`` that neither stand here nor follow from what stands here."""
        lost = [
            f"the quotation “{quoted[:60]}”" for quoted in stated.quotations if self._lacks(quoted)
        ]
        lost += [f"the time {time}" for time in stated.times if not self._has_time(time)]
        lost += [f"the name {name[:60]}" for name in stated.names if self._lacks(name)]
        lost += [
            f"the number {number.text}"
            for number, after in stated.numbers
            if not self._has_number(number, after, stated, text)
        ]
        return list(dict.fromkeys(lost))

    def _lacks(self, phrase: str) -> bool:
        return words(phrase) not in self.words

    def _has_time(self, time: Time) -> bool:
        if time.second is not None:
            return time in self.times
        return any((time.hour, time.minute) == (one.hour, one.minute) for one in self.times)

    def _has_number(self, claim: Number, after: str, stated: Facts, text: str) -> bool:
        return (
            any(same(claim, found) for found in self.numbers)
            or self._counts_to(claim, after, stated)
            or self._derives(claim, stated, text)
        )

    def _counts_to(self, claim: Number, after: str, stated: Facts) -> bool:
        if claim.dimension is not None and not claim.is_ratio:
            return False
        if claim.value in self._counts:
            return True
        said = [words(phrase).rstrip() for phrase in (*stated.quotations, *stated.names)]
        things = [
            f" {word.removesuffix('s')}" for word in words(after).split()[:3] if len(word) >= 4
        ]
        return any(
            claim.value
            in {
                sum(thing in line for line in self._lines),
                sum(line.count(thing) for line in self._lines),
            }
            for thing in (*said, *things)
        )

    def _derives(self, claim: Number, stated: Facts, text: str) -> bool:
        if claim.is_duration and any(same(claim, gap) for gap in self._gaps(stated)):
            return True
        operands = _distinct(self.numbers)
        if len(operands) > _FEW:
            others = [number for number, _ in stated.numbers if number is not claim]
            operands = [one for one in operands if any(same(other, one) for other in others)]
        operands = operands[:_FEW]
        pairs = [
            (one, two)
            for one, two in permutations(operands, 2)
            if one.dimension == two.dimension or None in {one.dimension, two.dimension}
        ]
        if claim.is_percent or claim.is_ratio:
            return any(_in_proportion(claim, one, two) for one, two in pairs)
        return bool(_COMBINES.search(text)) and any(
            same(claim, _combined(one, two, sign)) for one, two in pairs for sign in (1, -1)
        )

    def _gaps(self, stated: Facts) -> list[Number]:
        times = sorted({time.of_day for time in self.times})
        if len(times) > _FEW:
            said = {(time.hour, time.minute) for time in stated.times}
            ends = {times[0], times[-1]}
            times = [at for at in times if at in ends or (at // 3600, at // 60 % 60) in said][:50]
        return [seconds(late - early) for early in times for late in times if late > early]

    def _take(self, value: Any, unit: str | None, texts: list[str]) -> None:
        if isinstance(value, str):
            texts.append(value)
            self._counts.add(sum(bool(line.strip()) for line in value.splitlines()))
        elif isinstance(value, Mapping):
            own = value.get("unit")
            for key, item in value.items():
                texts.append(key)
                suffix = key.rsplit("_", 1)[-1]
                named = suffix if "_" in key and is_unit(suffix) else None
                self._take(item, named or (own if isinstance(own, str) else unit), texts)
        elif isinstance(value, (list, tuple)):
            self._counts.add(len(value))
            for item in value:
                self._take(item, unit, texts)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self.numbers.append(measured(value, unit))


def _distinct(found: list[Number]) -> list[Number]:
    return list({(number.base, number.dimension): number for number in found}.values())


def _in_proportion(claim: Number, one: Number, two: Number) -> bool:
    if two.base == 0:
        return False
    share = one.base / two.base
    if claim.is_ratio:
        return same(claim, measured(share))
    changes = (share, 1 - share, share - 1)
    return any(same(claim, measured(100 * change, "%")) for change in changes)


def _combined(one: Number, two: Number, sign: int) -> Number:
    return Number("", one.base + sign * two.base, 0.0, one.dimension or two.dimension)
