"""The one place that decides what an event does to a run.

Pure: the record, the event, Redis time and the policy go in, the new record and
an answer come out. One script writes the result if the record has not changed
meanwhile; otherwise the caller reads again and decides again. So exploring this
function explores the system.
"""

from contracts.messages import AbortReason
from worker.run.events import (
    Admitted,
    Answer,
    Cancelled,
    Claimed,
    Decision,
    Event,
    Finished,
    Lost,
    Published,
    Ticked,
    Used,
)
from worker.run.model_time import time_left_for
from worker.run.outcomes import AttemptOutcome
from worker.run.path import decide_ending, next_step
from worker.run.policy import Policy
from worker.run.state import Attempt, Ending, EndingKind, Run, Spend
from worker.run.steps import MODEL_STEPS, StepRef

_MOST_DOUBLINGS = 30


def decide(run: Run | None, event: Event, now: float, policy: Policy) -> Decision:
    """Decide one event. ``now`` is Redis time in seconds; ``run`` is None when there is none.

    The first ending wins: once a run has ended, only usage that arrives late is
    still written to it.
    """
    if isinstance(event, Admitted):
        return _admit(run, event, now, policy)
    if isinstance(event, Cancelled):
        return _cancel(run, event, now)
    if run is None or run.opened_at is None:
        refused = Answer.REFUSED if isinstance(event, Claimed) else Answer.UNKNOWN
        return Decision(run, refused)
    match event:
        case Claimed():
            return _claim(run, event, now, policy)
        case Finished():
            return _finish(run, event, now, policy)
        case Lost():
            return _lose(run, event, now, policy)
        case Published():
            return _publish(run, event, now, policy)
        case Ticked():
            return _tick(run, now, policy)


def _admit(run: Run | None, event: Admitted, now: float, policy: Policy) -> Decision:
    if run is not None and run.opened_at is not None:
        return _admit_again(run, event, now, policy)
    if event.round:
        return Decision(run, Answer.CONFLICT)
    opened = Run(
        run_id=event.run_id,
        session_id=event.session_id,
        protocol=event.protocol,
        opened_at=now,
        deadline_at=event.deadline_at,
        locale=event.locale,
        reply_to=event.reply_to,
        budget=event.budget,
        messages={event.key: event.sha256},
        resend_at=now + policy.resend_first,
        cancelled_at=run.cancelled_at if run is not None else None,
    )
    if opened.cancelled_at is not None:
        return Decision(_abort(opened, AbortReason.CANCELLED, now), Answer.ENDED)
    if now >= opened.deadline_at:
        return Decision(_abort(opened, AbortReason.DEADLINE_EXCEEDED, now), Answer.ENDED)
    return Decision(opened, Answer.OPENED)


def _admit_again(run: Run, event: Admitted, now: float, policy: Policy) -> Decision:
    """A message of a run that exists: a repeat, the answer that was asked for, or a conflict."""
    known = run.messages.get(event.key)
    if known is not None:
        return Decision(run, Answer.REPEATED if known == event.sha256 else Answer.CONFLICT)
    asked_for = run.evidence_until is not None and event.round == 1
    if event.protocol is not run.protocol or not asked_for:
        return Decision(run, Answer.CONFLICT)
    run = run.model_copy(update={"messages": {**run.messages, event.key: event.sha256}})
    if not run.is_open or not run.waits_for_evidence:
        return Decision(run, Answer.IGNORED)
    return Decision(_schedule(run.model_copy(update={"round": 1}), now, policy), Answer.CONTINUED)


def _cancel(run: Run | None, event: Cancelled, now: float) -> Decision:
    if run is None:
        return Decision(Run(run_id=event.run_id, cancelled_at=now), Answer.MARKED)
    if run.opened_at is None:
        return Decision(run, Answer.MARKED)
    if run.ending is not None:
        return Decision(run, Answer.STANDS)
    marked = run.model_copy(update={"cancelled_at": now})
    return Decision(_abort(marked, AbortReason.CANCELLED, now), Answer.ENDED)


