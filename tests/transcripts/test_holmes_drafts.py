"""Drafts about real recordings against the evidence guard and the rule-based judge."""

import pytest

from contracts.evidence import InvocationRecord, Lifecycle
from tests.holmes_cases import (
    BAD_EVIDENCE,
    HOLMES_FILES,
    OTHER_CALL_ID,
    SUCCEEDED,
    HolmesCase,
    read_holmes,
)
from tests.holmes_more_cases import ALL_CASES
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.evidence import EvidenceReport, check_evidence
from worker.guards.tools import BUILT_IN
from worker.guards.violations import ViolationCode
from worker.offline.judge_rules import review

RUN_ID = "run-1"

each_case = pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)


def stored(record: InvocationRecord) -> bytes:
    return record.model_dump_json().encode()


def check(case: HolmesCase) -> EvidenceReport:
    records = {r.tool_call_id: stored(r) for r in case.transcript(RUN_ID).records}
    return check_evidence(RUN_ID, case.draft, records, BUILT_IN)


@each_case
def test_the_guard_finds_in_a_recorded_draft_what_is_broken(case: HolmesCase) -> None:
    """A draft with broken evidence has just the violation that was put in; others have none."""
    report = check(case)
    assert {violation.code for violation in report.violations} == (
        {case.violation} if case.violation else set()
    )
    assert (report.snapshot is None) == (case.ending == BAD_EVIDENCE)


@each_case
def test_the_judge_objects_to_facts_that_the_recording_does_not_hold(case: HolmesCase) -> None:
    """Where the evidence is in order, the rule-based judge decides as the case says."""
    report = check(case)
    if report.snapshot is not None:
        judgement = review(
            case.transcript(RUN_ID).query,
            case.draft.model_dump(mode="json"),
            report.snapshot.model_dump(mode="json"),
        )
        assert judgement.supported == (case.ending == SUCCEEDED), judgement.reason


@pytest.mark.parametrize("case", [c for c in ALL_CASES if c.other_file], ids=lambda c: c.name)
def test_another_runs_record_in_the_place_of_ours_is_noticed(case: HolmesCase) -> None:
    """Even if a record of the other run is what the cited id leads to, it is refused."""
    other = case.other_transcript("run-2")
    assert other is not None
    records = {r.tool_call_id: stored(r) for r in case.transcript(RUN_ID).records}
    records |= {r.tool_call_id: stored(r) for r in other.records}
    report = check_evidence(RUN_ID, case.draft, records, BUILT_IN)
    assert OTHER_CALL_ID in records
    assert [v.code for v in report.violations] == [ViolationCode.RECORD_FOREIGN_RUN]


@pytest.mark.parametrize("file", HOLMES_FILES)
def test_the_guard_can_read_every_record_of_a_recording(file: str) -> None:
    """A completed call is citable, none is taken for its own request; a failed one is not."""
    for record in read_holmes(file, RUN_ID).records:
        call = read_call(RUN_ID, record.tool_call_id, stored(record), BUILT_IN)
        if record.lifecycle is Lifecycle.READY:
            assert isinstance(call, VerifiedCall)
        else:
            assert call is ViolationCode.RECORD_NOT_READY
