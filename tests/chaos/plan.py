"""What comes into the chaos: drafts of all kinds, ill judges and cancels, all from one seed.

A plan says which endings its run may come to. Faults only ever take a release away: no
ending that lets a bad draft out is on any list.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any

from contracts.messages import DraftReady
from tests.pipeline.cases import disk_draft, draft_ready
from worker.offline.judge_script import (
    Behaviour,
    close,
    content,
    hang,
    reset,
    rules,
    status,
    trickle,
    verdict,
)

RELEASED = "SUCCEEDED"
CANCELLED = "CANCELLED"

CANCEL_SHARE = 0.2
EARLY_SHARE = 0.15
"""Cancels that come before their draft."""
AGAIN_SHARE = 0.05
PLAIN_SHARE = 0.3


class Way(StrEnum):
    """How a draft is submitted."""

    CLIENT = "client"
    PLAIN = "plain"
    TASK = "task"


class Cancel(StrEnum):
    """How a run is cancelled."""

    CLIENT = "client"
    EVENT = "event"
    COMMIT = "commit"
    """The use case itself, as ``release-stage cancel`` calls it: its answer is the commit's."""
    REVOKE = "revoke"
    TERMINATE = "terminate"


@dataclass(frozen=True)
class Kind:
    """A kind of draft. ``scripted`` comes first at the judge, ``then`` after its faults."""

    name: str
    weight: int
    draft: Callable[[], Any]
    endings: frozenset[str]
    scripted: tuple[Behaviour, ...] = ()
    then: tuple[Behaviour, ...] = ()
    reviewed: bool = False
    recorded: bool = True
    changes: Callable[[Random], dict[str, Any]] = lambda _: {}


@dataclass(frozen=True)
class Plan:
    """One run. ``cancel_after`` is in seconds from its submission; negative ones come before."""

    run_id: str
    kind: Kind
    judge: tuple[Behaviour, ...]
    changes: dict[str, Any]
    way: Way
    again: bool
    cancel: Cancel | None
    cancel_after: float

    def message(self) -> DraftReady:
        """The draft's message. A deadline counts from now."""
        changes = dict(self.changes)
        if "deadline" in changes:
            changes["deadline"] = datetime.now(UTC) + timedelta(seconds=changes["deadline"])
        return draft_ready(self.run_id, self.kind.draft(), **changes)

    @property
    def endings(self) -> frozenset[str]:
        """What the run may end as: what its draft deserves, or less because of a fault."""
        # A check or a publish may be killed three times in a row.
        found = {*self.kind.endings, "PROCESSING_FAILED"}
        return frozenset(found | {CANCELLED} if self.cancel else found)


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

KINDS = (
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

FAULTS: tuple[tuple[int, Callable[[Random], tuple[Behaviour, ...]]], ...] = (
    (50, lambda _: ()),
    (20, lambda random: (rules().after(random.uniform(0.1, 1.2)),)),
    (6, lambda _: (status(500),)),
    (3, lambda _: (status(503).repeat(2),)),
    (3, lambda _: (status(429, retry_after=0.5),)),
    (4, lambda _: (hang(),)),
    (2, lambda _: (hang().repeat(2),)),
    (4, lambda random: (trickle(random.choice((0.002, 0.05))),)),
    (3, lambda _: (reset(),)),
    (3, lambda _: (close(20),)),
    (2, lambda _: (content("not what was asked for"),)),
)


def plans(seed: int, runs: int, *, plain: bool) -> Iterator[Plan]:
    """Plan this many runs. ``plain`` tells that the broker may also be trusted with a draft."""
    random = Random(seed)
    for number in range(runs):
        (kind,) = random.choices(KINDS, [kind.weight for kind in KINDS])
        (fault,) = random.choices([one for _, one in FAULTS], [weight for weight, _ in FAULTS])
        faults = fault(random) if kind.reviewed else ()
        run_id = f"chaos-{seed}-{number:06}"
        judge = (*kind.scripted, *_without(faults, kind), *kind.then)
        trusted = plain and random.random() < PLAIN_SHARE
        cancelled = random.random() < CANCEL_SHARE
        early = random.random() < EARLY_SHARE
        yield Plan(
            run_id=run_id,
            kind=kind,
            judge=tuple(one.on(run_id) for one in judge),
            changes=kind.changes(random),
            way=random.choice((Way.PLAIN, Way.TASK)) if trusted else Way.CLIENT,
            again=random.random() < AGAIN_SHARE,
            cancel=random.choice(tuple(Cancel)) if cancelled else None,
            cancel_after=-1.0 if early else random.expovariate(2.0),
        )


def _without(faults: tuple[Behaviour, ...], kind: Kind) -> tuple[Behaviour, ...]:
    """Leave out faults that end in the rules' answer, where another answer is to come."""
    if not kind.then:
        return faults
    return tuple(one for one in faults if one.name not in ("rules", "trickle"))
