"""The straight path and its detours, as the workers' own logs and the queue show them."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.messages import DraftReady
from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import (
    CHECK,
    PUBLISH,
    REPAIR,
    REVIEW,
    SECOND_CHECK,
    SECOND_REVIEW,
    LocalStage,
    new_run_id,
)
from worker.offline.judge_script import content, status, verdict
from worker.run.steps import StepRef, task_id

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
FALLBACK = "release_stage.ReleaseFallback.v1"


def with_call(call_id: str) -> dict[str, Any]:
    """A draft whose only normal analysis cites this call."""
    draft = disk_draft()
    draft["analyses"][0]["tool_call_ids"] = [call_id]
    return draft


def submitted_without_worker(bare: LocalStage, draft: DraftReady) -> None:
    """Let the relay admit a draft while no worker runs: its task stays in the queue."""
    if not bare.processes:
        bare.relay()
    bare.age_inbox(bare.client.submit_draft(draft))
    bare.wait_for(lambda: bare.redis.llen("release.tasks"), "the first task")


@pytest.mark.scenario("release-chain", "One chain with ids and limits")
def test_the_path_is_one_chain_with_ids_and_limits_for_each_member(bare: LocalStage) -> None:
    """The queued task carries the others; each has its computed id and its own limits."""
    run_id = new_run_id()
    submitted_without_worker(bare, draft_ready(run_id, disk_draft()))
    message = json.loads(bare.redis.lindex("release.tasks", 0))
    headers = message["headers"]
    _, _, embed = json.loads(base64.b64decode(message["body"]))
    members = [(headers["task"], headers["id"], headers["timelimit"], embed["errbacks"])]
    for member in reversed(embed["chain"]):
        options = member["options"]
        limits = [options["time_limit"], options["soft_time_limit"]]
        members.append((member["task"], options["task_id"], limits, options["link_error"]))
    policy = bare.settings.policy()
    path = [CHECK, REVIEW, PUBLISH]
    assert [member[:3] for member in members] == [
        (
            f"release.{ref.step}",
            task_id(run_id, ref),
            [policy.hard_limit(ref.step), policy.soft_limit(ref.step)],
        )
        for ref in path
    ]
    for ref, (*_, errbacks) in zip(path, members, strict=True):
        (errback,) = errbacks
        assert errback["task"] == "release.attempt_lost"
        assert errback["kwargs"]["step"] == ref.step


@pytest.mark.scenario("release-chain", "Only names travel")
def test_no_message_between_steps_holds_a_word_of_the_draft(bare: LocalStage) -> None:
    """What is enqueued names the run, the round and the attempt, and nothing else."""
    run_id = new_run_id()
    submitted_without_worker(bare, draft_ready(run_id, disk_draft()))
    message = json.loads(bare.redis.lindex("release.tasks", 0))
    args, kwargs, embed = json.loads(base64.b64decode(message["body"]))
    names = {"run_id": run_id, "round": 0, "attempt": 1}
    assert args == []
    assert kwargs == names
    assert [member["kwargs"] for member in embed["chain"]] == [names, names]
    assert [member["args"] for member in embed["chain"]] == [[], []]


@pytest.mark.scenario("release-chain", "A second attempt")
def test_a_technical_failure_is_tried_once_more(stage: LocalStage) -> None:
    """The second attempt is a task of its own, and publish follows that one only."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.judge.add(status(503).on(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    assert stage.outcome(run_id).type == SUCCEEDED
    stage.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    assert stage.carried_out(run_id) == [
        (CHECK, "PASSED"),
        (REVIEW, "TRANSPORT"),
        (SECOND_REVIEW, "SUPPORTED"),
        (PUBLISH, "SUCCEEDED"),
    ]


