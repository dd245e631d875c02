"""Attribute values and recorded messages of OTLP JSON."""

import math
import re
from collections.abc import Iterator
from typing import Any

from contracts.strict_json import StrictJsonError, parse
from worker.client.transcripts.conversation import is_unicode
from worker.client.transcripts.transcript import Refusal, TranscriptError

_DEEPEST = 16
_WHOLE = re.compile(r"-?[0-9]{1,19}")


def attributes_of(value: object, place: str) -> dict[str, Any]:
    """A span's attributes by name: a list of key and typed value each.

    Raises TranscriptError NOT_A_SPAN for another shape or a name that stands twice.
    """
    if value is None:
        return {}
    if not isinstance(value, list):
        raise TranscriptError(Refusal.NOT_A_SPAN, place)
    found: dict[str, Any] = {}
    for index, item in enumerate(value):
        where = f"{place}[{index}]"
        key = item.get("key") if isinstance(item, dict) else None
        if not isinstance(key, str) or key in found:
            raise TranscriptError(Refusal.NOT_A_SPAN, where)
        found[key] = _plain(item.get("value"), where, 0)
    return found


def _plain(value: object, place: str, depth: int) -> Any:
    """A typed value as plain JSON; whole numbers may be written as text."""
    if not isinstance(value, dict) or len(value) > 1 or depth > _DEEPEST:
        raise TranscriptError(Refusal.NOT_A_SPAN, place)
    for kind, inner in value.items():
        match kind, inner:
            case "stringValue", str():
                if not is_unicode(inner):
                    raise TranscriptError(Refusal.TEXT_NOT_UNICODE, place)
                return inner
            case "boolValue", bool():
                return inner
            case "intValue", str() if _WHOLE.fullmatch(inner):
                return int(inner)
            case "intValue" | "doubleValue", int() | float() if math.isfinite(inner):
                return inner
            case "arrayValue", dict():
                items = inner.get("values") or []
                if isinstance(items, list):
                    return [_plain(item, place, depth + 1) for item in items]
            case "kvlistValue", dict():
                pairs = inner.get("values") or []
                if isinstance(pairs, list) and all(_is_pair(pair) for pair in pairs):
                    return {
                        pair["key"]: _plain(pair.get("value"), place, depth + 1) for pair in pairs
                    }
            case "bytesValue", str():
                return inner
        raise TranscriptError(Refusal.NOT_A_SPAN, place)
    return None


def _is_pair(value: object) -> bool:
    key = value.get("key") if isinstance(value, dict) else None
    return isinstance(key, str) and is_unicode(key)


def parts_of(recorded: object, role: str) -> Iterator[str]:
    """The texts of one role in recorded messages, which are JSON or structured already.

    Messages are no evidence: what cannot be read of them is passed over.
    """
    if isinstance(recorded, str):
        try:
            recorded = parse(recorded)
        except StrictJsonError:
            return
    for message in recorded if isinstance(recorded, list) else ():
        if not isinstance(message, dict) or message.get("role") != role:
            continue
        parts = message.get("parts")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "text":
                text = part.get("content")
                if isinstance(text, str) and is_unicode(text):
                    yield text
