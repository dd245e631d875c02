"""Workers, children, connections and brokers that die: each run still ends once, on each broker."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from kombu import Connection, Queue
from kombu.message import Message

from tests.pipeline.cases import disk_draft, disk_records, draft_ready, event
from tests.pipeline.harness import (
    CHECK,
    PATIENCE,
    PUBLISH,
    REPAIR,
    REVIEW,
    SECOND_REVIEW,
    LocalStage,
    new_run_id,
)
from worker.adapters.queues import DELIVERIES, HOLD_SECONDS, Broker, broker_of
from worker.offline.judge_script import Behaviour, hang, rules
from worker.offline.processes import Process
from worker.offline.rabbitmq_server import RabbitServer
from worker.run.steps import StepRef
from worker.settings import Settings

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
BROKEN: dict[str, Any] = {
    "conclusion": {**disk_draft()["conclusion"], "based_on_analysis_ids": ["a9"]},
}
"""What makes the sound draft need a repair."""


def in_review(stage: LocalStage, behaviour: Behaviour, **changes: object) -> str:
    """Submit a draft and wait until the judge is asked about it; returns the run id."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.judge.add(behaviour.on(run_id))
    stage.submit(draft_ready(run_id, {**disk_draft(), **changes}))
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)))
    return run_id


def opened(stage: LocalStage, ref: StepRef) -> str:
    """Open a run and carry out what comes before a step; returns the run id."""
    run_id = new_run_id(ref.step)
    stage.record(*disk_records(run_id))
    changes: dict[StepRef, dict[str, Any]] = {REPAIR: BROKEN, PUBLISH: {"conclusion": None}}
    message = draft_ready(run_id, {**disk_draft(), **changes.get(ref, {})})
    stage.die("recorded", message, *(() if ref == CHECK else (CHECK,)))
    return run_id


def end_supervised(stage: LocalStage, worker: Process, run_id: str) -> None:
    """Wait for a run's end; meanwhile start the worker again if it dies, as a supervisor would."""
    workers = [worker]

    def has_ended() -> bool:
        if not workers[-1].running:
            workers.append(stage.worker())
        run = stage.run(run_id)
        return run is not None and run.ending is not None

    stage.wait_for(has_ended, f"the ending of {run_id}")


def taken(queue: Queue) -> Message:
    """Wait for a message and take it, unacknowledged."""
    deliveries = (queue.get() for _ in iter(int, 1))
    deadline = time.monotonic() + PATIENCE
    return next(one for one in deliveries if one is not None or time.monotonic() > deadline)


def pool_of(worker: Process) -> list[psutil.Process]:
    return list(psutil.Process(worker.pid).children())


@pytest.mark.scenario("brokers", "A worker dies with steps that it had received")
def test_steps_that_a_dead_worker_had_received_are_carried_out(breakable: LocalStage) -> None:
    """Its processes are frozen so that each step is received and none begun, then it is killed."""
    refs = (CHECK, REPAIR, REVIEW, PUBLISH)
    worker = breakable.worker(concurrency=len(refs))
    with ThreadPoolExecutor(2) as pool:
        runs = dict(zip(pool.map(lambda ref: opened(breakable, ref), refs), refs, strict=True))
    for process in pool_of(worker):
        process.suspend()
    for run_id, ref in runs.items():
        breakable.deliver(run_id, ref)
    for run_id, ref in runs.items():
        breakable.wait_for_step(run_id, ref, "received")
    worker.kill()
    breakable.worker()
    breakable.relay()
    for run_id in runs:
        assert breakable.outcome(run_id).type


@pytest.mark.scenario("brokers", "A worker dies in a model call")
@pytest.mark.parametrize("changes", [{}, BROKEN], ids=["review", "repair"])
def test_a_worker_killed_in_a_model_call_costs_one_attempt(
    breakable: LocalStage, changes: dict[str, object]
) -> None:
    """The lost call is a used attempt; the run ends once, and no call is made too often."""
    worker = breakable.worker()
    breakable.relay()
    run_id = in_review(breakable, hang(), **changes)
    worker.kill()
    breakable.worker()
    outcome = breakable.outcome(run_id)
    assert (outcome.type == SUCCEEDED) == (not changes)
    assert len(breakable.judge.asked_about(run_id)) == (1 if changes else 2)


@pytest.mark.scenario("brokers", "A child dies in a model call")
def test_a_killed_child_costs_one_attempt(breakable: LocalStage) -> None:
    """The worker tells that the child is gone, and the second attempt succeeds."""
    worker = breakable.worker(concurrency=1)
    run_id = in_review(breakable, hang())
    for process in pool_of(worker):
        os.kill(process.pid, signal.SIGKILL)
    assert breakable.outcome(run_id).type == SUCCEEDED
    breakable.wait_for_step(run_id, SECOND_REVIEW, "SUPPORTED")
    assert len(breakable.judge.asked_about(run_id)) == 2


@pytest.mark.scenario("brokers", "Connections are dropped in mid-run")
def test_a_dropped_connection_repeats_no_call(
    breakable: LocalStage, request: pytest.FixtureRequest
) -> None:
    """The broker brings the step again while its first delivery still runs; readers come back."""
    worker = breakable.worker()
    breakable.relay()
    earlier = in_review(breakable, rules())
    assert breakable.outcome(earlier).type == SUCCEEDED
    run_id = in_review(breakable, rules().after(1.5))
    if breakable.broker.is_rabbitmq:
        request.getfixturevalue("rabbit").drop_connections()
    else:
        breakable.redis.client_kill_filter(_type="normal", skipme=True)
    end_supervised(breakable, worker, run_id)
    assert breakable.outcome(run_id).type == SUCCEEDED
    assert len(breakable.judge.asked_about(run_id)) == 1


