"""Messages on the task queue that are no task of the stage: kept whole, and quoted nowhere."""

import json
from collections.abc import Callable

import pytest

from tests.pipeline.cases import disk_draft, event
from tests.pipeline.harness import LocalStage, new_run_id
from tests.pipeline.producers import send_task, still_works


def bare_event(stage: LocalStage, run_id: str) -> None:
    """A CloudEvent on the wrong queue."""
    stage.publish_raw(json.dumps(event(run_id, disk_draft())).encode(), "release.tasks")


def no_json(stage: LocalStage, run_id: str) -> None:
    stage.publish_raw(f"a draft, not JSON ({run_id})".encode(), "release.tasks")


def unknown_name(stage: LocalStage, run_id: str) -> None:
    send_task(stage, "release.submitt", event(run_id, disk_draft()))


SENT: dict[str, Callable[[LocalStage, str], None]] = {
    "a plain event": bare_event,
    "no JSON": no_json,
    "an unknown name": unknown_name,
}


@pytest.mark.scenario("admission", "A message on the task queue that is no task")
@pytest.mark.parametrize("name", SENT)
def test_what_is_no_task_is_kept_and_no_log_quotes_it(stage: LocalStage, name: str) -> None:
    """Celery would log the whole body and drop it; here it is a dead letter with a code."""
    run_id = new_run_id("stray")
    SENT[name](stage, run_id)

    def letters() -> list[str]:
        return [found for found, raw in stage.dead() if run_id.encode() in raw]

    stage.wait_for(letters, "the dead letter")
    assert letters() == ["NOT_A_TASK"]
    assert run_id not in stage.log_text()
    assert still_works(stage)
