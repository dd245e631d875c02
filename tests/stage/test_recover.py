"""The relay's duties: what one bad message, queue or record may not do to the others."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from contracts.envelope import wrap
from tests.pipeline.cases import disk_draft, draft_ready
from tests.stage.conftest import House
from worker.ports import OutgoingMessage, SendFailed
from worker.run.state import Run
from worker.run.steps import Step, StepRef
from worker.stage.admit import admit
from worker.stage.engine import claim
from worker.stage.recover import (
    INBOX_PATIENCE,
    OUTBOX_PATIENCE,
    lost,
    reconcile,
    sweep_inbox,
    sweep_outbox,
)

REPLY = "release.reply.me"
CHECK = StepRef(0, Step.CHECK_EVIDENCE, 1)


def released(house: House, run_id: str, reply_to: str = "") -> None:
    """Put one released message into the outbox that nobody has sent."""
    message = OutgoingMessage(run_id, f"id-{run_id}", "type", b"{}", reply_to)
    house.records.commit(
        Run(run_id=run_id),
        house.records.load(run_id).revision,
        due=None,
        blobs={},
        outgoing=[message],
        close_calls=False,
    )


def opened(house: House, run_id: str) -> bytes:
    now = datetime.fromtimestamp(house.now, UTC)
    return wrap(draft_ready(run_id, disk_draft()), message_id=f"m-{run_id}", time=now)


def test_only_what_stayed_behind_is_swept(house: House) -> None:
    """A young entry is still being sent by whoever released it."""
    released(house, "run-1")
    house.now += OUTBOX_PATIENCE - 0.1
    assert sweep_outbox(house.stage) == 0
    house.now += 0.2
    assert sweep_outbox(house.stage) == 1
    assert [message.run_id for message in house.sender.sent] == ["run-1"]
    assert not house.store.outbox


def test_a_reply_queue_that_is_gone_stops_no_other_message(house: House) -> None:
    """It is kept as undeliverable at once; the results behind it are sent."""
    released(house, "run-1", REPLY)
    released(house, "run-2")
    house.sender.gone.add(REPLY)
    house.now += 10
    sweep_outbox(house.stage)
    assert [message.run_id for message in house.sender.sent] == ["run-2"]
    assert [(one.reason, one.origin) for one in house.sender.parked] == [("UNDELIVERABLE", REPLY)]
    assert not house.store.outbox


def test_a_broker_that_is_away_loses_nothing(house: House) -> None:
    """A result is tried for ever; a reply cannot be kept aside either, so it stays as well."""
    released(house, "run-1")
    released(house, "run-2", REPLY)
    house.sender.away = True
    house.now += 10
    for _ in range(3 * house.stage.limits.reply_tries):
        with suppress(SendFailed):
            sweep_outbox(house.stage)
    assert len(house.store.outbox) == 2
    house.sender.away = False
    sweep_outbox(house.stage)
    assert [message.run_id for message in house.sender.sent] == ["run-1", "run-2"]


def test_an_unclaimed_step_is_sent_when_it_is_due(house: House) -> None:
    """Not earlier, and once."""
    admit(house.stage, opened(house, "run-1"), "queue")
    assert reconcile(house.stage) == 0
    house.now += house.stage.policy.resend_first + 1
    assert reconcile(house.stage) == 1
    assert reconcile(house.stage) == 0
    assert house.dispatcher.dispatched == [("run-1", CHECK)] * 2


def test_a_record_that_cannot_be_read_stops_no_other_run(house: House) -> None:
    """Whatever broke one record, the runs behind it are still looked after."""
    for run_id in ("broken", "run-1"):
        admit(house.stage, opened(house, run_id), "queue")
    house.store.rows["broken"].state = b'{"run_id": 7}'
    house.now += house.stage.policy.resend_first + 1
    house.dispatcher.dispatched.clear()
    reconcile(house.stage)
    assert house.dispatcher.dispatched == [("run-1", CHECK)]


def test_an_inbox_entry_is_admitted_when_no_broker_brought_it(house: House) -> None:
    """After its patience, through the same admission, and only once."""
    house.inbox.put("m-run-1", opened(house, "run-1"), house.now)
    house.now += INBOX_PATIENCE - 1
    assert sweep_inbox(house.stage) == 0
    house.now += 2
    assert sweep_inbox(house.stage) == 1
    assert house.dispatcher.dispatched == [("run-1", CHECK)]
    assert not house.store.inbox


def test_an_inbox_entry_that_breaks_admission_stops_no_other(house: House) -> None:
    """Its run's record cannot be read; the entry stays, and the next one is admitted."""
    admit(house.stage, opened(house, "broken"), "queue")
    house.store.rows["broken"].state = b'{"run_id": 7}'
    house.inbox.put("again", opened(house, "broken"), house.now)
    house.inbox.put("m-run-1", opened(house, "run-1"), house.now + 1)
    house.dispatcher.dispatched.clear()
    house.now += INBOX_PATIENCE + 2
    sweep_inbox(house.stage)
    assert house.dispatcher.dispatched == [("run-1", CHECK)]
    assert list(house.store.inbox) == ["again"]


@pytest.mark.parametrize("bad", [b"no JSON", b"[]", b"\xff"])
def test_a_bad_inbox_entry_is_kept_and_stops_no_other(house: House, bad: bytes) -> None:
    """It becomes a dead letter, so that nothing in the inbox stays for ever."""
    house.inbox.put("bad", bad, house.now - 1)
    house.inbox.put("m-run-1", opened(house, "run-1"), house.now)
    house.now += INBOX_PATIENCE + 1
    sweep_inbox(house.stage)
    assert [parked.raw for parked in house.sender.parked] == [bad]
    assert house.dispatcher.dispatched == [("run-1", CHECK)]
    assert not house.store.inbox


def test_only_a_real_loss_hands_on(house: House) -> None:
    """A step that failed before its claim is left to the reconciler, not sent again at once."""
    admit(house.stage, opened(house, "run-1"), "test")
    assert lost(house.stage, "run-1", CHECK, 1).idle
    claim(house.stage, "run-1", CHECK)
    assert not lost(house.stage, "run-1", CHECK, 1).idle
    assert lost(house.stage, "run-1", CHECK, 1).idle
