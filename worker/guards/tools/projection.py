"""What the guard must know about a tool before it believes one of its results."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from contracts.base import OpenContract
from contracts.evidence import EvidenceStatus, Projection

RequestT = TypeVar("RequestT", bound=OpenContract)
ResultT = TypeVar("ResultT", bound=Projection)

REPEATED = frozenset({"tool_name", "tool_call_id", "evidence_status"})
"""Fields that each result repeats from its record; they are compared, never shown."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The typed facts of one call, for the fixed templates of ``facts``.

    Numbers and times only, and ``level``, which is shown only if it is a known one.
    What ``count`` counts is the tool's affair: matches, points, rows, documents.
    """

    start: datetime | None = None
    end: datetime | None = None
    level: str | None = None
    count: int | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class ToolProjection(Generic[RequestT, ResultT]):
    """The typed view of one tool. All functions are pure and total.

    - ``request``, ``result``: strict models of the arguments and of ``agent_result``.
      The result has a field ``tool_name`` beside those of ``Projection``.
    - ``source``: name of the system that was looked at; it must be a SourceName.
    - ``scope``: names of the request's fields that say where and for what it looked.
      They enter the snapshot exactly as they were sent.
    - ``asks``: whether the request has a scope at all. A window that ends before it
      starts, or a blank command, looked at nothing.
    - ``status``: the status that the content bears out; None if it contradicts itself.
    - ``self_authored``: whether a result that found something says no more than its
      own request, so that the agent would be citing itself.
    - ``observed``: typed facts, free of anything that the agent worded.
    - ``excerpt``: the result's field that is shown as exact text; all other fields
      of the result are shown as values.
    """

    request: type[RequestT]
    result: type[ResultT]
    source: Callable[[RequestT], str]
    scope: tuple[str, ...]
    asks: Callable[[RequestT], bool]
    status: Callable[[ResultT], EvidenceStatus | None]
    self_authored: Callable[[RequestT, ResultT], bool]
    observed: Callable[[RequestT, ResultT], Observed]
    excerpt: str | None = None

    def shown_scope(self, request: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """The scope's fields as they were sent; absent and null ones are left out."""
        return {name: request[name] for name in self.scope if request.get(name) is not None}

    def shown_values(self, result: dict[str, Any]) -> dict[str, JsonValue]:
        """The result's declared fields, copied and not rewritten, so that numbers stay exact."""
        hidden = REPEATED | {self.excerpt}
        return {
            name: result[name]
            for name in self.result.model_fields
            if name in result and name not in hidden
        }


AnyProjection = ToolProjection[Any, Any]
