"""A cancellation while a guard waits for its model, on real workers."""

import json
import time
from typing import Any

import pytest

from tests.pipeline.cases import disk_draft
from tests.pipeline.harness import LocalStage
from tests.pipeline.judged import judged, submitted
from worker.offline.judge_script import Behaviour, content, hang, trickle, verdict
from worker.run.outcomes import AttemptOutcome


def broken_draft() -> dict[str, Any]:
    draft = disk_draft()
    draft["conclusion"]["based_on_analysis_ids"] = ["a9"]
    return draft


@pytest.mark.parametrize(
    ("draft", "slow"),
    [
        (disk_draft(), hang()),
        (disk_draft(), trickle(0.05)),
        (disk_draft(), verdict("SUPPORTED").after(1.5)),
        (broken_draft(), hang()),
        (broken_draft(), content(json.dumps(disk_draft())).after(1.5)),
    ],
    ids=["silent", "trickling", "about to answer", "silent repair", "repair about to answer"],
)
@pytest.mark.scenario("model-boundary", "Cancelled while the model thinks")
@pytest.mark.scenario("release-policy", "Aborted, never a fallback")
def test_a_cancelled_run_closes_its_call_and_releases_nothing(
    stage: LocalStage, draft: dict[str, Any], slow: Behaviour
) -> None:
    """The socket closes at once, the run ends as CANCELLED, and no answer comes too late."""
    run_id = submitted(stage, draft, slow)
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)))
    cancelled_at = time.time()
    stage.client.cancel_run(run_id)
    end = judged(stage, run_id)
    assert end.outcome.type == "release_stage.ReleaseAborted.v1"
    assert end.outcome.data["reason"] == end.ending == "CANCELLED"
    stage.judge.wait(lambda _: all(one.ended for one in stage.judge.asked_about(run_id)))
    (call,) = stage.judge.asked_about(run_id)
    assert call.answered_at is None
    assert call.closed_at is not None
    assert call.closed_at - cancelled_at < 1.0
    verdicts = {AttemptOutcome.SUPPORTED, AttemptOutcome.UNSUPPORTED, AttemptOutcome.REPAIRED}
    assert not verdicts & {attempt.outcome for attempt in end.run.attempts.values()}
