"""What time and death leave behind: lost attempts, unsent messages, unclaimed steps."""

import logging
from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from worker.ports import InboxEntry, OutboxEntry, SendFailed, StoreUnavailable
from worker.run.events import Answer, Lost, Ticked
from worker.run.path import hand_on, next_step
from worker.run.state import Run
from worker.run.steps import StepRef
from worker.stage.admit import admit
from worker.stage.engine import Report, Stage, apply, report

log = logging.getLogger("release_stage")

_Item = TypeVar("_Item")

BATCH = 100
LONG_QUEUE = 100
"""Waiting steps above which one that nobody claimed is not taken for lost: it only waits."""
OUTBOX_PATIENCE = 5.0
"""Seconds that whoever released a message has to send it before the relay does."""
INBOX_PATIENCE = 30.0
"""Seconds that the broker has to bring a message before the relay admits it."""


def lost(stage: Stage, run_id: str, ref: StepRef, grant: int) -> Report:
    """Record that the process of an attempt is gone. Saying it twice changes nothing.

    Only what really lost something hands on. A step that fails before it claims would
    otherwise be sent again at once, without end; the reconciler sends it again in time.
    """
    applied = apply(stage, run_id, Lost(ref, grant))
    if applied.answer is Answer.RECORDED:
        return report(applied)
    return Report(Answer.REFUSED, "NOTHING_LOST", applied.run)


def reconcile(stage: Stage) -> int:
    """Look at every run whose time has come; returns how many were looked at."""
    run_ids = stage.records.due(BATCH)
    queue_is_long = cache(lambda: stage.dispatcher.waiting() > LONG_QUEUE)
    _one_by_one(run_ids, lambda run_id: _look_after(stage, run_id, queue_is_long))
    return len(run_ids)


def _look_after(stage: Stage, run_id: str, queue_is_long: Callable[[], bool]) -> None:
    applied = apply(stage, run_id, Ticked())
    run = applied.run
    if applied.answer is not Answer.SEND or run is None:
        return
    step = next_step(run, stage.policy)
    if step is None or (_was_sent(stage, run) and queue_is_long()):
        # Each repeat is work as well: a long queue would only grow by it. What is really
        # lost is sent after its next wait.
        return
    stage.dispatcher.dispatch(run, step)


def _was_sent(stage: Stage, run: Run) -> bool:
    """Tell whether somebody sent the next step before, as far as the record knows."""
    if run.resends == 1:
        # After a wait that the provider asked for, this is the first time.
        return hand_on(run, stage.policy) is not None
    return run.resends > 1


def sweep_outbox(stage: Stage) -> int:
    """Send what was released and not yet sent; returns how many entries were handled."""
    entries = stage.outbox.pending(OUTBOX_PATIENCE, BATCH)
    for entry in entries:
        try:
            stage.sender.send(entry.message)
        except SendFailed as error:
            _not_sent(stage, entry, error)
        else:
            stage.outbox.sent(entry.entry_id)
    return len(entries)


def _not_sent(stage: Stage, entry: OutboxEntry, error: SendFailed) -> None:
    """A reply queue may be gone for good; the results queue is tried for ever."""
    tries = stage.outbox.failed(entry.entry_id)
    message = entry.message
    log.warning("not sent run_id=%s tries=%d error=%s", message.run_id, tries, error)
    if message.reply_to and (error.final or tries >= stage.limits.reply_tries):
        stage.sender.park(message.body, "UNDELIVERABLE", message.reply_to)
        stage.outbox.sent(entry.entry_id)


def sweep_inbox(stage: Stage) -> int:
    """Admit what a client stored and no broker brought; returns how many entries there were."""
    entries = stage.inbox.waiting(INBOX_PATIENCE, BATCH)
    _one_by_one(entries, lambda entry: _take_in(stage, entry))
    return len(entries)


def _take_in(stage: Stage, entry: InboxEntry) -> None:
    admit(stage, entry.body, "inbox")
    stage.inbox.taken(entry.key)


def _one_by_one(items: Iterable[_Item], duty: Callable[[_Item], None]) -> None:
    """Do a duty for each item; one that is broken must not keep the others waiting."""
    for item in items:
        try:
            duty(item)
        except (StoreUnavailable, SendFailed):
            raise
        except Exception as error:  # noqa: BLE001 - it is told, and tried again next time
            log.error("left for now error=%s", type(error).__name__)
