"""The worked example of a team's own tool: found by its entry point, recorded, checked, shown."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from contracts.evidence import EvidenceStatus
from tests.client.recording import RUN, recorder_of
from tests.fakes.record_store import FakeRecordStore
from worker.client import Finding
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.tools import BUILT_IN, ENTRY_POINT_GROUP
from worker.guards.tools.registered import WrongTool, all_tools
from worker.guards.violations import ViolationCode
from worker.trace.summary import summarise

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "examples" / "query_traces"
REQUEST = {
    "source": "tempo",
    "service": "checkout",
    "start": "2026-01-01T12:00:00Z",
    "end": "2026-01-01T13:00:00Z",
}
SLOW = {"operation": "POST /pay", "duration_ms": 4512.5, "failed": True}


def declared() -> dict[str, str]:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]
    found: dict[str, str] = project["entry-points"][ENTRY_POINT_GROUP]
    return found


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, ENTRY_POINT_GROUP)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PACKAGE))
    return all_tools([entry(name, value) for name, value in declared().items()])


@pytest.mark.scenario("evidence-recording", "A tool of an installed package")
@pytest.mark.parametrize(
    ("spans", "status"),
    [
        ([SLOW], EvidenceStatus.EVIDENCE_FOUND),
        ([], EvidenceStatus.NO_EVIDENCE),
        ([SLOW | {"operation": " "}], EvidenceStatus.ERROR),
        ([{"operation": "x"}], EvidenceStatus.ERROR),
    ],
)
def test_a_teams_own_tool_is_recorded_and_checked(
    tools: Any, spans: list[Any], status: EvidenceStatus
) -> None:
    """Its results go the way of all results, and are strict by the team's own model."""
    store = FakeRecordStore()
    with recorder_of(store, tools=tools).call("query_traces", REQUEST) as call:
        call.ended(Finding({"spans": spans}, shown=str(spans)))
    record = store.one()
    assert record.evidence_status is status
    stored = record.model_dump_json().encode()
    checked = read_call(RUN, record.tool_call_id, stored, tools)
    if status is EvidenceStatus.ERROR:
        assert checked is ViolationCode.RECORD_NOT_READY
        return
    assert isinstance(checked, VerifiedCall)
    assert checked.scope["service"] == "checkout"
    assert read_call(RUN, record.tool_call_id, stored, BUILT_IN) is ViolationCode.TOOL_UNKNOWN
    (told,) = summarise([record])
    assert told.topic == "tempo"
    assert ("POST /pay" in str(told.excerpt)) == bool(spans)


@pytest.mark.scenario("evidence-recording", "A tool that cannot be used")
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("query_logs", "acme_traces:PROJECTION", "bears a name that is taken"),
        ("other", "acme_traces:QueryTracesRequest", "is no ToolProjection"),
        ("other", "acme_traces:NOTHING", "does not load: AttributeError"),
        ("other", "acme_nowhere:PROJECTION", "does not load: ModuleNotFoundError"),
    ],
)
def test_a_tool_that_cannot_be_used_is_named(
    tools: Any, name: str, value: str, sentence: str
) -> None:
    """No package may loosen a built-in tool, and no broken one is passed over in silence."""
    with pytest.raises(WrongTool, match=sentence) as caught:
        all_tools([entry(name, value)])
    assert value in str(caught.value)


def started(folder: Path, entries: str) -> subprocess.CompletedProcess[str]:
    """What a worker does before it works, with one more package installed."""
    info = folder / "acme_traces-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-traces\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{entries}\n")
    paths = os.pathsep.join(map(str, (folder, PACKAGE, ROOT)))
    script = "import worker.app; print(*worker.app.tools())"
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.scenario("evidence-recording", "A tool of an installed package")
def test_a_worker_finds_the_tools_of_installed_packages(tmp_path: Path) -> None:
    """The composition root loads them by the entry point alone."""
    entries = "\n".join(f"{name} = {value}" for name, value in declared().items())
    ran = started(tmp_path, entries)
    assert set(ran.stdout.split()) == {*BUILT_IN, "query_traces"}, ran.stderr


@pytest.mark.scenario("evidence-recording", "A tool that cannot be used")
def test_a_worker_with_a_broken_tool_does_not_start(tmp_path: Path) -> None:
    """It says which entry is at fault, in one sentence."""
    ran = started(tmp_path, "run_command = acme_traces:PROJECTION")
    assert ran.returncode == 1
    assert ran.stderr == (
        "release-stage: the tool run_command (acme_traces:PROJECTION) bears a name that is taken\n"
    )
