"""Attacks that once worked: each sends what a malicious agent could, and shows that it holds."""

import json
import zlib
from typing import Any
from uuid import uuid4

import pytest
from kombu import Connection

from tests.pipeline.cases import command_record, disk_draft, disk_records, draft_ready, event
from tests.pipeline.harness import LocalStage, new_run_id
from tests.pipeline.marked import MARK
from tests.pipeline.producers import send_task, still_works

NOTHING: dict[str, Any] = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
PLACE = {"run_id": "nobody", "round": 0, "attempt": 1}


def headers(task: Any = "release.submit", **changes: Any) -> dict[str, Any]:
    """Celery's headers, with changes; None as a value takes one away."""
    whole = {"lang": "py", "task": task, "id": str(uuid4()), "retries": 0, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def task(name: str, *args: Any, embed: Any = NOTHING, **kwargs: Any) -> tuple[Any, Any]:
    """A task's headers and body."""
    return headers(name), [list(args), kwargs, embed]


EMPTY = [[], {}, NOTHING]
LOST = {**PLACE, "grant": 1, "step": MARK}
STRANGE: dict[str, tuple[Any, Any]] = {
    "no id": (headers(id=None), EMPTY),
    "an id that is a list": (headers(id=[1]), EMPTY),
    "an id with words": (headers(id=f"the disk is full {MARK}"), EMPTY),
    "a name that is a list": (headers(task=["release.submit"]), EMPTY),
    "limits that are text": (headers(timelimit=["a", "b"]), EMPTY),
    "one limit": (headers(timelimit=5), EMPTY),
    "a limit below zero": (headers(timelimit=[-1, -1]), EMPTY),
    "a time to wait for": (headers(eta="9999-12-31T23:59:59+00:00"), EMPTY),
    "a time to vanish at": (headers(expires="2001-01-01T00:00:00+00:00"), EMPTY),
    "a body that is a number": (headers(), 5),
    "a body of two": (headers(), [1, 2]),
    "a body of an old protocol": (headers(), {"args": 5, "kwargs": 6}),
    "arguments that are a number": (headers(), [5, {}, NOTHING]),
    "names that are a list": (headers(), [[], [1], NOTHING]),
    "a strange rest": (headers(), [[], {}, 5]),
    "a strange callback": (headers(), [[], {}, {**NOTHING, "callbacks": [5]}]),
    "a strange errback": (headers(), [[], PLACE, {**NOTHING, "errbacks": [{"task": MARK}]}]),
    "a strange chain": task("release.check_evidence", embed={**NOTHING, "chain": 5}, **PLACE),
    "a chord": task("release.check_evidence", embed={**NOTHING, "chord": {"task": MARK}}, **PLACE),
    "a step with words": task("release.check_evidence", **{**PLACE, MARK: 1}),
    "a step with arguments": task("release.check_evidence", MARK, **PLACE),
    "a run id that is an object": task("release.publish", **{**PLACE, "run_id": {MARK: 1}}),
    "a round that is false": task("release.check_evidence", **{**PLACE, "round": False}),
    "a round with a fraction": task("release.check_evidence", **{**PLACE, "round": 0.0}),
    "an attempt that is true": task("release.review_semantics", **{**PLACE, "attempt": True}),
    "an attempt out of range": task("release.review_semantics", **{**PLACE, "attempt": 99}),
    "a step of no name": task("release.attempt_lost", "any", **LOST),
    "a task of Celery's own": task("celery.accumulate", MARK),
    "Celery's way to other tasks": task("celery.map", {"task": "celery.accumulate"}, [[MARK]]),
}


def publish(stage: LocalStage, sent: tuple[Any, Any], raw: bytes | None = None) -> bytes:
    """Publish to the queue of the steps; the body ends in spaces of its own, to be found by."""
    heads, body = sent
    own = json.dumps(body).encode() + b" " * (1 + uuid4().int % 4096) if raw is None else raw
    with Connection(stage.broker_url) as connection:
        connection.Producer().publish(
            own,
            routing_key="release.tasks",
            headers=heads,
            content_type="application/json",
            content_encoding="utf-8",
        )
    return own


@pytest.mark.scenario("admission", "A message on the task queue that is no task")
@pytest.mark.parametrize("name", STRANGE)
def test_a_task_that_nobody_of_ours_would_write_is_kept(stage: LocalStage, name: str) -> None:
    """Celery would connect again for ever, call what it names, or log what it holds."""
    raw = publish(stage, STRANGE[name])
    assert stage.dead_letter(raw) == "NOT_A_TASK"
    assert MARK not in stage.log_text()
    assert still_works(stage)


@pytest.mark.scenario("admission", "A message on the task queue that is no task")
def test_headers_say_nothing_that_logs_or_events_repeat(stage: LocalStage) -> None:
    """A shadow name and a text for the arguments are the producer's words, and dropped."""
    heads = headers(shadow=f"{MARK}-name", argsrepr=MARK, kwargsrepr=MARK, group={MARK: 1})
    run_id = new_run_id("heads")
    stage.record(*disk_records(run_id))
    publish(stage, (heads, [[event(run_id, disk_draft())], {}, NOTHING]))
    assert stage.outcome(run_id).type == "release_stage.ReleaseSucceeded.v1"
    assert MARK not in stage.log_text()


@pytest.mark.scenario("admission", "A task with a message that cannot be admitted")
@pytest.mark.parametrize("type_", ["datetime", "bytes", "uuid", "decimal"])
def test_what_kombu_makes_of_an_object_is_judged_as_it_came(stage: LocalStage, type_: str) -> None:
    """An object of one marked type is no JSON any more; the draft is unreadable, not lost."""
    run_id = new_run_id("typed")
    values: dict[str, Any] = {
        "datetime": "2026-11-30T08:00:00",
        "bytes": "x",
        "uuid": {"hex": "0" * 32},
        "decimal": "1.5",
    }
    draft = {**disk_draft(), "limitations": [{"__type__": type_, "__value__": values[type_]}]}
    send_task(stage, "release.submit", event(run_id, draft))
    outcome = stage.outcome(run_id)
    assert outcome.type == "release_stage.ReleaseFallback.v1"
    assert outcome.data["fallback"]["type"] == "EVIDENCE_VALIDATION_FAILED"  # type: ignore[index,call-overload]


@pytest.mark.scenario("admission", "A message on the task queue that is no task")
@pytest.mark.parametrize("queue", ["release.tasks", "release.drafts"])
def test_a_compressed_message_is_never_unpacked(either: LocalStage, queue: str) -> None:
    """A few kilobytes could hold gigabytes; the bytes are kept as they came."""
    packed = zlib.compress(uuid4().bytes + b" " * 5_000_000)
    with Connection(either.broker_url) as connection:
        connection.Producer().publish(
            packed,
            routing_key=queue,
            headers={**headers(), "compression": "application/x-gzip"},
            content_type="application/json",
            content_encoding="binary",
        )
    assert either.dead_letter(packed) in {"NOT_A_TASK", "NOT_UTF8", "NOT_JSON"}
    assert still_works(either)


ITEMS: dict[str, Any] = {
    "no JSON": "a draft",
    "a number": 5,
    "a list": [],
    "no properties": {"body": "x"},
    "no place": {"body": "x", "headers": {}, "properties": {"delivery_tag": "t"}},
    "headers that are a list": {
        "body": "e30=",
        "headers": [1],
        "properties": {
            "body_encoding": "base64",
            "delivery_tag": "t",
            "delivery_info": {"exchange": "", "routing_key": "release.tasks"},
        },
    },
    "an encoding that it has not": {
        "body": "@@",
        "headers": {},
        "properties": {
            "body_encoding": "base64",
            "delivery_tag": "t",
            "delivery_info": {"exchange": "", "routing_key": "release.tasks"},
        },
    },
}


@pytest.mark.scenario("admission", "A message on the task queue that is no task")
@pytest.mark.parametrize("name", ITEMS)
def test_an_item_that_kombu_did_not_write_ends_no_worker(stage: LocalStage, name: str) -> None:
    """An agent with a Redis client and the wrong list would take one worker after the other."""
    item = ITEMS[name]
    text = item if isinstance(item, str) else json.dumps(item)
    raw = f"{text}{' ' * (1 + uuid4().int % 4096)}".encode()
    stage.redis.lpush("release.tasks", raw)
    assert stage.dead_letter(raw) == "NOT_A_TASK"
    assert still_works(stage)


@pytest.mark.scenario("model-boundary", "A refusal by the provider is not repeated")
def test_a_short_draft_cannot_fill_the_store(stage: LocalStage) -> None:
    """What is too large to be asked is not kept: 20 analyses of 1 MB would be 40 MB a run."""
    run_id = new_run_id("large")
    stage.record(command_record(run_id, "call-df", command="dmesg", stdout="x y " * 250_000))
    step = {"kind": "NORMAL", "text": "x", "tool_call_ids": ["call-df"]}
    analyses = [{**step, "analysis_id": f"a{number}"} for number in range(20)]
    draft = {**disk_draft(), "analyses": analyses}
    draft["conclusion"]["based_on_analysis_ids"] = draft["action_plan"][0][
        "based_on_analysis_ids"
    ] = ["a1"]
    stage.submit(draft_ready(run_id, draft))
    fallback: Any = stage.outcome(run_id).data["fallback"]
    assert fallback["type"] == "SEMANTIC_UNAVAILABLE"
    assert fallback["verified_sources"]
    assert not stage.judge.asked_about(run_id)
    assert stage.redis.memory_usage(stage.keys.run(run_id), samples=0) < 100_000
