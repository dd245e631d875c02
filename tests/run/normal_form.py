"""The normal form of a record: its clock reads zero, and only what decisions read is kept."""

import math
from typing import Any

from worker.run.outcomes import RETRYABLE, AttemptOutcome
from worker.run.path import next_step
from worker.run.policy import Policy
from worker.run.state import Attempt, Run
from worker.run.steps import MODEL_STEPS, Step

_TRIED_TWICE = frozenset({Step.REVIEW_SEMANTICS, Step.VERIFY_CLAIMS})


def normal_form(run: Run | None, now: float, policy: Policy) -> Run | None:
    """Shift all times so that ``now`` is zero, and drop those that nothing reads again.

    A lease or a wait that is over is over at zero, whenever it ended; a wait beyond the
    deadline ends there. Of an ended attempt the outcome is kept, and how long one took
    that may be tried again; of an ended run what was started and what it is still owed in
    usage. Of a request for evidence it is kept that there was one, and the wait for its
    answer while it lasts.
    """
    if run is None:
        return None
    ended = run.ending is not None
    update: dict[str, Any] = {
        "opened_at": None if run.opened_at is None else 0.0,
        "deadline_at": 0.0 if ended or run.opened_at is None else run.deadline_at - now,
        "cancelled_at": None if run.cancelled_at is None else 0.0,
        "ended_at": 0.0 if ended else None,
        "resend_at": None,
        "resends": 0,
        "evidence_until": None if run.evidence_until is None else 0.0,
        "attempts": {
            key: _attempt(attempt, Step(key.split(".")[1]), now, ended)
            if int(key.split(".")[0]) == run.round or ended
            else _of_an_earlier_round(attempt)
            for key, attempt in sorted(run.attempts.items())
        },
    }
    if run.is_open and run.waits_for_evidence and run.evidence_until is not None:
        update["evidence_until"] = max(run.evidence_until - now, 0.0)
    step = next_step(run, policy)
    if step is not None and run.attempt(step).lease_until is None and run.resend_at is not None:
        waits = min(max(run.resend_at, now), run.deadline_at)
        longest = math.ceil(math.log2(policy.resend_max / policy.resend_first))
        update |= {"resend_at": waits - now, "resends": min(run.resends, longest)}
    return run.model_copy(update=update)


def _attempt(attempt: Attempt, step: Step, now: float, run_ended: bool) -> Attempt:
    started = min(attempt.grants, 1)
    if run_ended:
        return Attempt(grants=started, settled=attempt.settled)
    if attempt.outcome is None:
        claimed_at = attempt.claimed_at if step in MODEL_STEPS else None
        lease = attempt.lease_until
        return attempt.model_copy(
            update={
                "claimed_at": None if claimed_at is None else claimed_at - now,
                "lease_until": None if lease is None else max(lease - now, 0.0),
            }
        )
    kept: dict[str, Any] = {
        "grants": started,
        "claimed_at": None,
        "ended_at": None,
        "retry_at": None,
        "deadline_bound": False,
    }
    again = step in _TRIED_TWICE and attempt.outcome in RETRYABLE
    if again and attempt.claimed_at is not None:
        # How long it took is what the second attempt does not get.
        ended_at = attempt.claimed_at if attempt.ended_at is None else attempt.ended_at
        lost = attempt.outcome is AttemptOutcome.LOST
        took = attempt.timeout or 0.0 if lost else ended_at - attempt.claimed_at
        kept |= {"claimed_at": -took, "ended_at": 0.0, "timeout": took if lost else None}
    else:
        kept["timeout"] = None
    return attempt.model_copy(update=kept)


def _of_an_earlier_round(attempt: Attempt) -> Attempt:
    """What it cost, and that it is done; a round begins only when the one before is through."""
    return Attempt(
        grants=min(attempt.grants, 1),
        outcome=AttemptOutcome.LOST,
        charged=attempt.charged,
        settled=attempt.settled,
    )


def steps_of_the_clock(run: Run | None) -> tuple[float, ...]:
    """The next moment at which something is over: a call's time, a lease, a wait, the deadline.

    For a record in normal form; empty when nothing is waited for.
    """
    if run is None or not run.is_open:
        return ()
    moments = [run.deadline_at]
    if run.resend_at is not None:
        moments.append(run.resend_at)
    if run.waits_for_evidence and run.evidence_until is not None:
        moments.append(run.evidence_until)
    for attempt in run.attempts.values():
        if attempt.outcome is None and attempt.lease_until is not None:
            moments.append(attempt.lease_until)
            if attempt.timeout is not None and attempt.claimed_at is not None:
                moments.append(attempt.claimed_at + attempt.timeout)
    ahead = [moment for moment in moments if moment > 0]
    return (min(ahead),) if ahead else ()
