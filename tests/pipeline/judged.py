"""One draft through the real stage, and everything that it came to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from contracts.envelope import Envelope
from contracts.evidence import InvocationRecord
from contracts.messages import DraftReady
from tests.pipeline.cases import disk_records, draft_ready
from tests.pipeline.harness import LocalStage, new_run_id
from tests.strategies import record, stored
from worker.offline.judge_log import Received
from worker.offline.judge_script import Behaviour
from worker.run.state import Attempt, Run
from worker.run.steps import Step, StepRef


@dataclass(frozen=True)
class Judged:
    """A run's end: its record, its one outgoing message, and the calls that the judge saw."""

    run: Run
    outcome: Envelope
    calls: list[Received]

    @property
    def ending(self) -> str:
        return str(self.run.ending)

    @property
    def fallback(self) -> dict[str, Any]:
        assert self.outcome.type == "release_stage.ReleaseFallback.v1", self.outcome.type
        fallback = self.outcome.data["fallback"]
        assert isinstance(fallback, dict)
        return fallback

    def attempt(self, step: Step, number: int = 1) -> Attempt:
        return self.run.attempt(StepRef(0, step, number))

    def outcomes(self, step: Step) -> list[str]:
        """What each attempt at a step came to, in order."""
        made = [self.attempt(step, number) for number in (1, 2, 3)]
        return [str(attempt.outcome) for attempt in made if attempt.grants]


def submitted(
    stage: LocalStage,
    draft: Any,
    *behaviours: Behaviour,
    run_id: str = "",
    records: Iterable[InvocationRecord] | None = None,
    **changes: Any,
) -> str:
    """Submit a draft with its records, and the judge's behaviours towards it; returns the run id.

    The judge tells runs apart by their id, which stands in the query.
    """
    run_id = run_id or new_run_id()
    stage.judge.add(*(one.on(run_id) for one in behaviours))
    stage.record(*(disk_records(run_id) if records is None else records))
    ready: DraftReady = draft_ready(run_id, draft, **changes)
    return stage.submit(ready)


def judged(stage: LocalStage, run_id: str) -> Judged:
    """Wait for the end of a run."""
    outcome = stage.outcome(run_id)
    return Judged(stage.ended(run_id), outcome, stage.judge.asked_about(run_id))


def judge(stage: LocalStage, draft: Any, *behaviours: Behaviour, **changes: Any) -> Judged:
    """Submit a draft and wait for its end; see :func:`submitted`."""
    return judged(stage, submitted(stage, draft, *behaviours, **changes))


def tool_record(run_id: str, tool: str, call_id: str, **changes: Any) -> InvocationRecord:
    """Build a record of any built-in tool, as ``tests.strategies.record`` does."""
    document = record(tool, run_id=run_id, tool_call_id=call_id, **changes)
    return InvocationRecord.model_validate_json(stored(document))
