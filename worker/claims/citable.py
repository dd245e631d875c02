"""One call's result as a place to quote from.

A result may hold a real line beside one that the agent wrote itself (``uptime; echo
...``, ``SELECT 'words', state``). A reviewer of drafts sees the exact request and can
tell; a verifier of claims sees quotations only. So what is quoted is asked about alone:
the result is narrowed to the quoted line or item, and the tool says whether that repeats
the request.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from contracts.fallback import VerifiedSource
from contracts.strict_json import canonical, parse
from worker.claims.matched_text import lines_around
from worker.claims.raw_path import Place
from worker.guards.calls import VerifiedCall
from worker.guards.tools import AnyProjection
from worker.guards.tools.projection import REPEATED

_NAMED_BY_REQUEST: Mapping[str, str] = {"query_mysql": "columns"}
"""Fields whose words the request chooses: ``AS`` names a column as it likes."""


@dataclass(frozen=True)
class Citable:
    """A verified call; ``result`` has exact numbers and no field about the call itself."""

    origin: VerifiedSource
    found: bool
    result: dict[str, Any]
    _request: Any
    _document: dict[str, Any]
    _projection: AnyProjection

    @classmethod
    def of(cls, call: VerifiedCall, stored: bytes, projection: AnyProjection) -> "Citable":
        """Read again what ``call`` was read from: floats would have lost digits of numbers."""
        record = parse(stored)
        exact = json.loads(record["agent_result"], parse_float=Decimal)
        return cls(
            origin=call.origin,
            found=call.found,
            result={name: value for name, value in exact.items() if name not in REPEATED},
            _request=projection.request.model_validate_json(canonical(record.get("request", {}))),
            _document=parse(record["agent_result"]),
            _projection=projection,
        )

    def wrote(self, place: Place, matched: str) -> bool:
        """Tell whether the request itself wrote what stands at ``place`` around ``matched``."""
        if _NAMED_BY_REQUEST.get(self.origin.tool) == place[0]:
            return True
        narrowed = _narrowed(self._document, place, matched)
        try:
            result = self._projection.result.model_validate_json(canonical(narrowed))
        except ValidationError:
            return False  # a tool that refuses the part was asked about the whole
        return self._projection.self_authored(self._request, result)


def _narrowed(value: Any, place: Place, matched: str) -> Any:
    """The document with the one item of each list on the way, and the quoted lines alone.

    Texts beside a quoted text are emptied, but for the fields about the call itself.
    """
    if not place:
        return lines_around(matched, value) if isinstance(value, str) else value
    key, rest = place[0], place[1:]
    if isinstance(value, list):
        return [_narrowed(value[int(key)], rest, matched)]
    inner = _narrowed(value[key], rest, matched)
    if not isinstance(inner, str):
        return {**value, key: inner}
    emptied = {
        name: "" if isinstance(item, str) and name not in REPEATED else item
        for name, item in value.items()
    }
    return {**emptied, key: inner}
