"""Observed facts: what verified calls saw, told in fixed words.

A fact is typed. It can hold a known tool, a source's name, a known log level, times
and bounded numbers; it has no place for a query, a command or a sentence. Its words
are chosen here, by tool and locale. An empty result is "no matches in this scope"
and never health or exclusion.
"""

from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from pydantic import Field, ValidationError

from contracts.base import Contract, SourceName, Timestamp, isoformat
from contracts.fallback import Locale
from worker.guards.calls import VerifiedCall
from worker.guards.fact_words import WORDS, FactWords, Tool

MAX_FACTS = 20
"""Facts in one fallback, at most; the first ones stay."""

MAX_FACT_LENGTH = 400
"""Characters of one fact. The typed bounds below keep every fact under it."""

Level = Literal[
    "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "CRITICAL", "ALERT",
    "EMERGENCY", "FATAL", "SEVERE", "PANIC",
]  # fmt: skip

_LEVELS: dict[str, Level] = {level: level for level in get_args(Level)}
_TOOLS: dict[str, Tool] = {tool: tool for tool in get_args(Tool)}


class ObservedFact(Contract):
    """One check and its outcome. ``tool`` is None for a tool that was registered from outside."""

    tool: Tool | None
    source: SourceName
    observed_at: Timestamp
    found: bool
    start: Timestamp | None = None
    end: Timestamp | None = None
    level: Level | None = None
    count: Annotated[int, Field(ge=0, lt=10**12)] | None = None
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**32)] | None = None


def observed_facts(calls: Iterable[VerifiedCall]) -> tuple[ObservedFact, ...]:
    """The facts of these calls, each once, in their order, at most ``MAX_FACTS``.

    A deduplicated or truncated call gives none, since it did not look at everything.
    A number outside its bounds gives none either.
    """
    facts = (_fact(call) for call in calls if not (call.deduplicated or call.truncated))
    return tuple(dict.fromkeys(fact for fact in facts if fact is not None))[:MAX_FACTS]


def render(fact: ObservedFact, locale: Locale) -> str:
    """Tell a fact in the fixed words of a locale."""
    words = WORDS[locale]
    parts = [words.check[fact.tool].format(source=fact.source)]
    if fact.level is not None:
        parts.append(words.level.format(level=fact.level))
    if fact.start is not None and fact.end is not None:
        parts.append(words.window.format(start=isoformat(fact.start), end=isoformat(fact.end)))
    else:
        parts.append(words.moment.format(moment=isoformat(fact.observed_at)))
    if fact.exit_code is not None:
        parts.append(words.exit_code.format(code=fact.exit_code))
    return words.comma.join(parts) + words.then + _outcome(fact, words) + words.stop


def _outcome(fact: ObservedFact, words: FactWords) -> str:
    if not fact.found:
        return words.nothing
    if fact.count is None:
        return words.something
    return words.counted[fact.tool].format(count=fact.count)


def _fact(call: VerifiedCall) -> ObservedFact | None:
    seen = call.observed
    try:
        return ObservedFact(
            tool=_TOOLS.get(call.origin.tool),
            source=call.origin.source,
            observed_at=call.origin.observed_at,
            found=call.found,
            start=seen.start,
            end=seen.end,
            level=_LEVELS.get((seen.level or "").upper()),
            count=seen.count,
            exit_code=seen.exit_code,
        )
    except ValidationError:
        return None
