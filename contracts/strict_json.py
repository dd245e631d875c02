"""JSON read without leniency: what Python's parser hides is found and named.

Python's ``json`` keeps the last of two equal keys, reads ``NaN`` and ``1e999``,
and passes lone surrogates through. Each would let two readers of the same bytes
see different documents, so each is an error here.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 64
"""Objects and arrays inside each other, at most."""


class StrictJsonError(ValueError):
    """The bytes are not strict JSON.

    ``code`` is one of NOT_UTF8, NOT_JSON, TOO_DEEP, DUPLICATE_KEY, NOT_FINITE,
    LONE_SURROGATE. Nothing of the input is quoted.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Flaw:
    """Stands in a parsed document where strict JSON ends; ``code`` as in StrictJsonError."""

    code: str


def read(data: bytes | str) -> Any:
    """Parse a document and put a :class:`Flaw` in the place of each value that is not strict.

    Raises StrictJsonError for what cannot be placed: NOT_UTF8, NOT_JSON, TOO_DEEP.
    """
    text = _text(data)
    return _checked(_decoded(_PLACING, text), 0)


def parse(data: bytes | str) -> Any:
    """Parse a document that is strict throughout; raises StrictJsonError otherwise."""
    text = _text(data)
    value = _decoded(_STRICT, text)
    if _may_be_deep(text) or _may_hold_surrogates(text):
        for flaw in flaws(_checked(value, 0)):
            raise StrictJsonError(flaw.code)
    return value


def flaws(value: Any) -> Iterator[Flaw]:
    """All flaws inside a value that :func:`read` returned."""
    if isinstance(value, Flaw):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from flaws(item)
    elif isinstance(value, list):
        for item in value:
            yield from flaws(item)


def canonical(value: Any) -> bytes:
    """Write a strict value in its one form: sorted keys, no spaces, UTF-8."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def _text(data: bytes | str) -> str:
    try:
        return data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise StrictJsonError("NOT_UTF8") from None


def _decoded(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        return decoder.decode(text)
    except StrictJsonError:
        raise
    except RecursionError:
        raise StrictJsonError("TOO_DEEP") from None
    except ValueError:
        raise StrictJsonError("NOT_JSON") from None


def _may_be_deep(text: str) -> bool:
    return text.count("[") + text.count("{") > MAX_DEPTH


def _may_hold_surrogates(text: str) -> bool:
    """In text that came as UTF-8 only an escape can make one; other text may hold one itself."""
    return "\\u" in text or not (text.isascii() or _encodes(text))


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Flaw("DUPLICATE_KEY")


def _constant(_: str) -> Flaw:
    return Flaw("NOT_FINITE")


def _float(text: str) -> Any:
    number = float(text)
    return number if math.isfinite(number) else Flaw("NOT_FINITE")


def _or_raise(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a hook raise its flaw instead of placing it."""

    def strict(given: Any) -> Any:
        value = hook(given)
        if isinstance(value, Flaw):
            raise StrictJsonError(value.code)
        return value

    return strict


_PLACING = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_STRICT = json.JSONDecoder(
    object_pairs_hook=_or_raise(_object),
    parse_constant=_or_raise(_constant),
    parse_float=_or_raise(_float),
)


def _checked(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if value.isascii() or _encodes(value) else Flaw("LONE_SURROGATE")
    if isinstance(value, (dict, list)) and depth >= MAX_DEPTH:
        raise StrictJsonError("TOO_DEEP")
    if isinstance(value, dict):
        if not all(key.isascii() or _encodes(key) for key in value):
            return Flaw("LONE_SURROGATE")
        return {key: _checked(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    return value


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
