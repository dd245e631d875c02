"""Raw paths: where in a tool's result a binding points.

The syntax is a small part of JSONPath, without anything that could match twice::

    path  = ["$"] step*            "$" may be left out: "$.events[0].message" is "events[0].message"
    step  = "." name               a field, or an item if what stands there is a list
          | "[" index "]"          an item, counted from 0
          | "[" string "]"         a field of any name, as a JSON string: labels["app.io/name"]
    name  = one or more of A-Z a-z 0-9 _ -
    index = 0, or digits without a leading 0

A path leads to a text, a number, true, false or null. A list or an object is not a
place that a text can stand at.
"""

import re
from decimal import Decimal
from typing import Any

from contracts.strict_json import StrictJsonError, parse
from worker.claims.rules import GateCode

Scalar = str | bool | int | Decimal | None
Place = tuple[str | int, ...]
"""Field names and item numbers on the way from the root."""

MAX_PATH = 512
"""Characters of one path."""

_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z0-9_-]+)|\[(?P<index>[0-9]+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
)
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class PathError(Exception):
    """A path leads to no scalar. ``code`` says why; nothing of path or document is quoted."""

    def __init__(self, code: GateCode) -> None:
        super().__init__(code)
        self.code = code


def resolve(document: Any, path: str) -> tuple[Place, Scalar]:
    """The place that a path names, and the scalar that stands there.

    Raises PathError: PATH_INVALID, PATH_MISSING, PATH_NOT_SCALAR.
    """
    value = document
    place: list[str | int] = []
    for step in _steps(path):
        key = _key(value, step)
        value = value[key]
        place.append(key)
    if isinstance(value, (dict, list)):
        raise PathError(GateCode.PATH_NOT_SCALAR)
    return tuple(place), value


def _steps(path: str) -> list[re.Match[str]]:
    if not path or len(path) > MAX_PATH:
        raise PathError(GateCode.PATH_INVALID)
    rest = path if path.startswith(("$", "[")) else f".{path}"
    rest = rest.removeprefix("$")
    found: list[re.Match[str]] = []
    position = 0
    while position < len(rest):
        step = _STEP.match(rest, position)
        if step is None:
            raise PathError(GateCode.PATH_INVALID)
        found.append(step)
        position = step.end()
    return found


def _key(value: Any, step: re.Match[str]) -> str | int:
    if isinstance(value, list):
        digits = step["index"] or step["name"] or ""
        if _INDEX.fullmatch(digits) and int(digits) < len(value):
            return int(digits)
    elif isinstance(value, dict) and step["index"] is None:
        name = step["name"] if step["quoted"] is None else _unquoted(step["quoted"])
        if name in value:
            return name
    raise PathError(GateCode.PATH_MISSING)


def _unquoted(quoted: str) -> str:
    try:
        return str(parse(quoted))
    except StrictJsonError:
        raise PathError(GateCode.PATH_INVALID) from None
