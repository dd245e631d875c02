"""Observed facts: fixed words about what verified calls saw."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts.fallback import Locale, VerifiedSource
from tests.strategies import (
    FOUND,
    REQUESTS,
    RUN_ID,
    TOOLS,
    Case,
    drafts,
    record,
    sound_cases,
    stored,
)
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.evidence import cited_ids, verified_calls
from worker.guards.fact_words import WORDS, Tool
from worker.guards.facts import MAX_FACT_LENGTH, MAX_FACTS, ObservedFact, observed_facts, render
from worker.guards.tools import BUILT_IN, Observed

LOCALES: tuple[Locale, ...] = get_args(Locale)
NOTHING = {"en": "no matches in this scope", "zh-CN": "该范围内无匹配"}


def call(tool: str = "run_command", *, found: bool = True, **changes: Any) -> VerifiedCall:
    verified = read_call(RUN_ID, "call-1", stored(record(tool, found=found, **changes)), BUILT_IN)
    assert isinstance(verified, VerifiedCall), verified
    return verified


def told(*calls: VerifiedCall, locale: Locale = "en") -> list[str]:
    return [render(fact, locale) for fact in observed_facts(calls)]


WINDOW = "2026-05-01T13:00:00Z to 2026-05-01T14:00:00Z"
WINDOW_ZH = WINDOW.replace("to", "至")
AT = "2026-05-01T14:00:02Z"


@pytest.mark.scenario("release-policy", "Facts of hits and of empty results")
@pytest.mark.parametrize(
    ("tool", "found", "english", "chinese"),
    [
        (
            "lookup_knowledge",
            True,
            f"Knowledge search in knowledge, at {AT}; passages returned: 1.",
            f"知识库检索 knowledge，时间 {AT}；返回片段数 1。",
        ),
        (
            "lookup_knowledge",
            False,
            f"Knowledge search in knowledge, at {AT}; no matches in this scope.",
            f"知识库检索 knowledge，时间 {AT}；该范围内无匹配。",
        ),
        (
            "query_logs",
            True,
            f"Log search in gateway, level ERROR, {WINDOW}; matching entries: 3.",
            f"日志检索 gateway，级别 ERROR，{WINDOW_ZH}；匹配条目数 3。",
        ),
        (
            "query_logs",
            False,
            f"Log search in gateway, level ERROR, {WINDOW}; no matches in this scope.",
            f"日志检索 gateway，级别 ERROR，{WINDOW_ZH}；该范围内无匹配。",
        ),
        (
            "query_metrics",
            True,
            f"Metric query in prometheus, {WINDOW}; data points returned: 1.",
            f"指标查询 prometheus，{WINDOW_ZH}；返回数据点数 1。",
        ),
        (
            "query_metrics",
            False,
            f"Metric query in prometheus, {WINDOW}; no matches in this scope.",
            f"指标查询 prometheus，{WINDOW_ZH}；该范围内无匹配。",
        ),
        (
            "query_mysql",
            True,
            f"Database query in orders, at {AT}; rows returned: 2.",
            f"数据库查询 orders，时间 {AT}；返回行数 2。",
        ),
        (
            "query_mysql",
            False,
            f"Database query in orders, at {AT}; no matches in this scope.",
            f"数据库查询 orders，时间 {AT}；该范围内无匹配。",
        ),
        (
            "run_command",
            True,
            f"Command on web-1, at {AT}, exit code 3; output was returned.",
            f"命令执行于 web-1，时间 {AT}，退出码 3；有输出返回。",
        ),
        (
            "run_command",
            False,
            f"Command on web-1, at {AT}, exit code 1; no matches in this scope.",
            f"命令执行于 web-1，时间 {AT}，退出码 1；该范围内无匹配。",
        ),
    ],
)
def test_each_tool_and_locale_has_fixed_words(
    tool: str, found: bool, english: str, chinese: str
) -> None:
    """Hits and empty results are told from typed fields alone."""
    assert told(call(tool, found=found)) == [english]
    assert told(call(tool, found=found), locale="zh-CN") == [chinese]


def test_every_tool_and_locale_has_words() -> None:
    """No combination is missing, the tool from outside included."""
    tools = {*get_args(Tool), None}
    assert set(get_args(Tool)) == set(TOOLS) == set(BUILT_IN)
    assert set(WORDS) == set(LOCALES)
    for words in WORDS.values():
        assert set(words.check) == set(words.counted) == tools


@pytest.mark.scenario("release-policy", "Calls that give no fact")
def test_deduplicated_and_truncated_calls_give_no_fact() -> None:
    """They did not look at everything that they claim to have looked at."""
    for found in (True, False):
        good = call("query_logs", found=found)
        assert told(replace(good, truncated=True)) == []
        assert told(replace(good, deduplicated=True)) == []
        assert len(told(good)) == 1


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("error", ", level ERROR,"),
        ("Warn", ", level WARN,"),
        ("FATAL", ", level FATAL,"),
        ("redis is down", None),
        ("ERROR ", None),
        ("", None),
        (None, None),
    ],
)
def test_only_a_known_level_is_told(level: str | None, shown: str | None) -> None:
    """The level comes from the agent's request, so it is no free text here."""
    (fact,) = told(call("query_logs", request={**REQUESTS["query_logs"], "level": level}))
    assert (shown in fact) if shown else ("level" not in fact)


