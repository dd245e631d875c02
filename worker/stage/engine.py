"""Read, decide, write, send: the loop that every use case of the stage goes through."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from contracts.fallback import Locale
from worker.guards.tools import AnyProjection
from worker.ports import (
    Dispatcher,
    Inbox,
    Invocations,
    Model,
    Outbox,
    OutboxEntry,
    OutgoingMessage,
    Records,
    Sender,
    SendFailed,
    Stored,
    StoreUnavailable,
)
from worker.run.events import Answer, Claimed, Event
from worker.run.path import due_at
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import EndingKind, Run, Spend
from worker.run.steps import StepRef
from worker.stage.claims_record import evaluate
from worker.stage.outgoing import asks, blobs_needed, render

log = logging.getLogger("release_stage")

_MOST_CONFLICTS = 100


@dataclass(frozen=True)
class Limits:
    """Bounds in bytes, tokens, seconds and tries. Over a bound is an outcome, never a cut."""

    message_bytes: int = 1_048_576
    review_input_bytes: int = 262_144
    repair_input_bytes: int = 262_144
    review_output_bytes: int = 16_384
    repair_output_bytes: int = 262_144
    review_output_tokens: int = 1_024
    verifier_output_bytes: int = 131_072
    verifier_output_tokens: int = 16_384
    repair_output_tokens: int = 32_768
    default_deadline: float = 900.0
    longest_deadline: float = 21_600.0
    clock_ahead: float = 60.0
    reply_tries: int = 5


@dataclass(frozen=True)
class Stage:
    """Everything a use case may touch. Built once per process by the composition root."""

    records: Records
    outbox: Outbox
    inbox: Inbox
    invocations: Invocations
    model: Model
    sender: Sender
    dispatcher: Dispatcher
    tools: Mapping[str, AnyProjection]
    policy: Policy = Policy()
    limits: Limits = Limits()
    locale: Locale = "en"
    shadow: bool = False


@dataclass(frozen=True)
class Applied:
    """What stands after an event, and the answer to it."""

    stored: Stored
    answer: Answer

    @property
    def run(self) -> Run | None:
        return self.stored.run


@dataclass(frozen=True)
class Report:
    """What a step came to: a code fit for logs and Flower, and the run to go on from."""

    answer: Answer
    code: str
    run: Run | None

    @property
    def idle(self) -> bool:
        """Another delivery holds the step, or it is not the run's next: nothing may follow."""
        return self.answer in (Answer.HELD, Answer.REFUSED)


class Contended(Exception):
    """The record changed under us again and again; the step is left to its lease."""


def apply(
    stage: Stage,
    run_id: str,
    event: Event,
    *,
    write: Mapping[str, bytes] | None = None,
    read: Sequence[str] = (),
    known: Stored | None = None,
) -> Applied:
    """Decide one event and write the decision; send at once what it released.

    ``write`` is stored only if the event changed the run itself. ``read`` names blobs
    to load beside the record; ``known`` saves reading again. Raises StoreUnavailable.
    """
    stored = known or stage.records.load(run_id, read)
    for _ in range(_MOST_CONFLICTS):
        decision = decide(stored.run, event, stored.now(), stage.policy)
        run = decision.run
        if run is None or run is stored.run:
            return Applied(stored, decision.answer)
        kept = {} if decision.answer is Answer.STANDS else dict(write or {})
        ends = run.ending is not None and (stored.run is None or stored.run.ending is None)
        outgoing: tuple[OutgoingMessage, ...] = ()
        if ends or asks(stored.run, run):
            blobs = {**stage.records.load(run_id, blobs_needed(run)).blobs, **kept}
            outgoing = render(run, blobs, stage.locale, shadow=stage.shadow)
            kept |= evaluate(run, blobs, stage.policy) if ends else {}
        committed = stage.records.commit(
            run,
            stored.revision,
            due=due_at(run, stage.policy),
            blobs=kept,
            outgoing=outgoing,
            close_calls=ends and run.ending is not None and run.ending.kind is EndingKind.ABORTED,
        )
        if committed is not None:
            if ends:
                log.info("run ended run_id=%s ending=%s", run_id, run.ending)
            deliver(stage, committed.entries)
            now = Stored(run, committed.revision, stored.blobs, stored.redis_time, stored.read_at)
            return Applied(now, decision.answer)
        stored = stage.records.load(run_id, read)
    raise Contended


def claim(
    stage: Stage,
    run_id: str,
    ref: StepRef,
    *,
    spend: Spend | None = None,
    input_sha256: str | None = None,
    prompt: str = "",
    read: Sequence[str] = (),
    known: Stored | None = None,
) -> Applied:
    """Ask to start an attempt, under a name of this delivery's own."""
    event = Claimed(ref, spend=spend, input_sha256=input_sha256, prompt=prompt, holder=uuid4().hex)
    return apply(stage, run_id, event, read=read, known=known)


def not_granted(claimed: Applied, ref: StepRef) -> Report:
    """Tell of an attempt that this delivery may not start: by its outcome, if it has one."""
    outcome = None if claimed.run is None else claimed.run.attempt(ref).outcome
    return report(claimed, None if outcome is None else outcome.value)


def deliver(stage: Stage, entries: Sequence[OutboxEntry]) -> None:
    """Send entries of the outbox at once; what fails is left for the relay."""
    for entry in entries:
        try:
            stage.sender.send(entry.message)
            stage.outbox.sent(entry.entry_id)
        except (SendFailed, StoreUnavailable) as error:
            log.warning(
                "left for the relay run_id=%s error=%s", entry.message.run_id, type(error).__name__
            )


def report(applied: Applied, code: str | None = None) -> Report:
    """Tell a door what an event came to; an ended run is reported by its ending."""
    run = applied.run
    if run is not None and run.ending is not None:
        code = str(run.ending)
    return Report(applied.answer, code or applied.answer.value, run)
