"""A stage that only watches."""

import json
from pathlib import Path

import pytest

from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import local_stage, new_run_id
from worker.offline.processes import wait_until


@pytest.mark.scenario("delivery", "A stage that only watches")
def test_a_shadow_tells_its_endings_to_nobody_else(tmp_path: Path) -> None:
    """The ending is decided and recorded as ever, and lies in a queue of its own."""
    run_id, reply = new_run_id(), "release.reply.shadowed"
    with local_stage(tmp_path, settings={"RELEASE_SHADOW": "true"}) as stage:
        stage.worker("watcher", concurrency=1)
        stage.record(*disk_records(run_id))
        stage.submit(draft_ready(run_id, disk_draft(), reply_to=reply))
        assert str(stage.ended(run_id).ending) == "SUCCEEDED"
        wait_until(lambda: stage.redis.llen("release.shadow"), 10, "the shadow's ending")
        (watched,) = stage.redis.lrange("release.shadow", 0, -1)
        assert json.loads(watched)["headers"]["run_id"] == run_id
        assert stage.redis.llen("release.results") == 0
        assert stage.redis.llen(reply) == 0
