"""The trace summary, over records alone: nothing here needs a server or a model."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle, Retrieval
from contracts.trace import EvidenceLevel, TraceEntry, TraceOutcome
from tests.trace.records import deduplicated, failed, hit, line, record, unfinished
from worker.trace.hits import MOST_EXCERPT
from worker.trace.summary import MOST_GAPS, MOST_REASON, summarise

PATTERN = {"total_matches": 9, "patterns": [{"pattern": "timeout <*>", "count": 9}], "events": []}


def one(*records: InvocationRecord) -> TraceEntry:
    (entry,) = summarise(records)
    return entry


@pytest.mark.scenario("trace-summary", "Failed calls stay visible")
def test_a_failed_call_stays_with_the_gap_that_it_leaves() -> None:
    """It is counted, named and explained, and the entry says that nothing is known."""
    entry = one(failed("c1", "TOOL_FAILED: the store answered 503"))
    assert entry.outcome is TraceOutcome.FAILED
    assert entry.level is EvidenceLevel.NONE
    assert entry.excerpt is None
    assert (entry.calls, entry.failed_calls) == (1, 1)
    (gap,) = entry.gaps
    assert (gap.invocation_id, gap.reason) == ("c1", "TOOL_FAILED: the store answered 503")
    assert entry.output_summary == (
        "no evidence: the calls failed, so nothing is known here (1 failed)"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"lifecycle": Lifecycle.ERROR, "evidence_status": EvidenceStatus.EVIDENCE_FOUND},
        {"lifecycle": Lifecycle.READY, "evidence_status": EvidenceStatus.ERROR},
        {"lifecycle": Lifecycle.READY, "evidence_status": None},
    ],
)
def test_a_record_that_says_in_any_way_that_it_failed_failed(fields: dict[str, Any]) -> None:
    """Whatever else it holds, it raises nothing."""
    entry = one(record("c1", output_preview="12:00 timeout", **fields))
    assert entry.outcome is TraceOutcome.FAILED
    assert entry.gaps[0].reason == "the call failed and gave no reason"


@pytest.mark.scenario("trace-summary", "Failed calls stay visible")
def test_a_call_without_an_end_is_a_gap_too() -> None:
    """A record that stayed PROJECTING is told as what it is."""
    entry = one(unfinished("c1"))
    assert entry.outcome is TraceOutcome.UNFINISHED
    assert entry.unfinished_calls == 1
    assert "no end" in entry.gaps[0].reason


@pytest.mark.scenario("trace-summary", "Empty and repeated looks raise no level")
@pytest.mark.parametrize(
    ("records", "outcome", "sentence"),
    [
        ([record("c1")], TraceOutcome.NO_HIT, "found no usable evidence"),
        ([deduplicated("c1")], TraceOutcome.DEDUPLICATED, "no new evidence"),
        ([deduplicated("c1"), record("c2")], TraceOutcome.NO_HIT, "found no usable evidence"),
    ],
)
def test_no_hit_and_deduplicated_calls_have_no_level(
    records: list[InvocationRecord], outcome: TraceOutcome, sentence: str
) -> None:
    """They are counted, and told as no evidence or as no new evidence."""
    entry = one(*records)
    assert entry.level is EvidenceLevel.NONE
    assert entry.outcome is outcome
    assert sentence in entry.output_summary
    assert entry.no_hit_calls + entry.deduplicated_calls == len(records)


@pytest.mark.scenario("trace-summary", "Empty and repeated looks raise no level")
def test_a_deduplicated_call_is_no_fresh_hit_even_with_content() -> None:
    """What was seen before is not found again, whatever its record holds."""
    entry = one(hit("c1", line("timeout"), deduplicated=True))
    assert entry.outcome is TraceOutcome.DEDUPLICATED
    assert entry.excerpt is None


@pytest.mark.scenario("trace-summary", "The strongest hit is kept")
def test_the_strongest_hit_sets_the_level_and_the_counts_stay() -> None:
    """Hits, repeats, failures and empty looks of one topic in one entry."""
    entry = one(
        record("c1"),
        failed("c2"),
        hit("c3", PATTERN),
        deduplicated("c4"),
        hit("c5", line("upstream timeout")),
        record("c6"),
    )
    assert entry.level is EvidenceLevel.DIRECT
    assert entry.excerpt == "12:00:01 ERROR upstream timeout"
    assert entry.excerpt_invocation_id == "c5"
    assert entry.calls == 6
    assert entry.repeated_calls == 5
    assert (entry.hit_calls, entry.no_hit_calls) == (2, 2)
    assert (entry.deduplicated_calls, entry.failed_calls) == (1, 1)


@pytest.mark.scenario("trace-summary", "Merged calls include one hit")
def test_merged_log_calls_keep_the_one_direct_hit_and_every_id() -> None:
    """One hit among many empty looks is not lost, and no merged call loses its id."""
    records = [record(f"c{number}") for number in range(1, 30)]
    records[17] = hit("c18", line("upstream timed out"))
    entry = one(*records)
    assert entry.outcome is TraceOutcome.HIT
    assert "upstream timed out" in str(entry.excerpt)
    assert entry.source_invocation_ids == tuple(f"c{number}" for number in range(1, 30))


@pytest.mark.scenario("trace-summary", "A truncated preview with a hit")
@pytest.mark.parametrize(
    "result",
    [
        None,
        '{"tool_name": "query_logs", "events": [{"time',
        '{"total_matches": 3, "patterns": [], "events": []}',
    ],
)
def test_a_truncated_preview_with_a_concrete_hit_is_a_hit(result: str | None) -> None:
    """A cut alone makes nothing of evidence into none."""
    entry = one(
        record(
            "c1",
            evidence_status=EvidenceStatus.EVIDENCE_FOUND,
            agent_result=result,
            truncated=True,
            preview_truncated=True,
            output_preview="\n12:00:01 upstream timed out\n12:00:02 ups",
        )
    )
    assert entry.outcome is TraceOutcome.HIT
    assert entry.level is EvidenceLevel.DIRECT
    assert entry.excerpt == "12:00:01 upstream timed out"
    assert entry.truncated_calls == 1


DOCUMENT = {"documents": [{"document_id": "d", "title": "Pools", "excerpt": "Check sizes."}]}
SERIES = {
    "series": [
        {"labels": {}, "points": [], "unit": None},
        {
            "labels": {"job": "db"},
            "points": [{"timestamp": "t1", "value": 1.0}, {"timestamp": "t2", "value": 7.5}],
            "unit": "s",
        },
    ]
}
ROWS = {"columns": ["id", "state"], "rows": [[7, None]], "row_count": 1}


@pytest.mark.parametrize(
    ("tool", "content", "level", "excerpt"),
    [
        ("query_logs", PATTERN, "INDIRECT", "9 times: timeout <*>"),
        ("query_logs", line("slow", None), "DIRECT", "12:00:01 slow"),
        ("lookup_knowledge", DOCUMENT, "INDIRECT", "Pools: Check sizes."),
        ("query_metrics", SERIES, "DIRECT", "job=db t2 7.5 s"),
        ("query_mysql", ROWS, "DIRECT", "id=7, state=None"),
        ("run_command", {"stdout": "\n a\nb", "stderr": "x"}, "DIRECT", "a"),
        ("run_command", {"stdout": " ", "stderr": "denied"}, "INDIRECT", "denied"),
        ("query_traces", {"spans": [1], "tool_name": "t"}, "DIRECT", '{"spans":[1]}'),
        ("query_traces", "plain words", "DIRECT", "plain words"),
    ],
)
def test_each_tool_shows_its_concrete_piece(
    tool: str, content: Any, level: str, excerpt: str
) -> None:
    """What a reader sees is the piece of the result that shows most, never the whole."""
    entry = one(hit("c1", content, tool))
    assert (entry.level, entry.excerpt) == (level, excerpt)


def test_a_highly_relevant_passage_is_direct() -> None:
    """The knowledge base's own word about relevance counts."""
    for relevance, level in (("HIGH", "DIRECT"), ("LOW", "INDIRECT"), (None, "INDIRECT")):
        retrieval = Retrieval(relevance_level=relevance)
        entry = one(hit("c1", DOCUMENT, "lookup_knowledge", retrieval=retrieval))
        assert entry.level == level


