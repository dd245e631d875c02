"""Which literals of an SQL statement can stand in its answer.

Only what a select list or VALUES spells out can reach a cell by itself. A literal in
a WHERE clause cannot: there the rows decide. So the statement is read token by
token with a stack of parentheses, each of which knows whether it is inside a
select list, inside a FROM clause (whose subqueries reach the answer) or inside a
filter (whose subqueries do not).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

_TOKEN = re.compile(
    r"""
      (?P<comment> --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?!!).*?(?:\*/|\Z) )
    | (?P<hex>     0[xX][0-9A-Fa-f]++ | [xX]'[0-9A-Fa-f]*+'? )
    | (?P<string>  '(?:[^'\\]|\\.|'')*+['\\]? | "(?:[^"\\]|\\.|"")*+["\\]? )
    | (?P<quoted>  `[^`]*+`? )
    | (?P<number>  (?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)? )
    | (?P<hole>    \? | %s | %\(\w++\)s | :[A-Za-z_]\w*+ )
    | (?P<word>    [@A-Za-z_$][\w$@.]*+ )
    | (?P<mark>    [(),] )
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

_NEUTRAL, _LIST, _FILTER = "neutral", "list", "filter"
_FILTERS = frozenset({"WHERE", "HAVING", "GROUP", "ORDER", "LIMIT", "ON", "WINDOW"})
_COUNTING = frozenset({"COUNT", "SUM"})


@dataclass
class Literals:
    """What a statement spells out where it can reach a cell.

    ``reads`` tells whether the statement reads any table at all.
    """

    strings: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    reads: bool = False


@dataclass
class _Frame:
    """One pair of parentheses; ``reaches`` tells whether a SELECT in it can reach a cell."""

    phase: str
    reaches: bool = True
    selects: bool = False
    counts: bool = False


def literals_of(sql: str, params: Sequence[JsonValue]) -> Literals:
    """Collect the literals, and the parameters bound among them, of one statement.

    The numbers inside ``COUNT(1)`` and ``SUM(CASE ... THEN 1 ...)`` are left out: what
    comes out of them is counted by the server.
    """
    found = Literals()
    frames = [_Frame(_NEUTRAL)]
    holes = _holes(params)
    before = ""
    for kind, text in _tokens(sql):
        if kind == "word":
            _keyword(text.upper(), before, frames, found)
        elif text == "(":
            frames.append(_opened(before, frames[-1]))
        elif text == ")" and len(frames) > 1:
            frames.pop()
        elif kind == "hole":
            bound = next(holes, ()) if text in {"?", "%s"} else params
            if frames[-1].phase == _LIST:
                for value in bound:
                    _add_value(value, found)
        elif frames[-1].phase == _LIST:
            _add(kind, text, frames[-1], found)
        before = text.upper()
    return found


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or ""
        if kind != "comment":
            yield kind, match.group()


def _holes(params: Sequence[JsonValue]) -> Iterator[tuple[JsonValue, ...]]:
    for param in params:
        yield (param,)


def _opened(before: str, parent: _Frame) -> _Frame:
    if before == "EXISTS" or parent.phase == _FILTER:
        return _Frame(_FILTER, reaches=False)
    return _Frame(parent.phase, counts=parent.counts or before in _COUNTING)


def _keyword(word: str, before: str, frames: list[_Frame], found: Literals) -> None:
    frame = frames[-1]
    if word in {"SELECT", "VALUES"}:
        frame.selects = True
        frame.phase = _LIST if frame.reaches else _FILTER
    elif word == "FROM" and frame.selects and before != "DISTINCT":
        found.reads = True
        if frame.phase == _LIST:
            frame.phase = _NEUTRAL
    elif word in _FILTERS and (frame.selects or frame.phase == _NEUTRAL):
        frame.phase = _FILTER
    elif word == "JOIN" and frame.phase == _FILTER:
        frame.phase = _NEUTRAL
    elif word in {"TRUE", "FALSE"} and frame.phase == _LIST:
        found.numbers.append("1" if word == "TRUE" else "0")


def _add(kind: str, text: str, frame: _Frame, found: Literals) -> None:
    if kind == "string":
        found.strings.append(_unquoted(text))
    elif kind == "hex":
        digits = text[2:].rstrip("'")
        whole = digits.zfill(len(digits) + len(digits) % 2)
        found.strings.append(bytes.fromhex(whole).decode("utf-8", "replace"))
    elif kind == "number" and not frame.counts:
        found.numbers.append(text)


def _add_value(value: JsonValue, found: Literals) -> None:
    if isinstance(value, bool):
        found.numbers.append("1" if value else "0")
    elif isinstance(value, int | float):
        found.numbers.append(str(value))
    elif isinstance(value, str):
        found.strings.append(value)


def _unquoted(text: str) -> str:
    quote = text[0]
    body = text[1:-1] if text.endswith(quote) and len(text) > 1 else text[1:]
    return _ESCAPE.sub(
        lambda match: _ESCAPED.get(match.group(1), match.group(1)), body.replace(quote * 2, quote)
    )
