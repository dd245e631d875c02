"""One run per ending: what comes in, what the judge does, how it ends, what a crash may cost."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from contracts.messages import Budget, DraftReady, ExecutorOutputReady
from tests.pipeline.cases import disk_draft, draft_ready
from tests.sweep.lane import Lane
from worker.offline.judge_script import Behaviour, content, hang, status, verdict

RELEASED = "SUCCEEDED"
DEADLINE = 1.5
"""Seconds; less than an attempt may take, so that the deadline ends the call."""


@dataclass(frozen=True)
class Case:
    """``also`` are the endings that a crash may make of ``ending``; never a release of another.

    ``judge`` are its behaviours towards the run. ``then`` is tried again and again until it
    tells that it did what happens to the run meanwhile. ``crashes`` are points at which the
    run's processes die in any case, before the sweep adds one of its own. ``roles`` are the
    processes whose points are swept. In a ``timed`` case a deadline decides which of its
    points a run reaches, so that some may be missed.
    """

    name: str
    ending: str
    message: Callable[[str], DraftReady | ExecutorOutputReady]
    judge: tuple[Behaviour, ...] = ()
    also: frozenset[str] = frozenset()
    crashes: tuple[str, ...] = ()
    then: Callable[[Lane, str], bool] | None = None
    roles: tuple[str, ...] = ("worker", "child", "relay")
    timed: bool = False


def _sound(run_id: str, **changes: Any) -> DraftReady:
    return draft_ready(run_id, disk_draft(), **changes)


def _broken_reference(run_id: str) -> DraftReady:
    draft = disk_draft()
    draft["analyses"][0]["tool_call_ids"] = ["call-nowhere"]
    return draft_ready(run_id, draft)


def _unconcluded(run_id: str, **changes: Any) -> DraftReady:
    draft = {**disk_draft(), "conclusion": None, **changes}
    return draft_ready(run_id, draft)


def _nothing_cited(run_id: str, **changes: Any) -> DraftReady:
    return _unconcluded(run_id, analyses=[], action_plan=[], **changes)


def _cancel_when_asked(lane: Lane, run_id: str) -> bool:
    if not lane.judge.asked_about(run_id):
        return False
    lane.client.cancel_run(run_id)
    return True


def _soon_over(run_id: str) -> DraftReady:
    return _sound(run_id, deadline=datetime.now(UTC) + timedelta(seconds=DEADLINE))


_PROGRESS = {"completed_tool_call_ids": ["call-df"]}
_MENDED = content(json.dumps(disk_draft()))
_ALTERED = content(json.dumps({**disk_draft(), "limitations": ["Another text."]}))
_REPAIR_LOST = frozenset({"EVIDENCE_VALIDATION_FAILED"})
_REVIEW_LOST = frozenset({"SEMANTIC_UNAVAILABLE"})

STRAIGHT = Case("straight path", RELEASED, _sound)
REPAIR = Case("repair", RELEASED, _broken_reference, (_MENDED,), also=_REPAIR_LOST)
SECOND_ATTEMPT = Case("second attempt", RELEASED, _sound, (status(503),), also=_REVIEW_LOST)
LEFT_TO_THE_RELAY = Case(
    "left to the relay",
    RELEASED,
    _sound,
    crashes=("child before send to results #1",),
    roles=("relay",),
)
"""The process that released the run dies before it sends; the relay sends, and dies too."""

ENDINGS = (
    STRAIGHT,
    REPAIR,
    SECOND_ATTEMPT,
    LEFT_TO_THE_RELAY,
    Case("asked to wait", RELEASED, _sound, (status(429, retry_after=1.0),), also=_REVIEW_LOST),
    Case("with a reply", RELEASED, lambda run_id: _sound(run_id, reply_to="release.reply.swept")),
    Case(
        "controlled stop",
        "INSUFFICIENT_EVIDENCE",
        lambda run_id: _sound(
            run_id, stop={"reason": "INFORMATION_SATURATION"}, progress=_PROGRESS
        ),
    ),
    Case(
        "unreadable with progress",
        "INSUFFICIENT_EVIDENCE",
        lambda run_id: draft_ready(run_id, "no draft", progress=_PROGRESS),
    ),
    Case(
        "unreadable",
        "EVIDENCE_VALIDATION_FAILED",
        lambda run_id: draft_ready(run_id, "no draft"),
    ),
    Case("no conclusion", "INSUFFICIENT_EVIDENCE", _unconcluded),
    Case(
        "missing context",
        "MISSING_REQUIRED_CONTEXT",
        lambda run_id: _nothing_cited(run_id, missing_context=["Which host?"]),
    ),
    Case("nothing at all", "INSUFFICIENT_EVIDENCE", _nothing_cited),
    Case("altered by the repair", "EVIDENCE_VALIDATION_FAILED", _broken_reference, (_ALTERED,)),
    Case("unsupported", "SEMANTIC_UNSUPPORTED", _sound, (verdict("UNSUPPORTED").always(),)),
    Case("unavailable", "SEMANTIC_UNAVAILABLE", _sound, (status(503).always(),)),
    Case(
        "cancelled",
        "CANCELLED",
        _sound,
        (hang().always(),),
        also=_REVIEW_LOST,
        then=_cancel_when_asked,
    ),
    Case(
        "no budget",
        "BUDGET_EXHAUSTED",
        lambda run_id: _sound(run_id, budget=Budget(model_calls=0)),
    ),
    Case("deadline", "DEADLINE_EXCEEDED", _soon_over, (hang().always(),), timed=True),
    Case(
        "started four times",
        "PROCESSING_FAILED",
        _sound,
        crashes=tuple(
            # Three starts are granted; a claim that comes to a stale record is tried again.
            f"child after commit 0.check_evidence.1 claimed #{number}"
            for number in range(1, 8)
        ),
    ),
)