def _claim(run: Run, event: Claimed, now: float, policy: Policy) -> Decision:
    attempt = run.attempt(event.ref)
    if run.ending is not None:
        return Decision(run, Answer.REFUSED)
    if now >= run.deadline_at:
        return Decision(_abort(run, AbortReason.DEADLINE_EXCEEDED, now), Answer.REFUSED)
    if attempt.outcome is not None:
        return Decision(run, Answer.DONE)
    if attempt.lease_until is not None and now < attempt.lease_until:
        own = event.holder and event.holder == attempt.holder
        return Decision(run, Answer.GRANTED if own else Answer.HELD)
    if event.ref != next_step(run, policy):
        return Decision(run, Answer.REFUSED)
    if event.ref.step in MODEL_STEPS:
        if attempt.grants:
            return Decision(_lost_call(run, event.ref, now, policy), Answer.DONE)
        return _grant_call(run, event, now, policy)
    if attempt.grants >= policy.max_grants:
        return Decision(_abort(run, AbortReason.PROCESSING_FAILED, now), Answer.REFUSED)
    granted = attempt.model_copy(
        update={
            "grants": attempt.grants + 1,
            "claimed_at": now,
            "holder": event.holder,
            "lease_until": now + policy.lease(event.ref.step),
        }
    )
    return Decision(run.with_attempt(event.ref, granted), Answer.GRANTED)


def _grant_call(run: Run, event: Claimed, now: float, policy: Policy) -> Decision:
    spend = event.spend or Spend(model_calls=1)
    if not (run.spent + spend).fits(run.budget):
        return Decision(_abort(run, AbortReason.BUDGET_EXHAUSTED, now), Answer.REFUSED)
    guard_left = min(policy.attempt_timeout, time_left_for(run, event.ref, policy))
    run_left = run.deadline_at - now
    granted = Attempt(
        grants=1,
        claimed_at=now,
        holder=event.holder,
        lease_until=now + policy.lease(event.ref.step),
        timeout=min(guard_left, run_left),
        deadline_bound=run_left < guard_left,
        charged=spend,
        input_sha256=event.input_sha256,
        prompt=event.prompt,
    )
    return Decision(run.with_attempt(event.ref, granted), Answer.GRANTED)


def _finish(run: Run, event: Finished, now: float, policy: Policy) -> Decision:
    attempt = run.attempt(event.ref)
    if not attempt.grants:
        return Decision(run, Answer.REFUSED)
    if run.ending is not None or attempt.outcome is not None:
        return Decision(_settle_late(run, event, attempt), Answer.STANDS)
    outcome = event.outcome
    if outcome is AttemptOutcome.CANCELLED:
        # The call was closed, yet the run is open: whoever closed it did not cancel the run.
        outcome = AttemptOutcome.LOST
    ended = _settled(attempt, event.used).model_copy(
        update={
            "outcome": outcome,
            "ended_at": now,
            "lease_until": None,
            "retry_at": now + event.retry_after if event.retry_after else None,
            "check": event.check,
            "verify": event.verify,
        }
    )
    run = _asking(run.with_attempt(event.ref, ended), event, now, policy)
    if event.retry_after:
        run = run.model_copy(update={"resend_at": now + event.retry_after, "resends": 0})
    else:
        run = _schedule(run, now, policy)
    out_of_time = outcome is AttemptOutcome.TIMEOUT and attempt.deadline_bound
    if out_of_time or now >= run.deadline_at:
        return Decision(_abort(run, AbortReason.DEADLINE_EXCEEDED, now), Answer.ENDED)
    return Decision(run, Answer.RECORDED)


def _asking(run: Run, event: Finished, now: float, policy: Policy) -> Run:
    """Ask for evidence if the verifier wants some, nobody asked before, and there is time."""
    wanted = event.verify is not None and event.verify.wants_evidence
    until = run.deadline_at - policy.evidence_reserve
    may_ask = policy.ask_for_evidence and run.evidence_until is None and until > now
    if not (wanted and may_ask):
        return run
    return run.model_copy(update={"evidence_until": until})


