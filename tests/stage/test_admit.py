"""Admission as a use case: what is written, enqueued, answered and kept, and in which trouble."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.envelope import Envelope, wrap
from contracts.messages import CancelRun
from tests.pipeline.cases import disk_draft, draft_ready
from tests.stage.conftest import House
from worker.ports import SendFailed, StoreUnavailable
from worker.run.steps import Step, StepRef
from worker.stage.admit import admit
from worker.stage.blobs import INPUT

RUN = "run-1"
REPLY = "release.reply.me"
CHECK = StepRef(0, Step.CHECK_EVIDENCE, 1)


def message(house: House, *, sent: float = 0.0, id_: str = "m-1", **changes: Any) -> bytes:
    """A draft's message, sent so many seconds from the house's now."""
    at = datetime.fromtimestamp(house.now + sent, UTC)
    return wrap(draft_ready(RUN, disk_draft(), **changes), message_id=id_, time=at)


def deadline(house: House) -> float:
    """Seconds from now to the run's deadline."""
    run = house.records.load(RUN).run
    assert run is not None
    return run.deadline_at - house.now


def test_a_draft_is_written_raw_and_its_first_step_enqueued(house: House) -> None:
    """The very bytes are kept, since only they can be read strictly later."""
    raw = message(house)
    house.inbox.put("m-1", raw, house.now)
    assert admit(house.stage, raw, "queue") == "OPENED"
    assert house.records.load(RUN, (INPUT,)).blobs == {INPUT: raw}
    assert house.dispatcher.dispatched == [(RUN, CHECK)]
    assert not house.store.inbox
    assert not house.sender.parked


@pytest.mark.parametrize(
    ("sent", "wanted", "left"),
    [
        (0, None, 900),
        (-600, None, 300),
        (0, 60, 60),
        (0, 100_000, 21_600),
        (-600, 100_000, 21_000),
    ],
)
def test_a_deadline_counts_from_the_messages_time_and_is_bounded(
    house: House, sent: float, wanted: float | None, left: float
) -> None:
    """So a message that waited has less time left, and nobody can ask for ever."""
    changes: dict[str, Any] = {}
    if wanted is not None:
        changes["deadline"] = datetime.fromtimestamp(house.now + wanted, UTC)
    admit(house.stage, message(house, sent=sent, **changes), "queue")
    assert deadline(house) == pytest.approx(left)


def test_a_draft_past_its_deadline_is_answered_at_once(house: House) -> None:
    """It is opened and aborted in one write; no step is enqueued."""
    past = datetime.fromtimestamp(house.now - 1, UTC)
    assert admit(house.stage, message(house, deadline=past), "queue") == "ENDED"
    assert house.dispatcher.dispatched == []
    (sent,) = house.sender.sent
    envelope = Envelope.model_validate_json(sent.body)
    assert envelope.data["reason"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize(
    ("sent", "reason"), [(-21_601, "TOO_OLD"), (61, "AHEAD_OF_TIME"), (-21_599, ""), (59, "")]
)
def test_a_time_out_of_range_is_refused(house: House, sent: float, reason: str) -> None:
    """Older than the longest deadline, its run may have expired; so it could be released twice."""
    code = admit(house.stage, message(house, sent=sent), "queue")
    assert [parked.reason for parked in house.sender.parked] == ([reason] if reason else [])
    assert (code == "REFUSED") == bool(reason)


def test_a_repeat_hands_on_and_a_conflict_is_kept(house: House) -> None:
    """Data decides, not the envelope around it."""
    admit(house.stage, message(house), "queue")
    assert admit(house.stage, message(house, id_="m-2", sent=1), "queue") == "REPEATED"
    assert house.dispatcher.dispatched == [(RUN, CHECK)] * 2
    other = message(house, id_="m-3", query="Something else?", reply_to=REPLY)
    assert admit(house.stage, other, "queue") == "REFUSED"
    assert house.dispatcher.dispatched == [(RUN, CHECK)] * 2
    (parked,) = house.sender.parked
    assert (parked.raw, parked.reason, parked.origin) == (other, "CONFLICTING_REPEAT", "queue")
    (answer,) = house.sender.sent
    assert answer.reply_to == REPLY


def test_a_broker_that_is_away_leaves_a_run_that_the_repeat_starts(house: House) -> None:
    """The message is not acknowledged, so it comes again."""
    house.dispatcher.away = True
    with pytest.raises(SendFailed):
        admit(house.stage, message(house), "queue")
    house.dispatcher.away = False
    assert admit(house.stage, message(house), "queue") == "REPEATED"
    assert house.dispatcher.dispatched == [(RUN, CHECK)]


@pytest.mark.parametrize("sound", [True, False])
def test_a_store_or_broker_that_is_away_decides_nothing(house: House, sound: bool) -> None:
    """Neither admitted nor kept: whoever brought the message must bring it again."""
    raw = message(house) if sound else b"no JSON"
    house.store.away = sound
    house.sender.away = not sound
    with pytest.raises(StoreUnavailable if sound else SendFailed):
        admit(house.stage, raw, "queue")
    assert not house.sender.parked
    assert not house.store.rows


def test_a_refusal_that_cannot_be_answered_is_kept_all_the_same(house: House) -> None:
    """The sender named a queue that never takes a message."""
    house.sender.gone.add(REPLY)
    raw = message(house, sent=-30_000, reply_to=REPLY)
    assert admit(house.stage, raw, "queue") == "REFUSED"
    assert [parked.raw for parked in house.sender.parked] == [raw]


def test_a_refusal_is_always_answered_under_one_id(house: House) -> None:
    """A message that is refused twice gives one answer, however often it is sent."""
    raw = message(house, sent=-30_000, reply_to=REPLY)
    for _ in range(2):
        admit(house.stage, raw, "queue")
    first, second = house.sender.sent
    assert first.message_id == second.message_id


@pytest.mark.parametrize("marked_first", [True, False])
def test_a_cancel_and_its_draft_come_in_any_order(house: House, marked_first: bool) -> None:
    """Either way there is one ending, CANCELLED, and one message."""
    now = datetime.fromtimestamp(house.now, UTC)
    cancel = wrap(CancelRun(run_id=RUN), message_id="c-1", time=now)
    messages = [cancel, message(house)] if marked_first else [message(house), cancel]
    for raw in messages:
        admit(house.stage, raw, "queue")
    run = house.records.load(RUN).run
    assert run is not None
    assert str(run.ending) == "CANCELLED"
    assert len(house.sender.sent) == 1
    assert house.store.closed_calls == [RUN]
