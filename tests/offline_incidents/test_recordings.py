"""The recorded incidents: their records, their drafts, and that the two fit together."""

import json
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from contracts.draft import DiagnosisDraft
from contracts.evidence import (
    EvidenceStatus,
    InvocationRecord,
    Lifecycle,
    LookupKnowledgeRequest,
    LookupKnowledgeResult,
    Projection,
    QueryLogsRequest,
    QueryLogsResult,
    QueryMetricsRequest,
    QueryMetricsResult,
    QueryMysqlRequest,
    QueryMysqlResult,
    RunCommandRequest,
    RunCommandResult,
)
from contracts.fallback import OF_CLAIMS, FallbackType
from contracts.messages import AbortReason, DraftReady
from contracts.strict_json import StrictJsonError, canonical, parse
from worker.offline.incidents import DraftCase, Ending, Incident, JudgeNeed, load

MODELS: dict[str, tuple[type[BaseModel], type[Projection]]] = {
    "lookup_knowledge": (LookupKnowledgeRequest, LookupKnowledgeResult),
    "query_logs": (QueryLogsRequest, QueryLogsResult),
    "query_metrics": (QueryMetricsRequest, QueryMetricsResult),
    "query_mysql": (QueryMysqlRequest, QueryMysqlResult),
    "run_command": (RunCommandRequest, RunCommandResult),
}
INCIDENTS = load()
CASES = [(incident, case) for incident in INCIDENTS for case in incident.cases]
RECORDS = [record for incident in INCIDENTS for record in incident.recorded]

each_case = pytest.mark.parametrize(("incident", "case"), CASES, ids=[c.name for _, c in CASES])
each_record = pytest.mark.parametrize(
    "record", RECORDS, ids=[f"{n}-{record.tool_call_id}" for n, record in enumerate(RECORDS)]
)


def read_draft(case: DraftCase) -> DiagnosisDraft:
    """The draft as a strict reader sees it; raises StrictJsonError or ValidationError."""
    value = parse(case.draft) if isinstance(case.draft, str) else case.draft
    return DiagnosisDraft.model_validate_json(canonical(value))


@each_record
def test_a_recorded_request_and_answer_are_those_of_their_tool(record: InvocationRecord) -> None:
    """Each record's request and answer parse strictly and agree with the record."""
    request, result = MODELS[record.tool_name]
    request.model_validate_json(canonical(record.request))
    if record.lifecycle is not Lifecycle.READY:
        assert record.agent_result is None
        return
    assert record.agent_result is not None
    answer = result.model_validate_json(canonical(parse(record.agent_result)))
    assert answer.tool_call_id == record.tool_call_id
    assert answer.evidence_status == record.evidence_status


@each_record
def test_a_record_says_how_its_call_ended(record: InvocationRecord) -> None:
    """A finished call has times, a failed one a reason, an unfinished one neither."""
    finished = record.lifecycle is not Lifecycle.PROJECTING
    assert (record.completed_at is not None) == finished
    assert (record.duration_ms is not None) == finished
    assert (record.error_message is not None) == (record.lifecycle is Lifecycle.ERROR)
    assert record.success == {"READY": True, "ERROR": False}.get(record.lifecycle.value)
    if record.completed_at is not None:
        assert record.started_at <= record.completed_at


def test_the_recordings_hold_every_kind_of_call() -> None:
    """All tools, hits and empty results, failed, unfinished, cut and repeated calls are there."""
    assert len(INCIDENTS) >= 6
    for tool in MODELS:
        found = {record.evidence_status for record in RECORDS if record.tool_name == tool}
        assert {EvidenceStatus.EVIDENCE_FOUND, EvidenceStatus.NO_EVIDENCE} <= found, tool
    assert {record.lifecycle for record in RECORDS} == set(Lifecycle)
    assert any(record.truncated for record in RECORDS)
    assert any(record.deduplicated for record in RECORDS)


@pytest.mark.scenario("local-stage", "Recordings and drafts")
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_an_incident_has_its_recipe_and_a_sound_draft(incident: Incident) -> None:
    """Each folder tells how it was recorded, and some draft about it must be released."""
    folder = resources.files("worker.offline.incidents").joinpath(incident.name)
    for name in ("recipe.py", "README.md", "runbook.md"):
        assert folder.joinpath(name).is_file()
    assert Ending(type="ReleaseSucceeded") in {case.expected for case in incident.cases}
    ids = [record.tool_call_id for record in incident.recorded]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_a_recording_names_nothing_of_the_machine_that_made_it(incident: Incident) -> None:
    """Paths in the files are those of the scene, never those of a workspace or a home folder."""
    folder = resources.files("worker.offline.incidents").joinpath(incident.name)
    here = {str(Path.home()), str(Path(__file__).resolve().parents[2].parent)}
    foreign = [f"/{name}" for name in ("work", "root", "farm", "home", "tmp/v")] + sorted(here)
    for name in ("records.json", "drafts.json"):
        text = folder.joinpath(name).read_text(encoding="utf-8")
        assert not [path for path in foreign if f"{path}/" in text]


