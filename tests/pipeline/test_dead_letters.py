"""Dead letters: a person can look at them and put them back."""

import subprocess
import sys

import pytest

from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import LocalStage, new_run_id
from worker.adapters.kombu_sender import KombuSender
from worker.adapters.queues import broker_of


def typed(stage: LocalStage, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", "dead", *words],
        env=stage.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.scenario("admission", "Dead letters looked at and put back")
def test_dead_letters_can_be_listed_and_put_back(breakable: LocalStage) -> None:
    """Looking changes nothing; a letter that is put back is admitted like any message."""
    run_id = new_run_id()
    breakable.record(*disk_records(run_id))
    options = broker_of(breakable.broker_url).connection_options
    body = breakable.wrapped(draft_ready(run_id, disk_draft()))
    KombuSender(breakable.broker_url, options).park(body, "TOO_OLD", "release.drafts")
    for _ in range(2):
        told = typed(breakable)
        assert f"TOO_OLD from release.drafts, {len(body)} bytes" in told
        assert told.endswith("1 dead letters\n")
    assert typed(breakable, "--put-back").endswith("1 dead letters put back\n")
    assert typed(breakable) == "0 dead letters\n"
    breakable.worker("late", concurrency=1)
    assert breakable.outcome(run_id).type == "release_stage.ReleaseSucceeded.v1"