@pytest.mark.scenario("release-chain", "A stage that is not needed")
def test_a_stage_that_is_not_needed_is_not_enqueued(stage: LocalStage) -> None:
    """A draft without a conclusion goes from its check to publish; no review is received."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, {**disk_draft(), "conclusion": None}))
    outcome: Any = stage.outcome(run_id)
    assert outcome.type == FALLBACK
    assert outcome.data["fallback"]["type"] == "INSUFFICIENT_EVIDENCE"
    stage.wait_for_step(run_id, PUBLISH, "INSUFFICIENT_EVIDENCE")
    assert {ref for ref, _ in stage.steps(run_id)} == {CHECK, PUBLISH}
    assert not stage.judge.asked_about(run_id)


@pytest.mark.scenario("release-chain", "A repair on the way")
def test_a_repair_leaves_the_path_and_comes_back_to_it(stage: LocalStage) -> None:
    """A broken reference is mended, checked again and reviewed; the first chain is dropped."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.judge.add(content(json.dumps(disk_draft())).on(run_id))
    stage.submit(draft_ready(run_id, with_call("call-nowhere")))
    outcome = stage.outcome(run_id)
    assert outcome.type == SUCCEEDED
    assert outcome.data["repaired"] is True
    stage.wait_for_step(run_id, PUBLISH, "SUCCEEDED")
    assert stage.carried_out(run_id) == [
        (CHECK, "VIOLATED"),
        (REPAIR, "REPAIRED"),
        (SECOND_CHECK, "PASSED"),
        (REVIEW, "SUPPORTED"),
        (PUBLISH, "SUCCEEDED"),
    ]
    received = [ref for ref, what in stage.steps(run_id) if what == "received"]
    assert len(received) == 5


@pytest.mark.scenario("release-chain", "A fallback at once")
def test_a_repair_that_changes_words_goes_to_publish_at_once(stage: LocalStage) -> None:
    """An altered draft is never checked again or reviewed."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    altered = {**disk_draft(), "limitations": ["Another text."]}
    stage.judge.add(content(json.dumps(altered)).on(run_id))
    stage.submit(draft_ready(run_id, with_call("call-nowhere")))
    outcome: Any = stage.outcome(run_id)
    assert outcome.data["fallback"]["type"] == "EVIDENCE_VALIDATION_FAILED"
    stage.wait_for_step(run_id, PUBLISH, "EVIDENCE_VALIDATION_FAILED")
    steps = {ref for ref, _ in stage.steps(run_id)}
    assert steps == {CHECK, REPAIR, PUBLISH}


@pytest.mark.scenario("release-chain", "An objection of the judge")
def test_a_draft_that_the_judge_objects_to_falls_back(stage: LocalStage) -> None:
    """A valid answer that says UNSUPPORTED is not asked for twice."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.judge.add(verdict("UNSUPPORTED").on(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    outcome: Any = stage.outcome(run_id)
    assert outcome.data["fallback"]["type"] == "SEMANTIC_UNSUPPORTED"
    assert len(stage.judge.asked_about(run_id)) == 1


@pytest.mark.scenario("run-record", "No worker until the deadline")
def test_a_run_whose_steps_never_start_ends_at_its_deadline(bare: LocalStage) -> None:
    """With no worker at all the relay ends the run, and says why."""
    run_id = new_run_id()
    bare.relay()
    deadline = datetime.now(UTC) + timedelta(seconds=3)
    submitted_without_worker(bare, draft_ready(run_id, disk_draft(), deadline=deadline))
    outcome = bare.outcome(run_id)
    assert outcome.type == "release_stage.ReleaseAborted.v1"
    assert outcome.data["reason"] == "DEADLINE_EXCEEDED"
    assert datetime.now(UTC) >= deadline


@pytest.mark.scenario("run-record", "The broker loses a step")
def test_a_step_that_the_broker_lost_is_sent_again(bare: LocalStage) -> None:
    """A task that vanished from the queue comes back under the same id and is carried out."""
    run_id = new_run_id()
    bare.record(*disk_records(run_id))
    submitted_without_worker(bare, draft_ready(run_id, disk_draft()))
    lost = bare.redis.rpop("release.tasks")
    bare.wait_for(lambda: bare.redis.llen("release.tasks"), "the task again")
    again = bare.redis.lindex("release.tasks", 0)
    ids = [json.loads(message)["headers"]["id"] for message in (lost, again)]
    assert ids == [task_id(run_id, StepRef(0, CHECK.step, 1))] * 2
    bare.worker()
    assert bare.outcome(run_id).type == SUCCEEDED
