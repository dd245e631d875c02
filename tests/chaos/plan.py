"""What comes into the chaos: drafts and claims, ill judges and cancels, all from one seed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any

from contracts.messages import DraftReady, ExecutorOutputReady
from tests.chaos.kinds import KINDS, Kind
from tests.pipeline.cases import draft_ready
from tests.pipeline.claimed import output_ready
from worker.offline.judge_script import (
    Behaviour,
    close,
    content,
    hang,
    reset,
    rules,
    status,
    trickle,
)

CANCELLED = "CANCELLED"

CANCEL_SHARE = 0.2
EARLY_SHARE = 0.15
"""Cancels that come before their draft or their claims."""
AGAIN_SHARE = 0.05
PLAIN_SHARE = 0.3


class Way(StrEnum):
    """How drafts and claims are submitted."""

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
class Plan:
    """One run. ``cancel_after`` is in seconds from its submission; negative ones come before.

    ``evidence_after`` is in seconds from the request.
    """

    run_id: str
    kind: Kind
    judge: tuple[Behaviour, ...]
    changes: dict[str, Any]
    way: Way
    again: bool
    cancel: Cancel | None
    cancel_after: float
    evidence_after: float

    def message(self) -> DraftReady | ExecutorOutputReady:
        """The message of the draft or the claims. A deadline counts from now."""
        changes = dict(self.changes)
        if "deadline" in changes:
            changes["deadline"] = datetime.now(UTC) + timedelta(seconds=changes["deadline"])
        if self.kind.claims:
            return output_ready(self.run_id, self.kind.written(), **changes)
        return draft_ready(self.run_id, self.kind.written(), **changes)

    def evidence(self) -> ExecutorOutputReady | None:
        """The answer to a request for evidence; None if the agent leaves it unanswered."""
        if self.kind.evidence is None:
            return None
        query = f"Why does checkout still fail? ({self.run_id} again)"
        return output_ready(self.run_id, self.kind.evidence(), round=1, query=query)

    @property
    def endings(self) -> frozenset[str]:
        """What the run may end as: what was written deserves, or less because of a fault."""
        # A check or a publish may be killed three times in a row.
        found = {*self.kind.endings, "PROCESSING_FAILED"}
        return frozenset(found | {CANCELLED} if self.cancel else found)


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
    """Plan this many runs. ``plain`` tells that the broker may also be trusted alone."""
    random = Random(seed)
    for number in range(runs):
        (kind,) = random.choices(KINDS, [kind.weight for kind in KINDS])
        if number < len(KINDS):
            kind = KINDS[number]  # even a short chaos has each kind
        (fault,) = random.choices([one for _, one in FAULTS], [weight for weight, _ in FAULTS])
        faults = fault(random) if kind.reviewed else ()
        run_id = f"chaos-{seed}-{number:06}"
        first = (*kind.scripted, *_without(faults, kind))
        # The question of round 0 alone has the run's id in brackets.
        marker = f"({run_id})" if kind.claims else run_id
        trusted = plain and random.random() < PLAIN_SHARE
        cancelled = random.random() < CANCEL_SHARE
        early = random.random() < EARLY_SHARE
        yield Plan(
            run_id=run_id,
            kind=kind,
            judge=(*(one.on(run_id) for one in first), *(one.on(marker) for one in kind.then)),
            changes=kind.changes(random),
            way=random.choice((Way.PLAIN, Way.TASK)) if trusted else Way.CLIENT,
            again=random.random() < AGAIN_SHARE,
            cancel=random.choice(tuple(Cancel)) if cancelled else None,
            cancel_after=-1.0 if early else random.expovariate(2.0),
            evidence_after=random.uniform(*kind.evidence_after),
        )


def _without(faults: tuple[Behaviour, ...], kind: Kind) -> tuple[Behaviour, ...]:
    """Leave out faults that end in the rules' answer, where another answer is to come."""
    if not kind.then:
        return faults
    return tuple(one for one in faults if one.name not in ("rules", "trickle"))