@pytest.mark.scenario("local-stage", "Recordings and drafts")
def test_the_drafts_cover_every_ending() -> None:
    """Each fallback and abort of this protocol but a failed process is expected somewhere."""
    codes = {case.expected.code for _, case in CASES}
    possible = {None, *FallbackType, *AbortReason} - OF_CLAIMS
    assert codes == possible - {AbortReason.PROCESSING_FAILED}
    assert any(case.expected.repaired for _, case in CASES)
    assert {case.locale for _, case in CASES} == {"en", "zh-CN"}
    assert len({case.name for _, case in CASES}) == len(CASES) >= 14


@each_case
def test_an_expected_ending_names_a_code_of_its_own_type(
    incident: Incident, case: DraftCase
) -> None:
    """A success has no code, a fallback and an abort have one of theirs."""
    codes: dict[str, type] = {
        "ReleaseSucceeded": type(None),
        "ReleaseFallback": FallbackType,
        "ReleaseAborted": AbortReason,
    }
    for ending in (case.ending(repair=True), case.ending(repair=False)):
        assert isinstance(ending.code, codes[ending.type])
        assert not ending.repaired or ending.type == "ReleaseSucceeded"
    assert not case.ending(repair=False).repaired
    assert case.expected_without_repair is None or case.expected.repaired


@each_case
def test_what_a_case_asks_of_its_run_leads_to_its_ending(
    incident: Incident, case: DraftCase
) -> None:
    """Cancel, deadline, budget, stop and a failing judge each stand with the ending they cause."""
    code = case.expected.code
    assert case.cancel == (code is AbortReason.CANCELLED)
    assert (case.deadline_s is not None) == (code is AbortReason.DEADLINE_EXCEEDED)
    assert (case.budget.model_calls == 0) == (code is AbortReason.BUDGET_EXHAUSTED)
    assert (case.judge is JudgeNeed.DOWN) == (code is FallbackType.SEMANTIC_UNAVAILABLE)
    assert (case.judge is JudgeNeed.SLOW) == (case.cancel or case.deadline_s is not None)
    assert case.stop is None or code is FallbackType.INSUFFICIENT_EVIDENCE


@each_case
def test_a_draft_parses_unless_its_case_says_otherwise(incident: Incident, case: DraftCase) -> None:
    """Only the drafts that are named so are unreadable; they end in a fallback without a model."""
    if case.name in {"poison-duplicate-keys", "poison-cut-text"}:
        with pytest.raises((StrictJsonError, ValidationError)):
            read_draft(case)
        assert case.expected.type == "ReleaseFallback"
    else:
        read_draft(case)


@each_case
def test_records_take_the_ids_of_the_run_that_plays_them(
    incident: Incident, case: DraftCase
) -> None:
    """Own and foreign records share no call, and every record says whose it is."""
    own = incident.records(case, "run-7", "session-7")
    foreign = incident.foreign_records(case, "run-8", "session-7")
    assert {record.run_id for record in own} == {"run-7"}
    assert {record.run_id for record in foreign} <= {"run-8"}
    assert {record.session_id for record in own} == {"session-7"}
    assert sorted(case.foreign) == sorted(record.tool_call_id for record in foreign)
    assert len(own) + len(foreign) == len(incident.recorded)


@each_case
def test_a_case_becomes_the_message_that_opens_its_run(incident: Incident, case: DraftCase) -> None:
    """The message carries the draft untouched, and its progress names calls that have ended."""
    published = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    message = incident.message(case, "run-7", "session-7", published)
    sent = DraftReady.model_validate_json(message.model_dump_json())
    assert json.dumps(sent.draft) == json.dumps(case.draft)
    own = {record.tool_call_id for record in incident.records(case, "run-7", "session-7")}
    assert set(sent.progress.completed_tool_call_ids) <= own
    if case.deadline_s is not None:
        assert sent.deadline is not None
        assert (sent.deadline - published).total_seconds() == case.deadline_s


@each_case
def test_a_judge_can_tell_a_scripted_case_by_its_query(incident: Incident, case: DraftCase) -> None:
    """The judge sees no run id: a case that needs a fault has a query that no other case holds."""
    if case.judge is not JudgeNeed.RULES:
        assert [other.name for _, other in CASES if case.query in other.query] == [case.name]
