"""Cancellation: one event, from whichever side it comes."""

from worker.run.events import Cancelled
from worker.stage.engine import Report, Stage, apply, report


def cancel(stage: Stage, run_id: str) -> Report:
    """End a run without a release, or leave a mark for a draft that has not come yet.

    The commit tells every process to close the run's model calls. Of an ended run it
    changes nothing, and the report says so (STANDS).
    """
    return report(apply(stage, run_id, Cancelled(run_id)))
