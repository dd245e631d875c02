"""The decision: what the record calls for is written and released in one commit."""

from worker.run.events import Answer, Published
from worker.run.steps import StepRef
from worker.stage.engine import Report, Stage, apply, claim, not_granted, report


def publish(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """End the run. A cancel before this commit wins; one after it changes nothing."""
    claimed = claim(stage, run_id, ref)
    if claimed.answer is not Answer.GRANTED:
        return not_granted(claimed, ref)
    return report(apply(stage, run_id, Published(ref), known=claimed.stored))