def test_a_tool_from_outside_is_told_without_its_name() -> None:
    """A registered tool has numbers and a source, and the general words."""
    outside = replace(
        call("query_mysql"),
        origin=VerifiedSource(
            tool="query_traces", source="jaeger", observed_at=datetime(2026, 5, 1, tzinfo=UTC)
        ),
    )
    assert told(outside) == ["Check of jaeger, at 2026-05-01T00:00:00Z; results returned: 2."]
    assert told(replace(outside, found=False)) == [
        "Check of jaeger, at 2026-05-01T00:00:00Z; no matches in this scope."
    ]


def test_half_a_window_is_told_as_a_moment() -> None:
    """A window needs both its ends."""
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    for seen in (Observed(start=moment, count=1), Observed(end=moment, count=1)):
        assert f", at {AT};" in told(replace(call("query_mysql"), observed=seen))[0]


def test_facts_keep_their_order_and_are_told_once() -> None:
    """The same check twice is one fact."""
    first, second = call("query_logs"), call("query_mysql")
    assert told(second, first, second) == [*told(second), *told(first)]


def test_facts_are_bounded_in_number() -> None:
    """The first ones stay, and repeats do not use up places."""
    rows = [
        call("query_mysql", content={**FOUND["query_mysql"], "row_count": count})
        for count in (2, 2, *range(3, MAX_FACTS + 5))
    ]
    facts = told(*rows)
    assert MAX_FACTS == 20
    assert len(facts) == MAX_FACTS
    assert facts[0].endswith(": 2.")
    assert facts[-1].endswith(f": {MAX_FACTS + 1}.")


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        (Observed(count=10**12 - 1), True),
        (Observed(count=10**12), False),
        (Observed(count=0), True),
        (Observed(count=-1), False),
        (Observed(exit_code=2**32 - 1), True),
        (Observed(exit_code=2**32), False),
        (Observed(exit_code=-(2**31)), True),
        (Observed(exit_code=-(2**31) - 1), False),
    ],
)
def test_a_number_outside_its_bounds_gives_no_fact(seen: Observed, kept: bool) -> None:
    """A long enough number would be a text."""
    assert len(told(replace(call(), observed=seen))) == kept


def test_the_longest_fact_stays_under_its_limit() -> None:
    """The typed bounds are enough, in each locale and for each tool."""
    moment = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    for tool in (*get_args(Tool), None):
        fact = ObservedFact(
            tool=tool,
            source="x" * 128,
            observed_at=moment,
            found=True,
            start=moment,
            end=moment,
            level="EMERGENCY",
            count=10**12 - 1,
            exit_code=-(2**31),
        )
        for locale in LOCALES:
            assert len(render(fact, locale)) <= MAX_FACT_LENGTH


@pytest.mark.parametrize(
    "changes",
    [{"tool": "query_traces"}, {"level": "down"}, {"source": "redis is down"}, {"note": "x"}],
)
def test_a_fact_has_no_place_for_a_sentence(changes: dict[str, Any]) -> None:
    """Its type refuses what is not a name, a time, a level or a number."""
    good = {"tool": "query_logs", "source": "gateway", "observed_at": AT, "found": True}
    ObservedFact.model_validate({**good, "observed_at": datetime(2026, 5, 1, tzinfo=UTC)})
    with pytest.raises(ValidationError):
        ObservedFact.model_validate(
            {**good, "observed_at": datetime(2026, 5, 1, tzinfo=UTC), **changes}
        )


@pytest.mark.scenario("release-policy", "Facts of hits and of empty results")
@given(sound_cases(), st.sampled_from(LOCALES))
def test_facts_never_hold_what_was_asked_or_found(case: Case, locale: Locale) -> None:
    """No query, command, statement, message, excerpt or title, and no word of the draft."""
    calls = verified_calls(case.run_id, cited_ids(case.draft), case.records, BUILT_IN)
    text = "\n".join(render(fact, locale) for fact in observed_facts(calls))
    for words in (
        "upstream", "timed out", "http_errors", "SELECT", "DEAD", "state", "systemctl",
        "inactive", "redis", "maxmemory", "Limits", "kb-7", "call-", "session", RUN_ID,
    ):  # fmt: skip
        assert words not in text
    empty = [render(fact, locale) for fact in observed_facts(calls) if not fact.found]
    assert all(NOTHING[locale] in fact for fact in empty)
    assert not any(word in text.lower() for word in ("healthy", "normal", "excluded", "健康"))


@given(drafts())
def test_a_draft_without_records_gives_no_facts(draft: Any) -> None:
    """Facts come from records, never from the draft."""
    assert observed_facts(verified_calls(RUN_ID, cited_ids(draft), {}, BUILT_IN)) == ()
