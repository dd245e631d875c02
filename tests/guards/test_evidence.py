"""The evidence check over a whole draft, and what stands of a draft without a conclusion."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.draft import NEGATIVE_OBSERVATION, NORMAL, DiagnosisDraft
from tests.strategies import (
    RUN_ID,
    Case,
    broken_records,
    draft,
    drafts,
    record,
    sound_case,
    sound_cases,
    stored,
)
from worker.guards import snapshot as snapshot_module
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.evidence import (
    EvidenceReport,
    check_evidence,
    cited_ids,
    verified_calls,
    verified_references,
)
from worker.guards.snapshot import snapshot_bytes
from worker.guards.tools import BUILT_IN
from worker.guards.violations import Violation
from worker.guards.violations import ViolationCode as Code


def check(case: Case) -> EvidenceReport:
    return check_evidence(case.run_id, case.draft, case.records, BUILT_IN)


def found(case: Case) -> list[tuple[str, str]]:
    return [(item.code.value, item.target) for item in check(case).violations]


def analysis(kind: str, *ids: str, name: str = "a1") -> dict[str, Any]:
    return {"analysis_id": name, "kind": kind, "text": "Seen.", "tool_call_ids": list(ids)}


def one(kind: str, document: dict[str, Any]) -> Case:
    """A run whose one analysis of this kind cites this record."""
    changed = draft(analyses=[analysis(kind, "call-1")], recommendations=[])
    return Case(RUN_ID, changed, {"call-1": stored(document)})


def test_a_sound_draft_gives_a_snapshot_and_its_sources() -> None:
    """No violation, and everything that the review needs."""
    report = check(sound_case())
    assert report.violations == ()
    assert report.snapshot is not None
    assert [(source.tool, source.source) for source in report.sources] == [
        ("run_command", "web-1"),
        ("query_logs", "gateway"),
    ]


def test_structural_violations_come_first_and_are_not_the_only_ones() -> None:
    """One check names everything that a repair would have to mend."""
    case = sound_case(conclusion={"text": "", "based_on_analysis_ids": []})
    assert found(case.with_record("call-2", None)) == [
        ("TEXT_BLANK", "conclusion.text"),
        ("REFERENCES_EMPTY", "conclusion.based_on_analysis_ids"),
        ("RECORD_MISSING", "analyses[1].tool_call_ids[0]"),
    ]


def test_each_citation_of_a_bad_record_is_named_by_its_place() -> None:
    """Targets are positions, also for the second place of an analysis."""
    case = Case(
        RUN_ID,
        draft(
            analyses=[
                analysis(NORMAL, "call-1", "call-9"),
                analysis(NORMAL, "call-9", "call-1", name="a2"),
            ]
        ),
        {"call-1": stored(record())},
    )
    assert found(case) == [
        ("RECORD_MISSING", "analyses[0].tool_call_ids[1]"),
        ("RECORD_MISSING", "analyses[1].tool_call_ids[0]"),
    ]


@pytest.mark.scenario("evidence-check", "An empty result as negative observation")
def test_valid_negative_observation() -> None:
    """An empty result supports a negative observation, and says no more than its scope."""
    report = check(one(NEGATIVE_OBSERVATION, record("query_logs", found=False)))
    assert report.snapshot is not None
    (evidence,) = report.snapshot.analyses[0].evidence
    assert (evidence.found, evidence.excerpt, evidence.values) == (False, None, None)
    assert evidence.scope["query"] == "upstream timed out"


@pytest.mark.scenario("evidence-check", "A positive claim on an empty result")
def test_positive_claim_uses_no_evidence_result() -> None:
    """A normal analysis needs a hit."""
    assert found(one(NORMAL, record("query_logs", found=False))) == [
        ("KIND_STATUS_MISMATCH", "analyses[0].tool_call_ids[0]")
    ]


def test_negative_observation_uses_a_hit() -> None:
    """A negative observation needs an empty result."""
    assert found(one(NEGATIVE_OBSERVATION, record("query_logs"))) == [
        ("KIND_STATUS_MISMATCH", "analyses[0].tool_call_ids[0]")
    ]


@pytest.mark.scenario("evidence-check", "A call that did not look at everything")
@pytest.mark.parametrize("kind", [NORMAL, NEGATIVE_OBSERVATION])
@pytest.mark.parametrize("hit", [True, False])
def test_a_deduplicated_call_supports_neither_kind(kind: str, hit: bool) -> None:
    """It was answered with "seen before" instead of a look."""
    case = one(kind, record(found=hit, deduplicated=True))
    assert found(case) == [("CALL_DEDUPLICATED", "analyses[0].tool_call_ids[0]")]


@pytest.mark.scenario("evidence-check", "A call that did not look at everything")
@pytest.mark.parametrize(
    ("kind", "hit", "code"),
    [
        (NORMAL, True, None),
        (NORMAL, False, "KIND_STATUS_MISMATCH"),
        (NEGATIVE_OBSERVATION, True, "KIND_STATUS_MISMATCH"),
        (NEGATIVE_OBSERVATION, False, "CALL_TRUNCATED"),
    ],
)
def test_a_truncated_call_supports_a_hit_and_never_an_absence(
    kind: str, hit: bool, code: str | None
) -> None:
    """What it did not look at may hold the match."""
    expected = [(code, "analyses[0].tool_call_ids[0]")] if code else []
    assert found(one(kind, record(found=hit, truncated=True))) == expected


def test_an_unsupported_kind_may_cite_nothing() -> None:
    """Neither a hit nor an empty result fits it."""
    for hit in (True, False):
        assert ("KIND_STATUS_MISMATCH", "analyses[0].tool_call_ids[0]") in found(
            one("OTHER", record(found=hit))
        )


def test_a_draft_without_a_conclusion_gets_no_snapshot() -> None:
    """It is never reviewed, so nobody may take it for checked."""
    report = check(sound_case(conclusion=None))
    assert report.violations == (Violation(Code.CONCLUSION_MISSING, "conclusion"),)
    assert report.snapshot is None


def test_evidence_beyond_its_limit_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are counted once an analysis for every analysis, and the limit itself passes."""
    case = Case(
        RUN_ID,
        draft(
            analyses=[
                analysis(NORMAL, "call-1", "call-1"),
                analysis(NORMAL, "call-1", name="a2"),
            ]
        ),
        {"call-1": stored(record())},
    )
    size = 2 * len(stored(record()))
    monkeypatch.setattr("worker.guards.evidence.MAX_EVIDENCE_BYTES", size)
    assert found(case) == []
    monkeypatch.setattr("worker.guards.evidence.MAX_EVIDENCE_BYTES", size - 1)
    assert found(case) == [("EVIDENCE_TOO_LARGE", "analyses")]
    assert check(case).sources == ()
    assert snapshot_module.MAX_EVIDENCE_BYTES == 33_554_432


