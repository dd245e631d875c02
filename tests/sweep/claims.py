"""The same for claims: one run per ending of the second protocol."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from contracts.messages import ExecutorOutputReady
from tests.pipeline.claimed import GAP, INFERRED, MADE_UP, OBSERVED, answer, document, output_ready
from tests.sweep.cases import RELEASED, Case
from tests.sweep.lane import Lane
from worker.offline.judge_script import status

EVIDENCE_DEADLINE = 8.0
"""Seconds; less the reserve, a run waits that long for the evidence that it asked for."""

_DOUBTED = document(evidence_gaps=[GAP])
_DOUBTS = answer(_DOUBTED, "unsupported", "reasonable_inference", verdict="LOW_CONFID").always()
_HELD = document(OBSERVED, INFERRED)
_CONTRADICTS = answer(_HELD, "contradicted", "reasonable_inference").always()
_UNSURE = answer(
    _HELD, "direct_observation", "reasonable_inference", groundedness_score=0.4
).always()
_VERIFIER_LOST = frozenset({"PRE_VERIFICATION"})


def _claims(output: Any, **changes: Any) -> Callable[[str], ExecutorOutputReady]:
    return lambda run_id: output_ready(run_id, output, **changes)


def _waiting(run_id: str) -> ExecutorOutputReady:
    deadline = datetime.now(UTC) + timedelta(seconds=EVIDENCE_DEADLINE)
    return output_ready(run_id, _DOUBTED, deadline=deadline)


def _answer_when_asked(lane: Lane, run_id: str) -> bool:
    """Answer the request for evidence; an ended run waits for none."""
    run = lane.run(run_id)
    if run is None or not (run.waits_for_evidence or run.ending is not None):
        return False
    if run.ending is None:
        lane.submit(output_ready(run_id, _DOUBTED, round=1))
    return True


ENDINGS = (
    Case("claims that hold", RELEASED, _claims(_HELD)),
    Case("claims at second attempt", RELEASED, _claims(_HELD), (status(503),), also=_VERIFIER_LOST),
    Case("claims in doubt", "LOW_CONFIDENCE", _claims(_HELD), (_UNSURE,)),
    Case("claims contradicted", "CLAIMS_REJECTED", _claims(_HELD), (_CONTRADICTS,)),
    Case("claims made up", "PRE_VERIFICATION", _claims(document(MADE_UP))),
    Case("claims without verifier", "PRE_VERIFICATION", _claims(_HELD), (status(503).always(),)),
    Case(
        "evidence comes", "LOW_CONFIDENCE", _claims(_DOUBTED), (_DOUBTS,), then=_answer_when_asked
    ),
    Case(
        "evidence stays away",
        "LOW_CONFIDENCE",
        _waiting,
        (_DOUBTS,),
        also=frozenset({"DEADLINE_EXCEEDED"}),
        timed=True,
    ),
)
