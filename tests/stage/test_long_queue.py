"""A long queue is no loss: what only waits in it is not sent again and again."""

from datetime import UTC, datetime

import pytest

from contracts.envelope import wrap
from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.stage.conftest import House
from worker.ports import ModelRateLimited
from worker.run.state import Ending
from worker.run.steps import Step, StepRef
from worker.stage.admit import admit
from worker.stage.check import check
from worker.stage.engine import claim
from worker.stage.recover import LONG_QUEUE, reconcile
from worker.stage.review import review

RUN = "run-1"
CHECK = StepRef(0, Step.CHECK_EVIDENCE, 1)
REVIEW = StepRef(0, Step.REVIEW_SEMANTICS, 1)
SECOND = StepRef(0, Step.REVIEW_SEMANTICS, 2)


def opened(house: House) -> None:
    """Open a run and forget that its first step was sent."""
    now = datetime.fromtimestamp(house.now, UTC)
    admit(house.stage, wrap(draft_ready(RUN, disk_draft()), message_id="m-1", time=now), "queue")
    house.dispatcher.dispatched.clear()


@pytest.mark.scenario("run-record", "A long queue")
def test_an_unclaimed_step_in_a_long_queue_is_left_there(house: House) -> None:
    """It is sent again only once the queue is short and its next wait is over."""
    opened(house)
    house.dispatcher.queued = LONG_QUEUE + 1
    house.now += house.stage.policy.resend_first + 1
    assert reconcile(house.stage) == 1
    assert house.dispatcher.dispatched == []
    house.dispatcher.queued = LONG_QUEUE
    house.now += 2 * house.stage.policy.resend_first + 1
    reconcile(house.stage)
    assert house.dispatcher.dispatched == [(RUN, CHECK)]


@pytest.mark.scenario("run-record", "A long queue")
def test_a_lost_step_is_sent_into_the_longest_queue(house: House) -> None:
    """Its lease has ended, so that nobody else will do it."""
    opened(house)
    house.dispatcher.queued = LONG_QUEUE + 1
    claim(house.stage, RUN, CHECK)
    house.now += house.stage.policy.lease(CHECK.step) + 1
    reconcile(house.stage)
    assert house.dispatcher.dispatched == [(RUN, CHECK)]


def test_an_attempt_that_had_to_wait_is_sent_into_the_longest_queue(house: House) -> None:
    """The provider asked for a wait: only the reconciler ever sends the second attempt."""
    opened(house)
    house.dispatcher.queued = LONG_QUEUE + 1
    for record in disk_records(RUN):
        house.invocations.put(RUN, record.tool_call_id, record.model_dump_json().encode())
    house.model.then(ModelRateLimited(retry_after=5.0))
    check(house.stage, RUN, CHECK)
    review(house.stage, RUN, REVIEW)
    house.now += 6
    reconcile(house.stage)
    assert house.dispatcher.dispatched == [(RUN, SECOND)]


def test_a_broker_that_is_away_keeps_no_run_from_its_deadline(house: House) -> None:
    """How long the queue is need not be known for that."""
    opened(house)
    house.dispatcher.away = True
    house.now += house.stage.limits.default_deadline + 1
    reconcile(house.stage)
    assert str(ending(house)) == "DEADLINE_EXCEEDED"


def ending(house: House) -> Ending | None:
    run = house.records.load(RUN).run
    return None if run is None else run.ending
