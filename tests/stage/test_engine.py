"""Read, decide, write, send: what happens when each of them goes wrong."""

import pytest

from contracts.envelope import Envelope
from contracts.messages import ReleaseAborted
from tests.stage.conftest import House
from tests.stage.test_recover import opened
from worker.ports import StoreUnavailable
from worker.run.events import Cancelled, Published
from worker.run.steps import Step, StepRef, message_id
from worker.stage.admit import admit
from worker.stage.cancel import cancel
from worker.stage.engine import Contended, apply
from worker.stage.publish import publish
from worker.stage.show import show

RUN = "run-1"
PUBLISH = StepRef(0, Step.PUBLISH, 1)


def test_an_ending_that_cannot_be_sent_stays_in_the_outbox(house: House) -> None:
    """The decision stands; the relay sends it later."""
    admit(house.stage, opened(house, RUN), "queue")
    house.sender.away = True
    assert cancel(house.stage, RUN).code == "CANCELLED"
    ((_, message),) = house.store.outbox.values()
    assert message.message_id == message_id(RUN, ReleaseAborted.TYPE, 0)
    assert house.sender.sent == []


def test_an_ending_goes_to_each_destination_under_one_id(house: House) -> None:
    """Results and reply queue are two entries with the same bytes."""
    raw = opened(house, RUN).replace(b'"query"', b'"reply_to":"release.reply.me","query"')
    admit(house.stage, raw, "queue")
    cancel(house.stage, RUN)
    first, second = house.sender.sent
    assert (first.reply_to, second.reply_to) == ("", "release.reply.me")
    assert first.body == second.body
    assert Envelope.model_validate_json(first.body).id == first.message_id
    assert not house.store.outbox


def test_a_cancel_of_an_ended_run_changes_nothing_and_says_so(house: House) -> None:
    """The answer is the ending that stands."""
    admit(house.stage, opened(house, RUN), "queue")
    cancel(house.stage, RUN)
    before = house.records.load(RUN)
    again = cancel(house.stage, RUN)
    assert (again.answer, again.code) == ("STANDS", "CANCELLED")
    assert house.records.load(RUN).revision == before.revision
    assert len(house.sender.sent) == 1


def test_a_publish_before_its_turn_is_idle(house: House) -> None:
    """Without a recorded check nothing is decided, and nothing may follow."""
    admit(house.stage, opened(house, RUN), "queue")
    assert publish(house.stage, RUN, PUBLISH).idle
    assert apply(house.stage, RUN, Published(PUBLISH)).answer == "REFUSED"
    assert house.sender.sent == []


def test_a_writer_that_is_always_too_late_gives_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves the step to its lease instead of turning for ever."""
    admit(house.stage, opened(house, RUN), "queue")
    monkeypatch.setattr(house.records, "commit", lambda *_, **__: None)
    with pytest.raises(Contended):
        apply(house.stage, RUN, Cancelled(RUN))


def test_a_store_that_is_away_decides_nothing(house: House) -> None:
    """The caller is told, and the run is as it was."""
    admit(house.stage, opened(house, RUN), "queue")
    house.store.away = True
    with pytest.raises(StoreUnavailable):
        cancel(house.stage, RUN)
    house.store.away = False
    run = house.records.load(RUN).run
    assert run is not None
    assert run.is_open


def test_the_record_of_a_run_can_be_shown_and_that_of_none_cannot(house: House) -> None:
    """People on call read it."""
    admit(house.stage, opened(house, RUN), "queue")
    cancel(house.stage, RUN)
    evaluation = show(house.records, house.stage.policy, RUN)
    assert evaluation is not None
    assert evaluation["ending"] == {"kind": "ABORTED", "code": "CANCELLED"}
    assert show(house.records, house.stage.policy, "nobody") is None
