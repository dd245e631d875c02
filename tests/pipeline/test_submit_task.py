"""A draft that came as a task has no inbox: its message must outlive whatever happens to it."""

import psutil
import pytest

from contracts.strict_json import canonical
from tests.pipeline.cases import disk_draft, disk_records, event
from tests.pipeline.harness import LocalStage, new_run_id
from tests.pipeline.producers import send_task

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"


@pytest.mark.scenario("admission", "The process that admits a task dies")
def test_a_task_comes_again_when_its_process_dies(on_rabbit: LocalStage) -> None:
    """It is killed while it waits for a store that is away: nothing was decided yet."""
    run_id = new_run_id()
    on_rabbit.record(*disk_records(run_id))
    worker = on_rabbit.worker(concurrency=1)
    on_rabbit.redis_server.kill()
    producer = on_rabbit.dispatcher._app  # it knows the queues as they are on RabbitMQ
    producer.send_task("release.submit", args=[event(run_id, disk_draft())])
    on_rabbit.wait_for(lambda: "release.submit[" in worker.text(), "the task")
    for child in psutil.Process(worker.pid).children():
        child.kill()
    on_rabbit.wait_for(lambda: "signal 9" in worker.text(), "the death of the process")
    on_rabbit.redis_server.start()
    assert on_rabbit.outcome(run_id).type == SUCCEEDED


@pytest.mark.scenario("admission", "A task that breaks admission")
def test_a_task_that_breaks_admission_is_kept(stage: LocalStage) -> None:
    """What a record that cannot be read does to its message must not lose it."""
    run_id = new_run_id()
    stage.redis.hset(stage.keys.run(run_id), mapping={"rev": 1, "state": '{"run_id": 7}'})
    message = event(run_id, disk_draft())
    send_task(stage, "release.submit", message)
    assert stage.dead_letter(canonical(message)) == "ValidationError"
