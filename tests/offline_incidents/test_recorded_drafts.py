"""Each recorded draft against the evidence guard, the rule-based repair and judge."""

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.draft import DiagnosisDraft
from contracts.fallback import FallbackType
from contracts.strict_json import StrictJsonError, canonical
from tests.offline_incidents.test_recordings import CASES, each_case, read_draft
from worker.guards.evidence import EvidenceReport, check_evidence, verified_calls
from worker.guards.repair import accept, mended
from worker.guards.tools import BUILT_IN
from worker.offline.incidents import DraftCase, Incident
from worker.offline.judge_repair import repair
from worker.offline.judge_rules import Judgement, review

RUN_ID = "run-1"

CONCLUDED = [
    (incident, case)
    for incident, case in CASES
    if isinstance(case.draft, dict) and case.draft["conclusion"] is not None
]
each_concluded = pytest.mark.parametrize(
    ("incident", "case"), CONCLUDED, ids=[case.name for _, case in CONCLUDED]
)


def stored(incident: Incident, case: DraftCase) -> dict[str, bytes]:
    return {
        record.tool_call_id: canonical(record.model_dump(mode="json", exclude_unset=True))
        for record in incident.records(case, RUN_ID, "session-1")
    }


def check(incident: Incident, case: DraftCase, draft: DiagnosisDraft) -> EvidenceReport:
    return check_evidence(RUN_ID, draft, stored(incident, case), BUILT_IN)


def judged(case: DraftCase, draft: DiagnosisDraft, report: EvidenceReport) -> Judgement:
    visible: dict[str, Any] = draft.model_dump(mode="json")
    for analysis in visible["analyses"]:
        del analysis["tool_call_ids"]
    assert report.snapshot is not None
    return review(case.query, visible, report.snapshot.model_dump(mode="json"))


@each_concluded
def test_the_guard_finds_just_the_flaw_of_a_draft(incident: Incident, case: DraftCase) -> None:
    """A draft with a broken reference has that one violation; all others have none."""
    report = check(incident, case, read_draft(case))
    found = [violation.code for violation in report.violations]
    assert found == ([case.violation] if case.violation else [])


@each_concluded
def test_only_what_ids_can_mend_is_repaired(incident: Incident, case: DraftCase) -> None:
    """The rule-based repair mends a draft exactly where the case says so, and no word changes."""
    draft = read_draft(case)
    violations = check(incident, case, draft).violations
    if not violations:
        return
    answer = repair(
        draft.model_dump(mode="json"),
        [{"code": one.code, "target": one.target} for one in violations],
    )
    repaired = DiagnosisDraft.model_validate_json(canonical(answer))
    assert accept(draft, repaired)
    again = mended(draft, repaired)
    report = check(incident, case, again)
    assert (report.snapshot is not None) == case.expected.repaired
    if case.expected.repaired:
        assert judged(case, again, report).supported
    else:
        assert case.expected.code is FallbackType.EVIDENCE_VALIDATION_FAILED


@each_concluded
def test_the_judge_objects_to_the_drafts_that_state_other_facts(
    incident: Incident, case: DraftCase
) -> None:
    """Each fact of a sound draft stands in its evidence; each unsupported one has a strange one."""
    draft = read_draft(case)
    report = check(incident, case, draft)
    if report.snapshot is None:
        return
    judgement = judged(case, draft, report)
    unsupported = case.expected.code is FallbackType.SEMANTIC_UNSUPPORTED
    assert judgement.supported == (not unsupported), judgement.reason


@each_case
def test_a_fallback_without_a_model_rests_on_verified_progress(
    incident: Incident, case: DraftCase
) -> None:
    """An unreadable draft has a fallback of its own kind for progress and for none."""
    message = incident.message(case, RUN_ID, "session-1", incident.recorded[0].started_at)
    progress = message.progress.completed_tool_call_ids
    verified = verified_calls(RUN_ID, progress, stored(incident, case), BUILT_IN)
    try:
        read_draft(case)
    except (StrictJsonError, ValidationError):
        wanted = (
            FallbackType.INSUFFICIENT_EVIDENCE
            if verified
            else FallbackType.EVIDENCE_VALIDATION_FAILED
        )
        assert case.expected.code is wanted
    if case.expected.code is FallbackType.MISSING_REQUIRED_CONTEXT:
        assert not progress