def _lose(run: Run, event: Lost, now: float, policy: Policy) -> Decision:
    attempt = run.attempt(event.ref)
    held = attempt.lease_until is not None and attempt.outcome is None
    if run.ending is not None or not held or attempt.grants != event.grant:
        return Decision(run, Answer.STANDS)
    return Decision(_let_go(run, event.ref, now, policy), Answer.RECORDED)


def _publish(run: Run, event: Published, now: float, policy: Policy) -> Decision:
    if run.ending is not None:
        return Decision(run, Answer.STANDS)
    if event.ref != next_step(run, policy):
        return Decision(run, Answer.REFUSED)
    if now >= run.deadline_at:
        return Decision(_abort(run, AbortReason.DEADLINE_EXCEEDED, now), Answer.ENDED)
    return Decision(_end(run, decide_ending(run, policy), now), Answer.ENDED)


def _tick(run: Run, now: float, policy: Policy) -> Decision:
    if run.ending is not None:
        return Decision(run, Answer.WAIT)
    if now >= run.deadline_at:
        return Decision(_abort(run, AbortReason.DEADLINE_EXCEEDED, now), Answer.ENDED)
    step = next_step(run, policy)
    if step is None:
        return _end_wait(run, now, policy)
    lease_until = run.attempt(step).lease_until
    if lease_until is not None:
        if now < lease_until:
            return Decision(run, Answer.WAIT)
        return Decision(_let_go(run, step, now, policy), Answer.SEND)
    if run.resend_at is not None and now < run.resend_at:
        return Decision(run, Answer.WAIT)
    wait = min(
        policy.resend_first * 2.0 ** min(run.resends + 1, _MOST_DOUBLINGS), policy.resend_max
    )
    again = run.model_copy(update={"resend_at": now + wait, "resends": run.resends + 1})
    return Decision(again, Answer.SEND)


def _end_wait(run: Run, now: float, policy: Policy) -> Decision:
    """The agent did not answer in time: the run goes on with what it has."""
    if run.evidence_until is None or now < run.evidence_until:
        return Decision(run, Answer.WAIT)
    waived = run.model_copy(update={"evidence_waived": True})
    return Decision(_schedule(waived, now, policy), Answer.SEND)


def _let_go(run: Run, ref: StepRef, now: float, policy: Policy) -> Run:
    """Take a lost attempt from whoever held it: a model call is used up, another step is free."""
    if ref.step in MODEL_STEPS:
        return _lost_call(run, ref, now, policy)
    free = run.attempt(ref).model_copy(update={"lease_until": None})
    return _schedule(run.with_attempt(ref, free), now, policy)


def _lost_call(run: Run, ref: StepRef, now: float, policy: Policy) -> Run:
    lost = run.attempt(ref).model_copy(
        update={"outcome": AttemptOutcome.LOST, "ended_at": now, "lease_until": None}
    )
    return _schedule(run.with_attempt(ref, lost), now, policy)


def _settle_late(run: Run, event: Finished, attempt: Attempt) -> Run:
    """A result that comes too late to count still says what it cost."""
    if attempt.settled or event.used is None:
        return run
    return run.with_attempt(event.ref, _settled(attempt, event.used))


def _settled(attempt: Attempt, used: Used | None) -> Attempt:
    if used is None:
        return attempt
    known = {"output_bytes": used.output_bytes, "tokens": used.tokens}
    real = {name: value for name, value in known.items() if value is not None}
    charged = attempt.charged.model_copy(update=real)
    return attempt.model_copy(update={"charged": charged, "settled": len(real) == len(known)})


def _schedule(run: Run, start: float, policy: Policy) -> Run:
    """The next step was or will be sent; look for it if nobody claims it."""
    return run.model_copy(update={"resend_at": start + policy.resend_first, "resends": 0})


def _abort(run: Run, reason: AbortReason, now: float) -> Run:
    return _end(run, Ending(kind=EndingKind.ABORTED, code=reason.value), now)


def _end(run: Run, ending: Ending, now: float) -> Run:
    return run.model_copy(update={"ending": ending, "ended_at": now, "resend_at": None})