@pytest.mark.parametrize("content", [{}, {"stdout": 7}, " ", {"stdout": "", "stderr": ""}])
def test_a_hit_that_shows_nothing_is_none(content: Any) -> None:
    """A record may say what it likes: without a concrete piece it raises nothing."""
    assert one(hit("c1", content, "run_command")).outcome is TraceOutcome.NO_HIT


def test_everything_told_is_bounded() -> None:
    """Long lines, long reasons and many gaps are cut; the counts are not."""
    entry = one(
        hit("c0", line("ä" * 10_000)),
        *(failed(f"c{number}", "€" * 5000) for number in range(1, 100)),
    )
    assert len(str(entry.excerpt).encode()) <= MOST_EXCERPT
    assert len(entry.gaps) == MOST_GAPS
    assert all(len(gap.reason.encode()) <= MOST_REASON for gap in entry.gaps)
    assert entry.failed_calls == 99


@pytest.mark.parametrize(
    ("tool", "request_", "topic"),
    [
        ("query_logs", {"source": "gateway", "query": "a"}, "gateway"),
        ("lookup_knowledge", {"query": "a"}, "knowledge"),
        ("query_metrics", {"source": "p", "query": 'sum(rate(http_errors{a="b"}[5m])) by (pod)'},
         "p http_errors"),
        ("query_metrics", {"source": "p", "query": "up"}, "p up"),
        ("query_mysql", {"data_source": "d", "sql": "select 1 from `orders` where 1"}, "d orders"),
        ("query_mysql", {"data_source": "d", "sql": "show processlist"}, "d"),
        ("run_command", {"command": "kubectl logs pod-1 --tail=5", "host": "k"}, "k kubectl logs"),
        ("run_command", {"command": "sudo df -h"}, "df"),
        ("run_command", {"command": "echo 'unclosed"}, "echo"),
        ("query_traces", {"service": "checkout"}, "checkout"),
        ("query_traces", {"n": 1}, "unknown"),
        ("run_command", {}, "unknown"),
    ],
)  # fmt: skip
def test_a_topic_is_what_was_looked_at(tool: str, request_: dict[str, Any], topic: str) -> None:
    """Repeated looks at one thing have one topic, however they were worded."""
    assert one(record("c1", tool, request=request_)).topic == topic


