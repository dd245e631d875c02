"""Whether a text really stands at a place, to the code point.

- A text stands in a string where it occurs without cutting a word, a number or a
  character: ``healthy`` does not stand in ``unhealthy``, nor ``42`` in ``142``, ``3.42``,
  ``-42`` or ``42Gi``. Scripts written without spaces have no such words.
- A number is compared whole, by its value, not by its spelling: ``3.50`` stands at 3.5,
  ``42`` does not stand at 142.
- ``true``, ``false`` and ``null`` are compared whole.

The limit, said plainly: ``errors`` stands in ``no errors``. What a quotation leaves out
of its line is not seen here, nor by the verifier.
"""

import re
import unicodedata
from decimal import Decimal

from worker.claims.raw_path import Scalar

MAX_MATCHED_TEXT = 2000
"""Characters of one matched text: a quotation, not a whole log."""

_MAX_TRIES = 1000
"""Occurrences that are looked at. One that is whole is nearly always among the first."""

_MAX_NUMBER = 64
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = frozenset({"Lu", "Ll", "Lt", "Lm", "Nd", "Nl", "No", "Pc"})
_MARKS = frozenset({"Mn", "Mc", "Me"})
_JOINERS = "\u200d\ufe0e\ufe0f"
_SIGNS = "+-\u2212"


def stands(matched: str, value: Scalar) -> bool:
    """Tell whether ``matched`` stands at ``value``; it must not be empty."""
    if isinstance(value, str):
        return find(matched, value) >= 0
    if value is None or isinstance(value, bool):
        return matched == {None: "null", True: "true", False: "false"}[value]
    if len(matched) > _MAX_NUMBER or _NUMBER.fullmatch(matched) is None:
        return False
    return Decimal(matched) == value


def find(matched: str, text: str) -> int:
    """Where ``matched`` first stands in a text, or -1."""
    start = text.find(matched)
    for _ in range(_MAX_TRIES):
        if start < 0:
            return -1
        if not (_cuts(text, start) or _cuts(text, start + len(matched))):
            return start
        start = text.find(matched, start + 1)
    return -1


def lines_around(matched: str, text: str) -> str:
    """The whole lines that the first standing ``matched`` touches; it must stand there."""
    start = find(matched, text)
    end = text.find("\n", start + len(matched))
    return text[text.rfind("\n", 0, start) + 1 : end if end >= 0 else len(text)]


def _cuts(text: str, index: int) -> bool:
    """Tell whether a cut before ``index`` goes through a character, a word or a number."""
    if not 0 < index < len(text):
        return False
    left, right = text[index - 1], text[index]
    if unicodedata.category(right) in _MARKS or right in _JOINERS or left == "\u200d":
        return True
    if _is_word(left) and _is_word(right):
        return True
    before = text[index - 2] if index > 1 else " "
    after = text[index + 1] if index + 1 < len(text) else " "
    if left in ".," and before.isdecimal():
        return right.isdecimal()
    if right in ".," and left.isdecimal():
        return after.isdecimal()
    if left in _SIGNS and not _is_word(before):
        return right.isdecimal() or (right == "." and after.isdecimal())
    return left == "." and right.isdecimal()


def _is_word(char: str) -> bool:
    return unicodedata.category(char) in _WORD
