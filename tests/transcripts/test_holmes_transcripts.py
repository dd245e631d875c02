"""The reader on investigations that nobody here wrote, against figures counted apart."""

from typing import Any

import pytest

from contracts.evidence import EvidenceStatus, Lifecycle, RunCommandResult
from tests.holmes_cases import (
    BAD_EVIDENCE,
    HOLMES_FILES,
    OTHER_CALL_ID,
    SUCCEEDED,
    UNSUPPORTED,
    HolmesCase,
    load_holmes,
    read_holmes,
)
from tests.holmes_more_cases import ALL_CASES


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def bare_lines(message: dict[str, Any]) -> list[str]:
    """The lines of a result without header and echo, by another road than the reader's."""
    lines = text_of(message).split("\n")
    if lines[0].startswith("Params used"):
        lines = lines[1:]
        if lines[0].startswith("kubectl "):
            lines = lines[1:]
    return [line for line in lines if line.strip()]


@pytest.mark.scenario("transcripts", "Real recordings")
@pytest.mark.parametrize("file", HOLMES_FILES)
def test_the_counts_of_a_recording_are_those_of_its_raw_file(file: str) -> None:
    """Calls, hits, empties, failures, helper calls and model steps agree with the raw JSON."""
    messages = load_holmes(file)
    results = [m for m in messages if m["role"] == "tool" and m["name"] != "TodoWrite"]
    helpers = [m for m in messages if m["role"] == "tool" and m["name"] == "TodoWrite"]
    failed = [
        m
        for m in results
        if "rejected for security reasons" in text_of(m) or "too large to return" in text_of(m)
    ]
    empty = [m for m in results if not bare_lines(m)]

    transcript = read_holmes(file, "run-1")

    statuses = [record.evidence_status for record in transcript.records]
    assert transcript.evidence_calls == len(results)
    assert transcript.helper_calls == len(helpers)
    assert transcript.model_steps == sum(m["role"] == "assistant" for m in messages)
    assert len(transcript.questions) == sum(m["role"] == "user" for m in messages)
    assert statuses.count(EvidenceStatus.ERROR) == len(failed)
    assert statuses.count(EvidenceStatus.NO_EVIDENCE) == len(empty)
    assert statuses.count(EvidenceStatus.EVIDENCE_FOUND) == len(results) - len(failed) - len(empty)
    assert transcript.final_text


@pytest.mark.scenario("transcripts", "Real recordings")
@pytest.mark.parametrize("file", HOLMES_FILES)
def test_each_recorded_output_is_the_exact_end_of_its_result(file: str) -> None:
    """Nothing is added to what a tool printed, and no line of it is left out."""
    raw = {m["tool_call_id"]: m for m in load_holmes(file) if m["role"] == "tool"}
    for record in read_holmes(file, "run-1").records:
        assert record.tool_name == "run_command"
        assert str(record.request["command"]).startswith("kubectl ")
        if record.lifecycle is Lifecycle.READY:
            result = RunCommandResult.model_validate_json(record.agent_result or "")
            assert result.tool_call_id == record.tool_call_id
            assert result.evidence_status is record.evidence_status
            assert text_of(raw[record.tool_call_id]).endswith(result.stdout)
            lines = [line for line in result.stdout.split("\n") if line.strip()]
            assert lines == bare_lines(raw[record.tool_call_id])


def test_the_recordings_hold_empty_and_failed_calls() -> None:
    """The figures above are worth something: empties and failures do occur."""
    records = [record for file in HOLMES_FILES for record in read_holmes(file, "run-1").records]
    statuses = [record.evidence_status for record in records]
    assert statuses.count(EvidenceStatus.NO_EVIDENCE) >= 2
    assert statuses.count(EvidenceStatus.ERROR) >= 5


def test_each_recording_has_a_sound_one_and_three_corrupted() -> None:
    """Both guards have something to refuse in each, and something to let through."""
    for file in HOLMES_FILES:
        endings = [case.ending for case in ALL_CASES if case.file == file]
        assert endings.count(SUCCEEDED) == 1
        assert len(endings) >= 4
        assert endings.count(BAD_EVIDENCE) >= 1
        assert endings.count(UNSUPPORTED) >= 1
    names = [case.name for case in ALL_CASES]
    assert len(names) == len(set(names))


def test_the_other_runs_call_is_real_and_its_own() -> None:
    """A draft that cites another run's call cites evidence that exists, but not in its run."""
    others = {
        record.tool_call_id: record for record in read_holmes("001_compaction.json", "r").records
    }
    assert others[OTHER_CALL_ID].evidence_status is EvidenceStatus.EVIDENCE_FOUND
    for case in ALL_CASES:
        if case.file == "001_compaction.json":
            continue
        assert OTHER_CALL_ID not in {r.tool_call_id for r in case.transcript("r").records}


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_a_draft_cites_what_its_ending_says(case: HolmesCase) -> None:
    """A draft that only meaning can refuse cites this run's calls alone, each of its kind."""
    statuses = {r.tool_call_id: r.evidence_status for r in case.transcript("run-1").records}
    fits = all(
        statuses.get(call_id)
        is (
            EvidenceStatus.NO_EVIDENCE
            if analysis.kind == "NEGATIVE_OBSERVATION"
            else EvidenceStatus.EVIDENCE_FOUND
        )
        for analysis in case.draft.analyses
        for call_id in analysis.tool_call_ids
    )
    assert fits == (case.ending != BAD_EVIDENCE)
