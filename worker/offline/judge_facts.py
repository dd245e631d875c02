"""The hard facts of a text: numbers, times, names and quotations. Pure, and blind to meaning."""

import errno
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from signal import Signals

from worker.offline.judge_numbers import Number, numbers

_QUOTED = re.compile(r'"([^"\n]{2,300})"|“([^”\n]{2,300})”|`([^`\n]{2,300})`|「([^」\n]{2,300})」')
_MOMENT = re.compile(
    r"(?<!\d)(?P<date>\d{4}-\d{2}-\d{2})[T ](?P<hour>\d{2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,]\d+)?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?(?!\d)"
)
_TIME = re.compile(
    r"(?<![\d.])(?P<hour>[01]?\d|2[0-3])[:点时](?P<minute>[0-5]\d)分?(?::(?P<second>[0-5]\d)(?:[.,]\d+)?)?"
    r"(?!\d)(?:\s?(?P<half>[ap])\.?m\b)?",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_UNCOMPARED = re.compile(
    rf"\b(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{1,2}} {_MONTH}(?: \d{{4}})?)\b"
    r"|(?:\d{4}年)?\d{1,2}月\d{1,2}日|\bHTTP/\d(?:\.\d)?"
)
_TOKEN = re.compile(r"[A-Za-z0-9_/](?:[A-Za-z0-9_.:/@-]*[A-Za-z0-9_])?")
_DOTTED_NUMBER = re.compile(r"\d+(?:\.\d+){2,}")
_DOTTED_NAME = re.compile(r"[a-z0-9-]{2,}(?:\.[a-z0-9-]{2,})+", re.IGNORECASE)
_FAILURE_NAME = re.compile(
    r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)?"
    r"(?:Error|Exception|BackOff|Backoff|Killed|Timeout|Refused|Failed|Failure|Pressure|Evicted)"
)
_SYSTEM_NAMES = {*errno.errorcode.values(), *(one.name for one in Signals)}
_COMMON = re.compile(r"p\d+(?:\.\d+)?|v\d+|ipv[46]|http\d|utf-?\d+|sha-?\d+|x86_64", re.IGNORECASE)
_COUNTED_WORD = re.compile(r"\d[\d.,]*-?[A-Za-z%]*(?:-[A-Za-z]+)*")
_WORD = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]")


@dataclass(frozen=True)
class Time:
    """A time of day; ``second`` is None where the text gave hours and minutes only."""

    hour: int
    minute: int
    second: int | None = None

    @property
    def of_day(self) -> int:
        """Seconds since midnight."""
        return self.hour * 3600 + self.minute * 60 + (self.second or 0)

    def __str__(self) -> str:
        second = "" if self.second is None else f":{self.second:02}"
        return f"{self.hour:02}:{self.minute:02}{second}"


@dataclass(frozen=True)
class Facts:
    """What a text states. ``numbers`` keep the words that follow each of them."""

    quotations: tuple[str, ...]
    times: tuple[Time, ...]
    names: tuple[str, ...]
    numbers: tuple[tuple[Number, str], ...]

    def __len__(self) -> int:
        return len(self.quotations) + len(self.times) + len(self.names) + len(self.numbers)


def words(text: str) -> str:
    """A text as bare words with one space around each: the form in which texts are compared."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def facts(text: str) -> Facts:
    """The hard facts that a draft's text states. Each word is counted for one kind of fact only."""
    quotations: list[str] = []

    def quote(match: re.Match[str]) -> str:
        quoted = next(group for group in match.groups() if group)
        quotations.extend(part.strip() for part in re.split(r"\.\.\.|…", quoted) if part.strip())
        return _blank(match)

    rest = _QUOTED.sub(quote, text)
    found_times, rest = take_times(rest)
    names = _DATE.findall(rest)
    rest = _UNCOMPARED.sub(_blank, without_dates(rest))

    def name(match: re.Match[str]) -> str:
        token = match[0]
        parts = [token] if "://" in token or token[0] == "/" else re.split(r"[:/@]", token)
        kept = []
        for part in parts:
            if _is_name(part):
                names.append(part)
                kept.append(" " * len(part))
            else:
                kept.append(part)
        return " ".join(kept) if len(parts) > 1 else kept[0]

    rest = _TOKEN.sub(name, rest)
    found = tuple(
        (number, rest[end : end + 60]) for number, end in numbers(rest) if not number.is_small_count
    )
    return Facts(tuple(quotations), tuple(found_times), tuple(names), found)


def take_times(text: str) -> tuple[list[Time], str]:
    """The times of day in a text, and the text without them.

    A time with an offset is given twice, as written and in UTC.
    """
    times: list[Time] = []

    def moment(match: re.Match[str]) -> str:
        times.extend(_moment_times(match))
        return match["date"].ljust(len(match[0]))

    def time(match: re.Match[str]) -> str:
        times.append(_time(match, match["half"]))
        return _blank(match)

    return times, _TIME.sub(time, _MOMENT.sub(moment, text))


def _moment_times(match: re.Match[str]) -> list[Time]:
    written = _time(match, None)
    try:
        moment = datetime.fromisoformat(match[0].replace(",", "."))
    except ValueError:
        return [written]
    if moment.tzinfo is None or not moment.utcoffset():
        return [written]
    utc = moment.astimezone(UTC)
    return [written, Time(utc.hour, utc.minute, written.second)]


def _time(match: re.Match[str], half: str | None) -> Time:
    hour = int(match["hour"])
    if half is not None:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    second = match["second"]
    return Time(hour, int(match["minute"]), None if second is None else int(second))


def without_dates(text: str) -> str:
    """The text with its ISO dates blanked, so that their parts do not count as numbers."""
    return _DATE.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _is_name(token: str) -> bool:
    if "://" in token or (token[:1] == "/" and any(map(str.isalpha, token))):
        return True
    if _DOTTED_NUMBER.fullmatch(token):
        return True
    if _COMMON.fullmatch(token) or _COUNTED_WORD.fullmatch(token):
        return False
    if "_" in token.strip("_") or _DOTTED_NAME.fullmatch(token):
        return True
    if any(map(str.isdigit, token)):
        return len(token) >= (4 if token.upper() == token else 5)
    return token in _SYSTEM_NAMES or bool(_FAILURE_NAME.fullmatch(token))
