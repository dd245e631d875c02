from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import LocalStage, new_run_id


def test_a_sound_draft_is_released_unchanged(stage: LocalStage) -> None:
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    outcome = stage.outcome(run_id)
    assert outcome.type == "release_stage.ReleaseSucceeded.v1"
    assert outcome.data["draft"] == disk_draft()
