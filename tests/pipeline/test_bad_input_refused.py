"""Messages that are refused: each is kept raw with its reason, and the worker goes on."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.base import isoformat
from tests.pipeline.cases import disk_draft, event
from tests.pipeline.harness import LocalStage, new_run_id
from tests.pipeline.producers import send_task, still_works


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def spliced(run_id: str, field: str) -> bytes:
    """A message whose data holds this text, a field and its value, before the others."""
    text = json.dumps(event(run_id, disk_draft()))
    return text.replace('"data": {', '"data": {' + field + ", ", 1).encode()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def moved(**distance: float) -> str:
    return isoformat(datetime.now(UTC) + timedelta(**distance))


def with_deep_text(run_id: str) -> bytes:
    text = json.dumps(event(run_id, "HERE"))
    return text.replace('"HERE"', "[" * 100_000 + "]" * 100_000).encode()


REFUSED: dict[str, tuple[Callable[[str], bytes], str]] = {
    "a draft of 5 MB": (lambda r: encoded(event(r, "x" * 5_000_000)), "MESSAGE_TOO_LARGE"),
    "a deep draft": (lambda r: encoded(event(r, nested(100))), "TOO_DEEP"),
    "a bottomless draft": (with_deep_text, "TOO_DEEP"),
    "not UTF-8": (lambda r: encoded(event(r, None)).replace(b"checkout", b"\xff\xfe"), "NOT_UTF8"),
    "an empty body": (lambda _: b"", "NOT_JSON"),
    "no JSON": (lambda r: f"draft of {r}".encode(), "NOT_JSON"),
    "cut off": (lambda r: encoded(event(r, disk_draft()))[:-9], "NOT_JSON"),
    "an array": (lambda r: encoded([event(r, disk_draft())]), "NOT_AN_ENVELOPE"),
    "a string": (encoded, "NOT_AN_ENVELOPE"),
    "equal keys in the envelope": (
        lambda r: b'{"subject": "other", ' + encoded(event(r, disk_draft()))[1:],
        "DUPLICATE_KEY",
    ),
    "equal keys in the data": (lambda r: spliced(r, '"run_id": "other"'), "DUPLICATE_KEY"),
    "equal keys deep in the data": (
        lambda r: spliced(r, '"budget": {"tokens": 1, "tokens": 2}'),
        "DUPLICATE_KEY",
    ),
    "NaN in the data": (lambda r: spliced(r, '"budget": {"tokens": NaN}'), "NOT_FINITE"),
    "1e999 in the data": (lambda r: spliced(r, '"budget": {"tokens": 1e999}'), "NOT_FINITE"),
    "a lone surrogate in the query": (
        lambda r: encoded(event(r, None, data={"query": "\ud800"})),
        "LONE_SURROGATE",
    ),
    "a run id with braces": (
        lambda r: encoded(event(f"{{{r}}}", None)),
        "INVALID_ENVELOPE:subject",
    ),
    "a run id with spaces": (lambda r: encoded(event(f"{r} 1", None)), "INVALID_ENVELOPE:subject"),
    "a run id with a newline": (
        lambda r: encoded(event(f"{r}\n", None)),
        "INVALID_ENVELOPE:subject",
    ),
    "two run ids": (lambda r: encoded(event(r, None, subject="other")), "SUBJECT_MISMATCH"),
    "an unknown version": (
        lambda r: encoded(event(r, None, type="release_stage.DraftReady.v2")),
        "UNKNOWN_VERSION",
    ),
    "a version with a zero before it": (
        lambda r: encoded(event(r, None, type="release_stage.DraftReady.v01")),
        "UNKNOWN_TYPE",
    ),
    "an unknown type": (
        lambda r: encoded(event(r, None, type="release_stage.Shout.v1")),
        "UNKNOWN_TYPE",
    ),
    "a foreign type": (lambda r: encoded(event(r, None, type="com.example.x")), "UNKNOWN_TYPE"),
    "an ending sent in": (
        lambda r: encoded(event(r, None, type="release_stage.ReleaseSucceeded.v1")),
        "UNKNOWN_TYPE",
    ),
    "a reply_to outside its pattern": (
        lambda r: encoded(event(r, None, data={"reply_to": f"release:run:{r}"})),
        "INVALID_DATA:reply_to",
    ),
    "a reply_to with a newline": (
        lambda r: encoded(event(r, None, data={"reply_to": "release.reply.a\n"})),
        "INVALID_DATA:reply_to",
    ),
    "a wrong specversion": (
        lambda r: encoded(event(r, None, specversion="2.0")),
        "INVALID_ENVELOPE:specversion",
    ),
    "a time too old": (lambda r: encoded(event(r, None, time=moved(hours=-7))), "TOO_OLD"),
    "a time ahead": (lambda r: encoded(event(r, None, time=moved(minutes=5))), "AHEAD_OF_TIME"),
    "a time without an offset": (
        lambda r: encoded(event(r, None, time="2026-11-30T08:00:00")),
        "INVALID_ENVELOPE:time",
    ),
    "no data": (
        lambda r: encoded({**event(r, None), "data": None}),
        "INVALID_ENVELOPE:data",
    ),
    "a negative budget": (
        lambda r: encoded(event(r, None, data={"budget": {"tokens": -1}})),
        "INVALID_DATA:budget",
    ),
    "several faults": (
        lambda r: encoded(event(r, None, data={"query": 1, "session_id": 2})),
        "INVALID_DATA:query,INVALID_DATA:session_id",
    ),
}


@pytest.mark.scenario("admission", "A message that cannot be admitted")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_admitted_is_kept_and_the_worker_lives(stage: LocalStage, name: str) -> None:
    """The raw bytes and the reason are in the dead letters, no run is opened."""
    run_id = new_run_id("bad")
    make, reason = REFUSED[name]
    raw = make(run_id) or b""
    stage.publish_raw(raw)
    assert stage.dead_letter(raw) == reason
    assert stage.run(run_id) is None
    assert run_id not in stage.log_text()
    assert still_works(stage)


OBJECTS: dict[str, tuple[Callable[[str], Any], str]] = {
    "NaN": (lambda r: event(r, None, data={"budget": {"tokens": float("nan")}}), "NOT_FINITE"),
    "a lone surrogate": (lambda r: event(r, None, data={"query": "\ud800"}), "LONE_SURROGATE"),
    "a list": (lambda r: [r], "NOT_AN_ENVELOPE"),
    "null": (lambda _: None, "NOT_AN_ENVELOPE"),
    "text with a lone surrogate": (lambda r: f"\ud800 {r}", "NOT_UTF8"),
    "a deep object": (lambda r: event(r, nested(100)), "TOO_DEEP"),
}


@pytest.mark.scenario("admission", "A task with a message that cannot be admitted")
@pytest.mark.parametrize("name", OBJECTS)
def test_what_a_task_brings_is_kept_as_well(stage: LocalStage, name: str) -> None:
    """Celery's own reading is lenient, so the task's object is judged as strictly as bytes."""
    run_id = new_run_id("bad")
    make, reason = OBJECTS[name]
    send_task(stage, "release.submit", make(run_id))
    before = len(stage.letters)
    stage.wait_for(lambda: len(stage.dead()) > before, "a dead letter")
    ((found, raw),) = stage.letters[before:]
    assert found == reason
    assert run_id.encode() in raw or name == "null"
    assert stage.run(run_id) is None
    assert run_id not in stage.log_text()
    assert still_works(stage)