def test_tools_and_topics_stay_apart() -> None:
    """Nothing of one topic counts for another, and entries stand in the order of the calls."""
    other = {"source": "orders", "query": "timeout"}
    entries = summarise(
        [record("c1"), hit("c2", line("x"), request=other), hit("c3", ROWS, "query_mysql")]
    )
    assert [(entry.tool, entry.topic, entry.calls) for entry in entries] == [
        ("query_logs", "gateway", 1),
        ("query_logs", "orders", 1),
        ("query_mysql", "unknown", 1),
    ]
    assert entries[0].level is EvidenceLevel.NONE


_OUTCOMES = {
    TraceOutcome.HIT: lambda call_id: hit(call_id, line("x")),
    TraceOutcome.NO_HIT: record,
    TraceOutcome.DEDUPLICATED: deduplicated,
    TraceOutcome.FAILED: failed,
    TraceOutcome.UNFINISHED: unfinished,
}


@pytest.mark.scenario("trace-summary", "Any mixture of calls")
@given(st.lists(st.sampled_from(list(TraceOutcome)), min_size=1, max_size=30))
def test_every_call_is_counted_once_and_only_hits_have_a_level(kinds: list[TraceOutcome]) -> None:
    """In any mixture the five counts add up, and the level is there if and only if one hit."""
    entry = one(*(_OUTCOMES[kind](f"c{number}") for number, kind in enumerate(kinds)))
    counts = Counter(kinds)
    assert entry.hit_calls == counts[TraceOutcome.HIT]
    assert entry.no_hit_calls == counts[TraceOutcome.NO_HIT]
    assert entry.deduplicated_calls == counts[TraceOutcome.DEDUPLICATED]
    assert entry.failed_calls == counts[TraceOutcome.FAILED]
    assert entry.unfinished_calls == counts[TraceOutcome.UNFINISHED]
    assert entry.calls == len(kinds) == entry.repeated_calls + 1
    assert len(entry.source_invocation_ids) == len(kinds)
    assert (entry.level is not EvidenceLevel.NONE) == (TraceOutcome.HIT in kinds)
    assert (entry.outcome is TraceOutcome.HIT) == (TraceOutcome.HIT in kinds)
    holes = counts[TraceOutcome.FAILED] + counts[TraceOutcome.UNFINISHED]
    assert len(entry.gaps) == min(holes, MOST_GAPS)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["documents", "events", "patterns", "series", "points", "rows"])
            | st.sampled_from(["stdout", "stderr", "columns", "labels", "title", "value"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    _JSON,
    st.sampled_from(["query_logs", "query_metrics", "query_mysql", "run_command"])
    | st.sampled_from(["lookup_knowledge", "query_traces"]),
    st.dictionaries(st.sampled_from(["query", "sql", "command", "source"]), _JSON, max_size=3),
)
def test_any_stored_content_is_told(content: Any, tool: str, request: dict[str, Any]) -> None:
    """Agents in any language write records; whatever is in one, the summary tells it."""
    entry = one(hit("c1", json.dumps(content), tool, request=request))
    assert entry.calls == 1
    assert (entry.excerpt is None) == (entry.level is EvidenceLevel.NONE)