def test_a_report_holds_violations_or_a_snapshot_and_never_both() -> None:
    """The type itself refuses a contradiction."""
    good = check(sound_case())
    violation = Violation(Code.TEXT_BLANK, "conclusion.text")
    for parts in (
        ((violation,), good.snapshot, ()),
        ((), None, ()),
        ((violation,), None, good.sources),
    ):
        with pytest.raises(ValueError, match="a report"):
            EvidenceReport(*parts)


def test_cited_ids_are_unique_and_in_the_order_of_the_draft() -> None:
    """The records are fetched in one round trip by this list."""
    changed = draft(analyses=[analysis(NORMAL, "c", "a", "c"), analysis(NORMAL, "b", "a")])
    assert cited_ids(changed) == ("c", "a", "b")


def test_a_record_is_read_once_however_often_it_is_cited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large result that many analyses share costs one parse."""
    reads: list[str] = []

    def counting(run_id: str, key: str, content: bytes | None, tools: Any) -> Any:
        reads.append(key)
        return read_call(run_id, key, content, tools)

    monkeypatch.setattr("worker.guards.evidence.read_call", counting)
    ids = [analysis(NORMAL, "call-1", "call-1", name=f"a{n}") for n in range(1, 50)]
    check(Case(RUN_ID, draft(analyses=ids), {"call-1": stored(record())}))
    assert reads == ["call-1"]


def many(analyses: int) -> Case:
    keys = [[f"call-{n}-{m}" for m in range(5)] for n in range(analyses)]
    changed = draft(
        analyses=[analysis(NORMAL, *ids, name=f"a{n + 1}") for n, ids in enumerate(keys)]
    )
    return Case(
        RUN_ID,
        changed,
        {key: stored(record(tool_call_id=key)) for ids in keys for key in ids},
    )


@pytest.mark.scenario("evidence-check", "Many citations, one question to the store")
def test_the_check_is_linear_in_the_draft() -> None:
    """Ten times the draft takes at most twenty times the time, on a machine that may be busy."""

    def best(case: Case) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            assert check(case).violations == ()
            times.append(time.process_time() - start)
        return min(times)

    assert best(many(1000)) < 20 * best(many(100))


# --- drafts without a conclusion, and progress -----------------------------------


def ids_of(calls: tuple[VerifiedCall, ...]) -> list[str]:
    return [call.tool_call_id for call in calls]


@pytest.mark.scenario("evidence-check", "An empty result cited without a conclusion")
def test_no_conclusion_draft_has_valid_negative_observation() -> None:
    """A right reference stands without any other structure."""
    case = sound_case(conclusion=None, action_plan=[{"text": "", "based_on_analysis_ids": []}])
    calls = verified_references(case.run_id, case.draft, case.records, BUILT_IN)
    assert ids_of(calls) == ["call-1", "call-2"]


@pytest.mark.scenario("evidence-check", "A false reference without a conclusion")
@pytest.mark.parametrize(
    "content",
    [
        None,
        b"garbage",
        stored(record(run_id="run-2")),
        stored(record(lifecycle="PROJECTING")),
        stored(record(evidence_status="ERROR")),
        stored(record(found=False)),
        stored(record(deduplicated=True)),
    ],
)
def test_no_conclusion_draft_fabricates_a_tool_reference(content: bytes | None) -> None:
    """The bad reference is excluded, and the good one stays."""
    case = sound_case(conclusion=None).with_record("call-1", content)
    calls = verified_references(case.run_id, case.draft, case.records, BUILT_IN)
    assert ids_of(calls) == ["call-2"]


def test_a_call_counts_if_one_analysis_may_cite_it() -> None:
    """A wrong reference beside a right one takes nothing away, and adds no second entry."""
    case = Case(
        RUN_ID,
        draft(
            conclusion=None,
            analyses=[
                analysis(NEGATIVE_OBSERVATION, "call-1"),
                analysis(NORMAL, "call-1", "call-1"),
                analysis("OTHER", "call-2"),
            ],
        ),
        {"call-1": stored(record()), "call-2": stored(record(tool_call_id="call-2"))},
    )
    calls = verified_references(case.run_id, case.draft, case.records, BUILT_IN)
    assert ids_of(calls) == ["call-1"]


def test_progress_counts_each_call_that_really_looked() -> None:
    """Hits and empty results count; what is missing, foreign or deduplicated does not."""
    records: dict[str, bytes | None] = {
        "hit": stored(record(tool_call_id="hit")),
        "empty": stored(record(found=False, tool_call_id="empty")),
        "cut": stored(record(found=False, tool_call_id="cut", truncated=True)),
        "again": stored(record(tool_call_id="again", deduplicated=True)),
        "foreign": stored(record(tool_call_id="foreign", run_id="run-2")),
        "none": None,
    }
    ids = ["cut", "hit", "absent", "hit", *records]
    assert ids_of(verified_calls(RUN_ID, ids, records, BUILT_IN)) == ["cut", "hit", "empty"]


# --- properties -------------------------------------------------------------------


@given(sound_cases())
def test_every_sound_case_passes(case: Case) -> None:
    """The strategy and the guard agree on what is sound."""
    report = check(case)
    assert report.violations == ()
    assert report.snapshot is not None
    assert len(report.snapshot.analyses) == len(case.draft.analyses)


@given(drafts(), st.lists(broken_records(), min_size=1))
def test_any_violation_forbids_a_snapshot(
    any_draft: DiagnosisDraft, contents: list[bytes | None]
) -> None:
    """Whatever the draft and the records are, nothing raises and nothing half-passes."""
    ids = cited_ids(any_draft)
    records = {key: contents[n % len(contents)] for n, key in enumerate(ids)}
    report = check_evidence(RUN_ID, any_draft, records, BUILT_IN)
    assert bool(report.violations) is (report.snapshot is None)
    verified_references(RUN_ID, any_draft, records, BUILT_IN)
    verified_calls(RUN_ID, ids, records, BUILT_IN)


@given(sound_cases(), st.data())
def test_adding_a_violation_never_yields_a_snapshot(case: Case, data: st.DataObject) -> None:
    """One broken record behind a sound draft is enough."""
    key = data.draw(st.sampled_from(cited_ids(case.draft)))
    content = data.draw(
        st.sampled_from([None, b"{}", stored(record(tool_call_id=key, lifecycle="ERROR"))])
    )
    report = check(case.with_record(key, content))
    assert report.snapshot is None
    assert report.sources == ()
    assert report.violations


@pytest.mark.scenario("evidence-check", "Order changes nothing")
@given(sound_cases(), st.randoms(use_true_random=False))
def test_order_of_records_and_keys_does_not_change_the_snapshot(case: Case, random: Any) -> None:
    """Same draft and same records are the same bytes, however they are held or written."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, shuffled(item)) for key, item in value.items()]
            random.shuffle(items)
            return dict(items)
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    entries = []
    for key, content in case.records.items():
        document = shuffled(json.loads(content or b""))
        document["agent_result"] = json.dumps(shuffled(json.loads(document["agent_result"])))
        entries.append((key, json.dumps(document, indent=1).encode()))
    random.shuffle(entries)
    first, second = check(case), check(Case(case.run_id, case.draft, dict(entries)))
    assert first.snapshot is not None
    assert second.snapshot is not None
    assert snapshot_bytes(first.snapshot) == snapshot_bytes(second.snapshot)
    assert first.sources == second.sources


@given(sound_cases(), broken_records())
def test_a_record_that_is_not_cited_changes_nothing(case: Case, content: bytes | None) -> None:
    """Only what the draft cites is looked at."""
    assert check(case.with_record("not-cited", content)) == check(case)
