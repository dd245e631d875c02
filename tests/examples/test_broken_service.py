"""The example as a newcomer runs it, and what it shows of each kind of call."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.draft import DiagnosisDraft
from contracts.evidence import EvidenceStatus
from contracts.strict_json import parse
from examples.broken_service.agent import Investigation, investigate, write_draft
from examples.broken_service.service import BrokenShop
from examples.broken_service.tools import tools_of
from tests.client.recording import RUN, recorder_of
from tests.fakes.record_store import FakeRecordStore
from worker.guards.evidence import check_evidence
from worker.guards.tools import BUILT_IN
from worker.offline.judge import JudgeServer
from worker.offline.judge_rules import review
from worker.offline.judge_script import content

ROOT = Path(__file__).resolve().parents[2]


def ran(*arguments: str) -> list[str]:
    """Run it with an environment that knows no server; returns its lines."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.broken_service", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.scenario("transcripts", "The example agent")
def test_the_examples_sound_draft_is_released() -> None:
    """On a machine with nothing running: a broken shop, an agent, a stage and a release."""
    lines = ran()
    assert "release_stage.ReleaseSucceeded.v1" in lines
    counts = next(json.loads(line) for line in lines if line.startswith('{"model_steps"'))
    assert counts == {"model_steps": 9, "evidence_calls": 8, "helper_calls": 1}
    assert any(line.startswith("query_logs on payments: no evidence") for line in lines)
    assert any("1 deduplicated" in line for line in lines)


@pytest.mark.scenario("transcripts", "The example agent")
def test_the_examples_lie_is_not_released() -> None:
    """A port that no tool showed does not reach the reader."""
    lines = ran("--lie")
    assert "release_stage.ReleaseFallback.v1" in lines
    assert any('"SEMANTIC_UNSUPPORTED"' in line for line in lines)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Investigation, FakeRecordStore]:
    """One investigation of a shop that really runs, recorded in memory."""
    store = FakeRecordStore()
    recorder = recorder_of(store)
    with BrokenShop(tmp_path_factory.mktemp("shop")) as shop:
        tools = tools_of(recorder, shop.folder, shop.checkout_url, datetime.now(UTC))
        return investigate(recorder, tools), store


def test_every_call_of_the_agent_is_a_record(found: tuple[Investigation, FakeRecordStore]) -> None:
    """Hits, empty looks, a failure and a repeat, each told as what it was."""
    seen, store = found
    told = {record.tool_call_id: record for record in store.records}
    assert told.keys() == seen.seen.keys()
    hit, none, error = EvidenceStatus
    assert {name: record.evidence_status for name, record in told.items()} == {
        "errors": hit,
        "failures": hit,
        "memory": none,
        "payments": error,
        "advice": hit,
        "advice-again": none,
        "config": hit,
        "listens": hit,
    }
    assert told["advice-again"].deduplicated


def test_the_template_states_what_the_calls_showed(
    found: tuple[Investigation, FakeRecordStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its draft passes the evidence check and the comparison of hard facts."""
    monkeypatch.delenv("AGENT_OPENAI_BASE_URL", raising=False)
    seen, store = found
    draft: Any = parse(write_draft(seen))
    stored = {one.tool_call_id: one.model_dump_json().encode() for one in store.records}
    model = DiagnosisDraft.model_validate_json(write_draft(seen))
    report = check_evidence(RUN, model, stored, BUILT_IN)
    assert report.violations == ()
    assert report.snapshot is not None
    judged = review("Why?", draft, report.snapshot.model_dump(mode="json"))
    assert judged.supported, judged.reason


def test_a_shop_that_shows_nothing_gets_no_conclusion() -> None:
    """The template admits to know no cause rather than to make one up."""
    empty = Investigation({name: {"result": ""} for name in ("errors", "config", "listens")})
    draft: Any = parse(write_draft(empty))
    assert draft["conclusion"] is None
    assert draft["missing_context"]


def test_a_model_writes_the_draft_where_an_endpoint_is_set(
    found: tuple[Investigation, FakeRecordStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the model wrote is submitted as it is."""
    with JudgeServer() as model:
        model.script(content("not a draft at all").always())
        monkeypatch.setenv("AGENT_OPENAI_BASE_URL", model.base_url)
        assert write_draft(found[0]) == "not a draft at all"
