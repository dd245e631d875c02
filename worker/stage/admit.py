"""Admission: a message becomes a run, a repeat, a cancellation, or is kept as a dead letter."""

import logging
from datetime import UTC, datetime

from contracts.envelope import wrap
from contracts.messages import CancelRun, DraftReady, DraftRejected, ExecutorOutputReady
from worker.ports import OutgoingMessage, SendFailed
from worker.run.draft_path import ROUND
from worker.run.events import Admitted, Answer
from worker.run.path import hand_on
from worker.run.state import Protocol
from worker.run.steps import message_id
from worker.stage.blobs import RoundBlobs
from worker.stage.cancel import cancel
from worker.stage.engine import Stage, apply
from worker.stage.submission import Received, Refused, receive

log = logging.getLogger("release_stage")


def admit(stage: Stage, raw: bytes, origin: str) -> str:
    """Take one message in, from whichever way it came; returns a code.

    Whatever cannot be admitted is parked whole with its reason, and answered when
    somebody said where. Raises StoreUnavailable or SendFailed when nothing could be
    decided or kept: the message then must not be acknowledged.
    """
    try:
        received = receive(raw, stage.limits.message_bytes)
    except Refused as refused:
        return _refuse(stage, raw, refused, origin)
    try:
        match received.data:
            case CancelRun(run_id=run_id):
                code = cancel(stage, run_id).code
            case DraftReady() as message:
                code = _open(stage, received, message, raw, Protocol.DRAFT, ROUND)
            case ExecutorOutputReady() as message:
                code = _open(stage, received, message, raw, Protocol.CLAIMS, message.round)
    except Refused as refused:
        code = _refuse(stage, raw, refused, origin)
    stage.inbox.taken(received.envelope.id)
    return code


def _open(
    stage: Stage,
    received: Received,
    message: DraftReady | ExecutorOutputReady,
    raw: bytes,
    protocol: Protocol,
    round_: int,
) -> str:
    stored = stage.records.load(message.run_id)
    sent_at = received.envelope.time.timestamp()
    limits = stage.limits
    if sent_at < stored.now() - limits.longest_deadline:
        raise Refused("TOO_OLD", run_id=message.run_id, reply_to=message.reply_to)
    if sent_at > stored.now() + limits.clock_ahead:
        raise Refused("AHEAD_OF_TIME", run_id=message.run_id, reply_to=message.reply_to)
    wanted = message.deadline.timestamp() if message.deadline else sent_at + limits.default_deadline
    event = Admitted(
        run_id=message.run_id,
        key=f"{type(message).__name__}/{round_}",
        protocol=protocol,
        round=round_,
        sha256=received.sha256,
        session_id=message.session_id,
        deadline_at=min(wanted, sent_at + limits.longest_deadline),
        locale=message.locale,
        reply_to=message.reply_to,
        budget=message.budget,
    )
    applied = apply(
        stage, message.run_id, event, write={RoundBlobs(round_).input: raw}, known=stored
    )
    if applied.answer is Answer.CONFLICT:
        raise Refused("CONFLICTING_REPEAT", run_id=message.run_id, reply_to=message.reply_to)
    run = applied.run
    step = None if run is None else hand_on(run, stage.policy)
    if run is not None and step is not None:
        stage.dispatcher.dispatch(run, step)
    return applied.answer.value


def _refuse(stage: Stage, raw: bytes, refused: Refused, origin: str) -> str:
    reason = ",".join(refused.reasons)
    log.warning("message refused reason=%s bytes=%d", reason, len(raw))
    stage.sender.park(raw, reason, origin)
    if refused.run_id is not None and refused.reply_to is not None:
        _answer(stage, refused.run_id, refused.reply_to, refused.reasons)
    return "REFUSED"


def _answer(stage: Stage, run_id: str, reply_to: str, reasons: tuple[str, ...]) -> None:
    rejected = DraftRejected(run_id=run_id, reasons=reasons)
    id_ = message_id(run_id, f"{rejected.TYPE}:{','.join(reasons)}", ROUND)
    body = wrap(rejected, message_id=id_, time=datetime.now(UTC))
    try:
        stage.sender.send(OutgoingMessage(run_id, id_, rejected.TYPE, body, reply_to))
    except SendFailed as error:
        log.warning("rejection not delivered run_id=%s error=%s", run_id, error)