def settle(server: RabbitServer, broker: Broker) -> None:
    """Declare the queues and stop the server in good order once.

    RabbitMQ 3.10 leaves a quorum queue without a leader when it is killed within seconds of
    the queue's birth, whoever uses it.
    """
    with Connection(server.url) as connection:
        for queue in (broker.dead, broker.tasks, broker.drafts, broker.control, broker.results):
            queue(connection.default_channel).declare()
    server.restart()


@pytest.mark.scenario("brokers", "The broker is killed in mid-run")
def test_a_killed_broker_loses_no_run(
    breakable: LocalStage, request: pytest.FixtureRequest
) -> None:
    """After its restart the run goes on and ends once, with no call more than the policy allows."""
    server: RabbitServer | None = None
    if breakable.broker.is_rabbitmq:
        server = request.getfixturevalue("rabbit")
        settle(server, breakable.broker)
    worker = breakable.worker()
    breakable.relay()
    run_id = in_review(breakable, rules().after(1.0))
    if server is not None:
        server.kill()
        server.start()
    else:
        breakable.redis_server.kill()
        breakable.redis_server.start()
    end_supervised(breakable, worker, run_id)
    assert breakable.outcome(run_id).type == SUCCEEDED
    assert len(breakable.judge.asked_about(run_id)) <= 2


@pytest.mark.scenario("brokers", "A reply queue that nobody has")
def test_an_unroutable_answer_is_kept_and_the_result_still_comes(on_rabbit: LocalStage) -> None:
    """The broker returns it, which is final: the relay records it as undeliverable."""
    on_rabbit.worker()
    on_rabbit.relay()
    run_id = new_run_id()
    on_rabbit.record(*disk_records(run_id))
    on_rabbit.submit(draft_ready(run_id, disk_draft(), reply_to=f"release.reply.{run_id}"))
    outcome = on_rabbit.outcome(run_id)
    assert outcome.type == SUCCEEDED
    on_rabbit.wait_for(
        lambda: "UNDELIVERABLE" in [reason for reason, _ in on_rabbit.dead()], "the dead letter"
    )
    assert on_rabbit.redis.xlen(on_rabbit.keys.outbox) == 0


@pytest.mark.scenario("brokers", "The store is away")
def test_a_message_that_waits_for_the_store_is_delivered_once(on_rabbit: LocalStage) -> None:
    """It is held, not given back: only the worker's own death counts as a delivery."""
    worker = on_rabbit.worker()
    run_id = new_run_id()
    on_rabbit.record(*disk_records(run_id))
    on_rabbit.redis_server.kill()
    on_rabbit.publish_raw(json.dumps(event(run_id, disk_draft())).encode())
    on_rabbit.wait_for(lambda: worker.text().count("consumption pauses") >= 3, "three pauses")
    worker.kill()
    with Connection(on_rabbit.broker_url) as connection:
        drafts = on_rabbit.broker.drafts(connection.default_channel)
        found = taken(drafts)
        assert found.headers["x-delivery-count"] == 1
        found.requeue()
    on_rabbit.redis_server.start()
    on_rabbit.worker()
    assert on_rabbit.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("brokers", "A message delivered too often")
@pytest.mark.parametrize("name", ["tasks", "drafts", "control"])
def test_a_message_delivered_too_often_is_kept(on_rabbit: LocalStage, name: str) -> None:
    """After its last delivery it is a dead letter, raw."""
    body = f"poison for {name}".encode()
    with Connection(on_rabbit.broker_url) as connection:
        channel = connection.default_channel
        on_rabbit.broker.dead(channel).declare()
        queue = getattr(on_rabbit.broker, name)(channel)
        queue.declare()
        on_rabbit.publish_raw(body, queue.name)
        for _ in range(DELIVERIES + 1):
            taken(queue).requeue()
    assert on_rabbit.dead_letter(body) == "DELIVERED_TOO_OFTEN"


@pytest.mark.scenario("brokers", "Nothing that the stage does not need")
def test_a_worker_declares_no_queue_for_delayed_tasks(on_rabbit: LocalStage) -> None:
    """Celery's delayed delivery is left out."""
    on_rabbit.worker()
    with Connection(on_rabbit.broker_url) as connection:
        channel = connection.default_channel
        with pytest.raises(connection.channel_errors):
            channel.queue_declare("celery_delayed_0", passive=True)


@pytest.mark.scenario("brokers", "A limit above the acknowledgement timeout")
def test_a_step_may_not_outlive_the_acknowledgement_timeout() -> None:
    """RabbitMQ takes a message back after its timeout, so longer steps are refused at start."""
    url = "amqp://guest:guest@127.0.0.1//"
    longer = HOLD_SECONDS + 1
    limits = {"attempt_timeout": longer, "review_total_timeout": longer, "visibility_timeout": 9e9}
    Settings.model_validate(limits)
    with pytest.raises(ValueError, match="RabbitMQ's acknowledgement timeout"):
        Settings.model_validate({**limits, "broker_url": url})


@pytest.mark.scenario("brokers", "Worker and client alike")
def test_both_sides_declare_the_same_queues() -> None:
    """Whoever is given a RabbitMQ's address, however written, gets the same declarations."""
    brokers: list[Broker] = [
        broker_of(url) for url in ("amqp://a//", "amqps://b:1/x", "pyamqp://c//")
    ]
    assert brokers.count(brokers[0]) == len(brokers)
    assert all(
        queue.queue_arguments["x-queue-type"] == "quorum"
        for one in brokers
        for queue in (one.tasks, one.drafts, one.control, one.results, one.dead)
    )
