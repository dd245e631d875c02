"""Repeats, conflicts, refusals that are answered, and cancels."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from contracts.base import isoformat
from tests.pipeline.cases import disk_draft, disk_records, event
from tests.pipeline.harness import PUBLISH, LocalStage, new_run_id
from worker.offline.judge_script import hang

ABORTED = "release_stage.ReleaseAborted.v1"
SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
REJECTED = "release_stage.DraftRejected.v1"


def encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def reply_queue() -> str:
    return f"release.reply.{uuid4()}"


def cancel_event(run_id: str) -> bytes:
    message = event(run_id, None, type="release_stage.CancelRun.v1")
    return encoded({**message, "data": {"run_id": run_id}})


@pytest.mark.scenario("admission", "The same data again")
def test_a_repeat_opens_nothing_and_refuses_nothing(stage: LocalStage) -> None:
    """The same data under another id and time, keys in another order, is the same message."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    first = event(run_id, disk_draft())
    later = isoformat(datetime.now(UTC) + timedelta(seconds=1))
    again = {**first, "id": str(uuid4()), "time": later}
    again["data"] = dict(reversed(first["data"].items()))
    for message in (first, again, first):
        stage.publish_raw(encoded(message))
    assert stage.outcome(run_id).type == SUCCEEDED
    stage.publish_raw(encoded(again))
    stage.wait_for(lambda: stage.redis.llen("release.drafts") == 0, "an empty queue")
    stage.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    assert [code for _, code in stage.carried_out(run_id)].count("SUCCEEDED") == 1
    assert stage.outcome(run_id).type == SUCCEEDED
    assert encoded(again) not in [raw for _, raw in stage.dead()]


@pytest.mark.scenario("admission", "Other data for the same run")
def test_a_conflicting_repeat_is_kept_aside_and_answered(stage: LocalStage) -> None:
    """The first message stands; the other one is a dead letter, raw, and its sender is told."""
    run_id, queue = new_run_id(), reply_queue()
    stage.record(*disk_records(run_id))
    stage.publish_raw(encoded(event(run_id, disk_draft())))
    assert stage.outcome(run_id).data["draft"] == disk_draft()
    other = {**disk_draft(), "limitations": ["Another text."]}
    raw = encoded(event(run_id, other, data={"reply_to": queue}))
    stage.publish_raw(raw)
    assert stage.dead_letter(raw) == "CONFLICTING_REPEAT"
    answer = stage.reply(queue)
    assert answer.type == REJECTED
    assert answer.data == {"run_id": run_id, "reasons": ["CONFLICTING_REPEAT"]}
    assert len(stage.results[run_id]) == 1


@pytest.mark.scenario("admission", "A refused draft that says where to answer")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"type": "release_stage.DraftReady.v2"}, "UNKNOWN_VERSION"),
        ({"type": "release_stage.Shout.v1"}, "UNKNOWN_TYPE"),
        ({"data": {"query": 7}}, "INVALID_DATA:query"),
        ({"time": "2020-01-01T00:00:00Z"}, "TOO_OLD"),
        ({"specversion": "0.3"}, "INVALID_ENVELOPE:specversion"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_is_answered_in_codes(
    stage: LocalStage, changes: dict[str, Any], reason: str
) -> None:
    """DraftRejected names what is wrong, and quotes nothing of the message."""
    run_id, queue = new_run_id(), reply_queue()
    fields = {**changes, "data": {**changes.get("data", {}), "reply_to": queue}}
    raw = encoded(event(run_id, "a word of the draft", **fields))
    stage.publish_raw(raw)
    answer = stage.reply(queue)
    assert answer.type == REJECTED
    assert answer.data == {"run_id": run_id, "reasons": [reason]}
    assert stage.dead_letter(raw) == reason
    assert stage.run(run_id) is None


@pytest.mark.scenario("admission", "A cancel before its draft")
def test_a_cancel_before_its_draft_ends_the_run_at_once(stage: LocalStage) -> None:
    """The draft is answered ReleaseAborted and none of its steps is enqueued."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.publish_raw(cancel_event(run_id), "release.control")
    stage.wait_for(lambda: stage.run(run_id) is not None, "the cancel's mark")
    stage.publish_raw(encoded(event(run_id, disk_draft())))
    outcome = stage.outcome(run_id)
    assert outcome.type == ABORTED
    assert outcome.data["reason"] == "CANCELLED"
    assert stage.steps(run_id) == []
    assert not stage.judge.asked_about(run_id)


@pytest.mark.scenario("admission", "A cancel while the judge is asked")
def test_a_cancel_on_the_control_queue_ends_a_run_in_its_review(stage: LocalStage) -> None:
    """The run ends as cancelled, and the open call to the judge is closed."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.judge.add(hang().on(run_id).always())
    stage.publish_raw(encoded(event(run_id, disk_draft())))
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)))
    stage.publish_raw(cancel_event(run_id), "release.control")
    outcome = stage.outcome(run_id)
    assert outcome.type == ABORTED
    assert outcome.data["reason"] == "CANCELLED"
    stage.judge.wait(
        lambda _: all(one.closed_at is not None for one in stage.judge.asked_about(run_id))
    )
    assert len(stage.judge.asked_about(run_id)) == 1
