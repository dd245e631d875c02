"""What depends on the broker, on each of them: ways in, endings, repeats, cancellation."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from kombu import Connection, Queue

from tests.pipeline.cases import disk_draft, disk_records, draft_ready, event
from tests.pipeline.harness import CHECK, PUBLISH, REVIEW, LocalStage, new_run_id
from worker.offline.judge_script import Behaviour, content, hang, rules, status, verdict
from worker.run.steps import StepRef, task_id

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
FALLBACK = "release_stage.ReleaseFallback.v1"
ABORTED = "release_stage.ReleaseAborted.v1"
REJECTED = "release_stage.DraftRejected.v1"


def by_client(stage: LocalStage, run_id: str) -> None:
    stage.submit(draft_ready(run_id, disk_draft()))


def as_plain_json(stage: LocalStage, run_id: str) -> None:
    stage.publish_raw(json.dumps(event(run_id, disk_draft())).encode())


def as_task(stage: LocalStage, run_id: str) -> None:
    with Celery("agents", broker=stage.broker_url, set_as_current=False) as app:
        app.conf.task_ignore_result = True
        app.conf.task_queues = [stage.broker.tasks]
        app.send_task("release.submit", args=[event(run_id, disk_draft())], queue="release.tasks")


def open_reply_queue(stage: LocalStage) -> str:
    """A reply queue as its owner declares it before asking for answers."""
    name = f"release.reply.{uuid4()}"
    with Connection(stage.broker_url) as connection:
        Queue(name, durable=True)(connection.default_channel).declare()
    return name


def cancel_event(run_id: str) -> bytes:
    message = event(run_id, None, type="release_stage.CancelRun.v1")
    return json.dumps({**message, "data": {"run_id": run_id}}).encode()


def in_review(stage: LocalStage, behaviour: Behaviour) -> str:
    """Submit a draft and wait until the judge is asked about it; returns the run id."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.judge.add(behaviour.on(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)))
    return run_id


def revoke(stage: LocalStage, run_id: str, ref: StepRef, **how: Any) -> None:
    """Revoke a step as Flower does, and wait for the worker's answer."""
    with Celery("operator", broker=stage.broker_url, set_as_current=False) as app:
        assert app.control.revoke(task_id(run_id, ref), reply=True, timeout=10, limit=1, **how)


@pytest.mark.scenario("brokers", "Each way in")
@pytest.mark.parametrize("way", [by_client, as_plain_json, as_task])
def test_each_way_in_leads_to_an_ending(
    either: LocalStage, way: Callable[[LocalStage, str], None]
) -> None:
    """Client, plain JSON and Celery task are admitted, and the draft goes out unchanged."""
    run_id = new_run_id()
    either.record(*disk_records(run_id))
    way(either, run_id)
    outcome = either.outcome(run_id)
    assert outcome.type == SUCCEEDED
    assert outcome.data["draft"] == disk_draft()


@pytest.mark.scenario("brokers", "Each ending")
@pytest.mark.parametrize(
    ("changes", "behaviours", "type_"),
    [
        ({}, [], SUCCEEDED),
        ({}, [status(500)], SUCCEEDED),
        ({"conclusion": None}, [], FALLBACK),
        ({}, [verdict("UNSUPPORTED")], FALLBACK),
        ({}, [status(500), status(500)], FALLBACK),
        ({"action_plan": [{"text": "x"}]}, [content("no repair")], FALLBACK),
    ],
    ids=["sound", "second attempt", "no conclusion", "unsupported", "no verdict", "unreadable"],
)
def test_each_ending_reaches_the_results_once(
    either: LocalStage, changes: dict[str, Any], behaviours: list[Behaviour], type_: str
) -> None:
    """Straight path, second attempt and detours all end in one message."""
    run_id = new_run_id()
    either.record(*disk_records(run_id))
    either.judge.add(*(one.on(run_id) for one in behaviours))
    either.submit(draft_ready(run_id, {**disk_draft(), **changes}))
    assert either.outcome(run_id).type == type_


@pytest.mark.scenario("brokers", "The same message again")
def test_a_repeat_changes_nothing_and_a_conflict_is_kept_and_answered(either: LocalStage) -> None:
    """The first message stands; a differing one is a dead letter, raw, and its sender is told."""
    run_id, queue = new_run_id(), open_reply_queue(either)
    either.record(*disk_records(run_id))
    raw = json.dumps(event(run_id, disk_draft())).encode()
    either.publish_raw(raw)
    either.publish_raw(raw)
    assert either.outcome(run_id).type == SUCCEEDED
    other = {**disk_draft(), "limitations": ["Another text."]}
    conflict = json.dumps(event(run_id, other, data={"reply_to": queue})).encode()
    either.publish_raw(conflict)
    assert either.dead_letter(conflict) == "CONFLICTING_REPEAT"
    assert either.reply(queue).type == REJECTED
    assert either.outcome(run_id).data["draft"] == disk_draft()


@pytest.mark.scenario("brokers", "A step delivered while it runs")
def test_a_second_delivery_of_a_running_step_starts_nothing(either: LocalStage) -> None:
    """The judge is asked once, and there is one outcome."""
    run_id = in_review(either, rules().after(1.0))
    either.deliver(run_id, REVIEW)
    either.wait_for_step(run_id, REVIEW, "ignored")
    assert either.outcome(run_id).type == SUCCEEDED
    assert len(either.judge.asked_about(run_id)) == 1


@pytest.mark.scenario("brokers", "A cancel on the control queue")
def test_a_cancel_ends_a_run_in_its_review(either: LocalStage) -> None:
    """CancelRun comes through beside the drafts and closes the open call."""
    run_id = in_review(either, hang().always())
    either.publish_raw(cancel_event(run_id), "release.control")
    assert either.outcome(run_id).data["reason"] == "CANCELLED"


@pytest.mark.scenario("brokers", "A revoke from outside")
@pytest.mark.parametrize("terminate", [False, True], ids=["plain", "terminate"])
def test_a_revoke_of_a_running_step_cancels_its_run(either: LocalStage, terminate: bool) -> None:
    """With and without terminate the run is cancelled and the call closed."""
    run_id = in_review(either, hang().always())
    revoke(either, run_id, REVIEW, terminate=terminate)
    outcome = either.outcome(run_id)
    assert outcome.type == ABORTED
    assert outcome.data["reason"] == "CANCELLED"
    either.judge.wait(
        lambda _: all(one.closed_at is not None for one in either.judge.asked_about(run_id))
    )


@pytest.mark.scenario("brokers", "A revoke from outside")
def test_a_revoke_of_a_waiting_step_cancels_its_run(either: LocalStage) -> None:
    """A step that was revoked before a worker had it is dropped on arrival."""
    run_id = in_review(either, rules().after(1.0))
    revoke(either, run_id, PUBLISH)
    assert either.outcome(run_id).data.get("reason") == "CANCELLED"
    assert (PUBLISH, "SUCCEEDED") not in either.carried_out(run_id)
    assert (CHECK, "PASSED") in either.carried_out(run_id)
