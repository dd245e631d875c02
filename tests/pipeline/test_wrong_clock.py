"""A sender whose clock is wrong: Redis time decides, not the sender's."""

from datetime import UTC, datetime, timedelta

import pytest
from freezegun import freeze_time

from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import LocalStage, new_run_id


@pytest.mark.scenario("admission", "A sender whose clock is wrong")
@pytest.mark.parametrize(
    ("off", "reason"),
    [(timedelta(hours=-7), "TOO_OLD"), (timedelta(minutes=5), "AHEAD_OF_TIME")],
)
def test_a_draft_from_another_time_is_refused_and_kept(
    quiet: LocalStage, off: timedelta, reason: str
) -> None:
    """The client writes its own time into the message, and the stage does not believe it."""
    run_id = new_run_id()
    quiet.record(*disk_records(run_id))
    with freeze_time(datetime.now(UTC) + off):
        body = quiet.wrapped(draft_ready(run_id, disk_draft()))
    quiet.publish_raw(body)
    assert quiet.dead_letter(body) == reason
    assert quiet.run(run_id) is None
