"""The kinds of drafts and of claims that come into the chaos, and what each may end as.

Faults only ever take a release away: no ending that lets a bad draft or a bad claim out is on
any list.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.pipeline.cases import disk_draft
from tests.pipeline.claimed import GAP, INFERRED, MADE_UP, OBSERVED, answer, document
from worker.offline.judge_script import Behaviour, content, verdict

RELEASED = "SUCCEEDED"


@dataclass(frozen=True)
class Kind:
    """A kind of draft, or of claims.

    ``scripted`` comes first at the judge, ``then`` after its faults; of claims, ``then`` is for
    round 0 only. ``evidence`` makes the claims that answer a request for evidence;
    ``evidence_after`` has the seconds that the agent takes for it, from least to most.
    """

    name: str
    weight: int
    written: Callable[[], Any]
    endings: frozenset[str]
    claims: bool = False
    scripted: tuple[Behaviour, ...] = ()
    then: tuple[Behaviour, ...] = ()
    reviewed: bool = False
    recorded: bool = True
    changes: Callable[[Random], dict[str, Any]] = lambda _: {}
    evidence: Callable[[], Any] | None = None
    evidence_after: tuple[float, float] = (0.0, 0.0)


def _broken_reference() -> Any:
    draft = disk_draft()
    draft["analyses"][0]["tool_call_ids"] = ["call-nowhere"]
    return draft


def _unconcluded() -> Any:
    return {**disk_draft(), "conclusion": None}


_MENDED = content(json.dumps(disk_draft()))
_ALTERED = content(json.dumps({**disk_draft(), "limitations": ["Another text."]}))
_ILL = "SEMANTIC_UNAVAILABLE"
_INVALID = "EVIDENCE_VALIDATION_FAILED"

DRAFTS = (
    Kind("sound", 50, disk_draft, frozenset({RELEASED, _ILL}), reviewed=True),
    Kind(
        "unsupported",
        10,
        disk_draft,
        frozenset({"SEMANTIC_UNSUPPORTED", _ILL}),
        then=(verdict("UNSUPPORTED").always(),),
        reviewed=True,
    ),
    Kind(
        "mended",
        12,
        _broken_reference,
        frozenset({RELEASED, _ILL, _INVALID}),
        scripted=(_MENDED,),
        reviewed=True,
    ),
    Kind("altered", 5, _broken_reference, frozenset({_INVALID}), scripted=(_ALTERED,)),
    Kind("invented evidence", 5, disk_draft, frozenset({_INVALID}), recorded=False),
    Kind("unreadable", 4, lambda: "no draft", frozenset({_INVALID})),
    Kind("no conclusion", 4, _unconcluded, frozenset({"INSUFFICIENT_EVIDENCE"})),
    Kind(
        "stopped",
        3,
        disk_draft,
        frozenset({"INSUFFICIENT_EVIDENCE"}),
        changes=lambda _: {"stop": {"reason": "INFORMATION_SATURATION"}},
    ),
    Kind(
        "short of time",
        4,
        disk_draft,
        frozenset({RELEASED, _ILL, "DEADLINE_EXCEEDED"}),
        reviewed=True,
        changes=lambda random: {"deadline": random.uniform(1.0, 8.0)},
    ),
    Kind(
        "short of budget",
        3,
        disk_draft,
        frozenset({RELEASED, _ILL, "BUDGET_EXHAUSTED"}),
        reviewed=True,
        changes=lambda random: {"budget": {"model_calls": random.randint(0, 1)}},
    ),
)

_DOUBTED = document(evidence_gaps=[GAP])
_DOUBTS = answer(_DOUBTED, "unsupported", "reasonable_inference", verdict="LOW_CONFID").always()
_CONTRADICTS = answer(document(), "contradicted", "reasonable_inference").always()
_UNSURE = answer(
    document(), "direct_observation", "reasonable_inference", groundedness_score=0.4
).always()
_LOW = "LOW_CONFIDENCE"
_UNVERIFIED = "PRE_VERIFICATION"
_LATE = "DEADLINE_EXCEEDED"


def _doubted() -> Any:
    return _DOUBTED


def _made_up() -> Any:
    return document(MADE_UP)


def _within(least: float, most: float) -> Callable[[Random], dict[str, Any]]:
    """A deadline; less the reserve, it ends the wait for evidence, too."""
    return lambda random: {"deadline": random.uniform(least, most)}


CLAIMS = (
    Kind(
        "claims that hold",
        16,
        document,
        frozenset({RELEASED, _UNVERIFIED}),
        claims=True,
        reviewed=True,
    ),
    Kind(
        "claims that hold in part",
        5,
        lambda: document(OBSERVED, INFERRED, MADE_UP),
        frozenset({_LOW, _UNVERIFIED}),
        claims=True,
        reviewed=True,
    ),
    Kind(
        "claims of low confidence",
        4,
        document,
        frozenset({_LOW, _UNVERIFIED}),
        claims=True,
        then=(_UNSURE,),
        reviewed=True,
    ),
    Kind(
        "claims contradicted",
        5,
        document,
        frozenset({"CLAIMS_REJECTED", _UNVERIFIED}),
        claims=True,
        then=(_CONTRADICTS,),
        reviewed=True,
    ),
    Kind("claims made up", 4, _made_up, frozenset({_UNVERIFIED}), claims=True),
    Kind("claims on nothing", 2, document, frozenset({_UNVERIFIED}), claims=True, recorded=False),
    Kind("unreadable claims", 2, lambda: "no claims", frozenset({_UNVERIFIED}), claims=True),
    Kind(
        "evidence comes",
        6,
        _doubted,
        frozenset({RELEASED, _LOW, _UNVERIFIED, _LATE}),
        claims=True,
        then=(_DOUBTS,),
        reviewed=True,
        changes=_within(18.0, 25.0),
        evidence=document,
        evidence_after=(0.0, 2.0),
    ),
    Kind(
        "evidence made up",
        2,
        _doubted,
        frozenset({_LOW, _UNVERIFIED, _LATE}),
        claims=True,
        then=(_DOUBTS,),
        reviewed=True,
        changes=_within(18.0, 25.0),
        evidence=_made_up,
        evidence_after=(0.0, 2.0),
    ),
    Kind(
        "evidence stays away",
        4,
        _doubted,
        frozenset({_LOW, _UNVERIFIED, _LATE}),
        claims=True,
        then=(_DOUBTS,),
        reviewed=True,
        changes=_within(9.0, 13.0),
    ),
    Kind(
        "evidence comes too late",
        3,
        _doubted,
        frozenset({_LOW, _UNVERIFIED, _LATE}),
        claims=True,
        then=(_DOUBTS,),
        reviewed=True,
        changes=_within(9.0, 11.0),
        evidence=document,
        evidence_after=(11.0, 14.0),
    ),
)
"""About a third of all runs; their sound evidence is judged by the rules, whatever round 0 was."""

KINDS = (*DRAFTS, *CLAIMS)
