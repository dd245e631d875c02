"""Drafts and records that cannot be read: the run is admitted and falls back, the worker lives."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.pipeline.cases import disk_draft, disk_records, draft_ready, event
from tests.pipeline.harness import LocalStage, new_run_id
from tests.pipeline.producers import still_works

FALLBACK = "release_stage.ReleaseFallback.v1"


def with_draft(run_id: str, text: str, **data: Any) -> bytes:
    """A message whose draft is this text, whether or not it is strict JSON."""
    message = json.dumps(event(run_id, "HERE", data=data))
    return message.replace('"HERE"', text, 1).encode()


def analyses(count: int, same_id: bool) -> dict[str, Any]:
    """A draft with so many analyses of one sound call."""
    steps = [
        {
            "analysis_id": "a1" if same_id else f"a{number}",
            "kind": "NORMAL",
            "text": "x",
            "tool_call_ids": ["call-df"],
        }
        for number in range(1, count + 1)
    ]
    return {**disk_draft(), "analyses": steps}


def sound_text() -> str:
    return json.dumps(disk_draft())


DRAFTS: dict[str, Callable[[], str]] = {
    "equal keys": lambda: '{"conclusion": null, ' + sound_text()[1:],
    "equal keys deep inside": lambda: sound_text().replace(
        '"kind": "NORMAL"', '"kind": "OTHER", "kind": "NORMAL"'
    ),
    "NaN": lambda: sound_text().replace('"limitations": [', '"limitations": [NaN, '),
    "1e999": lambda: sound_text().replace('"limitations": [', '"limitations": [1e999, '),
    "a lone surrogate": lambda: sound_text().replace("Free space", "\\ud83d Free space"),
    "a lone surrogate as a key": lambda: '{"\\udc00": 1}',
    "a number": lambda: "7",
    "null": lambda: "null",
    "an array": lambda: "[]",
    "text that is no JSON": lambda: '"The disk is full."',
    "text with equal keys": lambda: json.dumps('{"conclusion": null, ' + sound_text()[1:]),
    "text that is bottomless": lambda: json.dumps("[" * 100_000),
    "an unknown field": lambda: sound_text().replace('{"conclusion"', '{"note": 1, "conclusion"'),
    "a missing field": lambda: '{"conclusion": null}',
    "a number for a text": lambda: sound_text().replace('"Free space on /var."', "5"),
}


def fallback(stage: LocalStage, run_id: str) -> dict[str, Any]:
    outcome: Any = stage.outcome(run_id)
    assert outcome.type == FALLBACK
    found: dict[str, Any] = outcome.data["fallback"]
    return found


@pytest.mark.scenario("admission", "A draft that cannot be read")
@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_that_cannot_be_read_falls_back(stage: LocalStage, name: str) -> None:
    """The envelope is sound, so the reader gets an ending; no model is asked."""
    run_id = new_run_id("odd")
    stage.record(*disk_records(run_id))
    stage.publish_raw(with_draft(run_id, DRAFTS[name]()))
    found = fallback(stage, run_id)
    assert found["type"] == "EVIDENCE_VALIDATION_FAILED"
    assert "verified_sources" not in found or not found["verified_sources"]
    assert not stage.judge.asked_about(run_id)
    assert still_works(stage)


@pytest.mark.scenario("admission", "A draft that cannot be read after verified progress")
def test_an_unreadable_draft_with_progress_tells_what_was_observed(stage: LocalStage) -> None:
    """The facts come from the records of completed calls, nothing from the draft."""
    run_id = new_run_id("odd")
    stage.record(*disk_records(run_id))
    progress = {"completed_tool_call_ids": ["call-df", "call-grep"]}
    stage.publish_raw(with_draft(run_id, DRAFTS["equal keys"](), progress=progress))
    found = fallback(stage, run_id)
    assert found["type"] == "INSUFFICIENT_EVIDENCE"
    assert found["observed_facts"]
    assert still_works(stage)


@pytest.mark.scenario("admission", "Ten thousand analyses")
@pytest.mark.parametrize(
    ("same_id", "ending"),
    [(False, "SEMANTIC_UNAVAILABLE"), (True, "EVIDENCE_VALIDATION_FAILED")],
    ids=["sound", "equal ids"],
)
def test_ten_thousand_analyses_end_in_a_fallback(
    stage: LocalStage, same_id: bool, ending: str
) -> None:
    """Sound ones are too much to ask about, and are never cut to fit; broken ones are broken."""
    run_id = new_run_id("many")
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, analyses(10_000, same_id)))
    assert fallback(stage, run_id)["type"] == ending
    assert not stage.judge.asked_about(run_id)
    assert still_works(stage)


RECORDS = {
    "no JSON": b"not a record",
    "empty": b"",
    "not UTF-8": b"\xff\xfe\xfd",
    "bottomless": b"[" * 100_000,
    "an array": b"[1, 2]",
    "equal keys": b'{"run_id": "a", "run_id": "b"}',
    "NaN": b'{"duration_ms": NaN}',
}


@pytest.mark.scenario("admission", "A record that cannot be read")
@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_cannot_be_read_is_no_evidence(stage: LocalStage, name: str) -> None:
    """Whatever stands in the store, the check ends and the run falls back."""
    run_id = new_run_id("odd")
    stage.record(*disk_records(run_id))
    stage.redis.hset(stage.keys.invocations(run_id), "call-df", RECORDS[name])
    stage.submit(draft_ready(run_id, disk_draft()))
    assert fallback(stage, run_id)["type"] == "EVIDENCE_VALIDATION_FAILED"
    assert still_works(stage)
