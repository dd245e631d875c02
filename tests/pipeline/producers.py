"""What several tests send, and the draft that shows that a worker still works."""

from typing import Any

from celery import Celery

from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import LocalStage, new_run_id


def send_task(stage: LocalStage, name: str, *args: Any) -> None:
    """Send a task by its name, as a Celery producer without any code of ours does."""
    app = Celery("agents", broker=stage.broker_url, set_as_current=False)
    app.conf.task_ignore_result = True
    app.send_task(name, args=list(args), queue="release.tasks")
    app.close()


def still_works(stage: LocalStage) -> bool:
    """A sound draft goes through the same processes, which are those that were started."""
    run_id = new_run_id("after")
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    released = stage.outcome(run_id).type == "release_stage.ReleaseSucceeded.v1"
    return released and all(process.running for process in stage.processes)
