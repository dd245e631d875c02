"""The three ways in, each with nothing but what its producer would have."""

import base64
import json

import pytest

from tests.pipeline.cases import disk_draft, disk_records, draft_ready, event
from tests.pipeline.harness import CHECK, PUBLISH, REVIEW, LocalStage, new_run_id
from tests.pipeline.producers import send_task
from worker.client import StageClient

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"


@pytest.mark.scenario("release-chain", "A sound draft")
def test_a_sound_draft_is_released_unchanged(stage: LocalStage) -> None:
    """The draft goes out as it came in, after each of the three steps ran once."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    outcome = stage.outcome(run_id)
    assert outcome.type == SUCCEEDED
    assert outcome.data["draft"] == disk_draft()
    stage.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    assert stage.carried_out(run_id) == [
        (CHECK, "PASSED"),
        (REVIEW, "SUPPORTED"),
        (PUBLISH, "SUCCEEDED"),
    ]


@pytest.mark.scenario("admission", "Plain JSON on the queue")
def test_plain_json_on_the_queue_is_admitted(stage: LocalStage) -> None:
    """A producer without any code of ours publishes a CloudEvent as JSON."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.publish_raw(json.dumps(event(run_id, disk_draft())).encode())
    assert stage.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("admission", "A Redis list and nothing else")
def test_a_producer_with_nothing_but_redis_is_admitted(stage: LocalStage) -> None:
    """What a producer needs that has a Redis client and no messaging library.

    The broker's wrapping is one JSON object, pushed to the left of the list that has
    the queue's name. ``body`` is the event in base64; ``delivery_tag`` is any unique
    string; the other fields are always the same.
    """
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    text = json.dumps(event(run_id, disk_draft())).encode()
    wrapping = {
        "body": base64.b64encode(text).decode(),
        "content-type": "application/cloudevents+json",
        "content-encoding": "binary",
        "headers": {},
        "properties": {
            "body_encoding": "base64",
            "delivery_mode": 2,
            "delivery_tag": f"tag-{run_id}",
            "delivery_info": {"exchange": "", "routing_key": "release.drafts"},
        },
    }
    stage.redis.lpush("release.drafts", json.dumps(wrapping))
    assert stage.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("admission", "The task release.submit")
@pytest.mark.parametrize("form", ["object", "text"])
def test_the_celery_task_is_admitted(stage: LocalStage, form: str) -> None:
    """A Celery producer sends the same event by the task's name, as object or as JSON text."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    message = event(run_id, disk_draft())
    send_task(stage, "release.submit", message if form == "object" else json.dumps(message))
    assert stage.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("admission", "The broker loses a submitted draft")
def test_a_draft_that_the_broker_lost_is_admitted_from_the_inbox(stage: LocalStage) -> None:
    """The client's broker takes the message and nobody ever gets it; the relay admits it."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    nowhere = stage.redis_server.broker_url.replace("virtual_host=0", "virtual_host=1")
    client = StageClient(stage.redis_server.url, nowhere)
    message_id = client.submit_draft(draft_ready(run_id, disk_draft()))
    client.close()
    assert stage.run(run_id) is None
    stage.age_inbox(message_id)
    assert stage.outcome(run_id).type == SUCCEEDED
    stage.wait_for(
        lambda: not stage.redis.exists(stage.keys.inbox_entry(message_id)), "an empty inbox"
    )
    assert stage.redis.zscore(stage.keys.inbox, message_id) is None


@pytest.mark.scenario("admission", "The broker brings a submitted draft")
def test_an_admitted_draft_leaves_the_inbox(stage: LocalStage) -> None:
    """Admission from the queue clears the entry, so that the relay has nothing to do."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    message_id = stage.client.submit_draft(draft_ready(run_id, disk_draft()))
    stage.outcome(run_id)
    assert not stage.redis.exists(stage.keys.inbox_entry(message_id))
    assert stage.redis.zscore(stage.keys.inbox, message_id) is None


@pytest.mark.scenario("admission", "A process dies between record and queue")
def test_a_run_that_was_written_and_not_enqueued_starts_by_the_repeat(quiet: LocalStage) -> None:
    """The broker brings the unacknowledged message again, and that hands on."""
    run_id = new_run_id()
    quiet.record(*disk_records(run_id))
    draft = draft_ready(run_id, disk_draft())
    quiet.die("recorded", draft)
    run = quiet.run(run_id)
    assert run is not None
    assert run.is_open
    assert quiet.steps(run_id) == []
    quiet.publish_raw(quiet.wrapped(draft))
    assert quiet.outcome(run_id).type == SUCCEEDED
