"""Investigations and logs that nobody here wrote, through recorder, projection and snapshot.

Figures are counted from the raw files by another road than the tools': ``grep -c`` for the
logs, the messages' own words for the transcripts.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts.draft import Analysis, Conclusion, DiagnosisDraft
from contracts.evidence import EvidenceStatus, InvocationRecord, RunCommandResult
from contracts.trace import TraceOutcome
from tests.client.recording import RUN, recorder_of
from tests.fakes.record_store import FakeRecordStore
from tests.holmes_cases import HOLMES, HOLMES_FILES, load_holmes, read_holmes
from worker.client import LogLine, command_output, log_matches
from worker.guards.evidence import check_evidence
from worker.guards.snapshot import snapshot_bytes
from worker.guards.tools import BUILT_IN
from worker.trace.summary import summarise

LOGHUB = HOLMES.parent / "loghub"
WINDOW = {"start": "2008-01-01T00:00:00Z", "end": "2020-01-01T00:00:00Z"}


def cited_by(records: list[InvocationRecord]) -> DiagnosisDraft:
    """A draft that cites each completed call, by its kind."""
    kinds = {
        EvidenceStatus.EVIDENCE_FOUND: "NORMAL",
        EvidenceStatus.NO_EVIDENCE: "NEGATIVE_OBSERVATION",
    }
    analyses = tuple(
        Analysis(
            analysis_id=f"a{number}",
            kind=kinds[record.evidence_status],
            text="A call.",
            tool_call_ids=(record.tool_call_id,),
        )
        for number, record in enumerate(records)
        if record.evidence_status in kinds
    )
    return DiagnosisDraft(
        conclusion=Conclusion(text="x", based_on_analysis_ids=("a0",)), analyses=analyses
    )


def snapshot_of(records: list[InvocationRecord]) -> bytes:
    """The snapshot of a draft that cites all that can be cited."""
    stored = {one.tool_call_id: one.model_dump_json().encode() for one in records}
    report = check_evidence(RUN, cited_by(records), stored, BUILT_IN)
    assert report.violations == ()
    assert report.snapshot is not None
    return snapshot_bytes(report.snapshot)


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def says_something(message: dict[str, Any]) -> bool:
    """Whether a line stands behind the header and the echo of the command."""
    lines = text_of(message).split("\n")
    if lines[0].startswith("Params used"):
        lines = lines[1:]
        lines = lines[1:] if lines[0].startswith("kubectl ") else lines
    return any(line.strip() for line in lines)


@pytest.mark.scenario("evidence-recording", "Real recordings through the recorder")
@pytest.mark.parametrize("file", HOLMES_FILES)
def test_a_real_investigation_through_the_recorder(file: str) -> None:
    """Each call is made again with what it gave then; the figures are those of the raw file."""
    raw = [m for m in load_holmes(file) if m["role"] == "tool" and m["name"] != "TodoWrite"]
    failures = ("rejected for security reasons", "too large to return")
    failed = [m for m in raw if any(words in text_of(m) for words in failures)]
    hits = [m for m in raw if m not in failed and says_something(m)]

    store = FakeRecordStore()
    recorder = recorder_of(store)
    for then in read_holmes(file, RUN).records:

        @recorder.tool(
            "run_command",
            request=lambda then=then: {**then.request, "host": "cluster"},
            outcome=lambda out: command_output(0, out),
        )
        def kubectl(then: InvocationRecord = then) -> str:
            if then.agent_result is None:
                raise RuntimeError(then.error_message)
            return RunCommandResult.model_validate_json(then.agent_result).stdout

        with recorder.answering(then.tool_call_id):
            if then.agent_result is None:
                with pytest.raises(RuntimeError):
                    kubectl()
            else:
                kubectl()

    statuses = [record.evidence_status for record in store.records]
    assert len(statuses) == len(raw)
    assert statuses.count(EvidenceStatus.EVIDENCE_FOUND) == len(hits)
    assert statuses.count(EvidenceStatus.ERROR) == len(failed)
    assert statuses.count(EvidenceStatus.NO_EVIDENCE) == len(raw) - len(hits) - len(failed)
    assert len(json.loads(snapshot_of(store.records))["analyses"]) == len(raw) - len(failed)

    entries = summarise(store.records)
    assert sum(entry.hit_calls for entry in entries) == len(hits)
    assert sum(entry.failed_calls for entry in entries) == len(failed)
    assert sum(entry.calls for entry in entries) == len(raw)


LOGS = {
    # name: how many words come before the level, and what to search for
    "HDFS": (3, ["WARN", "exception", "blk_-6952295868487656571", "FATAL disk"]),
    "Hadoop": (2, ["ERROR", "Failed to renew lease", "Address change detected", "FATAL disk"]),
    "OpenStack": (4, ["WARNING", "status: 404", "Active base files", "FATAL disk"]),
    "Zookeeper": (3, ["ERROR", "Notification time out", "Cannot open channel", "FATAL disk"]),
}


def search(path: Path, words_before: int, query: str) -> list[LogLine]:
    """A small real log tool: the lines of a file that hold a text."""
    if not path.is_file():
        raise FileNotFoundError(path.name)
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if query in line:
            words = line.split(maxsplit=words_before + 1)
            found.append(LogLine(" ".join(words[:2]), line, words[words_before]))
    return found


def grep(path: Path, query: str) -> int:
    counted = subprocess.run(
        ["grep", "-cF", "--", query, str(path)], capture_output=True, text=True, check=False
    )
    return int(counted.stdout)


@pytest.mark.scenario("evidence-recording", "Real logs through the recorder")
@pytest.mark.parametrize("name", LOGS)
def test_a_real_log_through_the_recorder(name: str) -> None:
    """Matches, empty looks and a failed look are those that grep counts in the raw file."""
    words_before, queries = LOGS[name]
    path = LOGHUB / f"{name}_2k.log"
    if not path.is_file():
        pytest.fail(f"real input is missing: {path}")
    counted = {query: grep(path, query) for query in queries}

    store = FakeRecordStore()
    recorder = recorder_of(store)
    for query in queries:
        with recorder.call("query_logs", {"source": name, "query": query, **WINDOW}) as call:
            call.ended(log_matches(search(path, words_before, query)))
    with (
        pytest.raises(FileNotFoundError),
        recorder.call("query_logs", {"source": name, "query": "x", **WINDOW}),
    ):
        search(path.with_name("rotated.log"), words_before, "x")

    told = {record.request["query"]: record for record in store.records}
    for query, count in counted.items():
        result = json.loads(str(told[query].agent_result))
        assert result["total_matches"] == count
        assert (told[query].evidence_status is EvidenceStatus.EVIDENCE_FOUND) == (count > 0)
        assert told[query].truncated == (count > len(result["events"]))
    shown = snapshot_of(store.records).decode()
    for query, count in counted.items():
        assert not count or query in shown

    (entry,) = summarise(store.records)
    assert entry.outcome is TraceOutcome.HIT
    assert entry.hit_calls == sum(count > 0 for count in counted.values()) == 3
    assert (entry.no_hit_calls, entry.failed_calls, entry.calls) == (1, 1, 5)
    assert "rotated.log" in entry.gaps[0].reason
