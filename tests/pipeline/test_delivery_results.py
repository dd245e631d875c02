"""How an ending reaches its readers: results, reply queues, and the relay behind both."""

import pytest

from contracts.envelope import Envelope
from tests.pipeline.cases import disk_draft, disk_records, draft_ready
from tests.pipeline.harness import CHECK, REVIEW, LocalStage, new_run_id
from worker.client import ResultConsumer
from worker.run.steps import message_id

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"


def pending(stage: LocalStage) -> list[bytes]:
    """The run ids in the outbox."""
    return [fields[b"run_id"] for _, fields in stage.redis.xrange(stage.keys.outbox)]


@pytest.mark.scenario("delivery", "A reply queue")
def test_an_ending_goes_to_the_results_and_to_the_reply_queue(stage: LocalStage) -> None:
    """Both carry the same bytes of meaning: one id, one type, one data."""
    run_id = new_run_id()
    reply_to = f"release.reply.{run_id}"
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft(), reply_to=reply_to))
    outcome = stage.outcome(run_id)
    assert outcome.type == SUCCEEDED
    assert stage.reply(reply_to) == outcome


@pytest.mark.scenario("delivery", "The id of an ending")
def test_the_id_of_an_ending_is_computed_from_its_run(stage: LocalStage) -> None:
    """Whoever sends it, and however often, the message has one id."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    assert stage.outcome(run_id).id == message_id(run_id, SUCCEEDED, 0)


@pytest.mark.scenario("delivery", "Nothing is left behind")
def test_a_sent_ending_leaves_the_outbox(stage: LocalStage) -> None:
    """The publishing step sends its own entry and takes it out, with no relay in between."""
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft(), reply_to=f"release.reply.{run_id}"))
    stage.outcome(run_id)
    stage.wait_for(lambda: run_id.encode() not in pending(stage), "an empty outbox")


@pytest.mark.scenario("delivery", "The publishing process dies before it sends")
def test_an_ending_whose_process_died_before_sending_is_sent_by_the_relay(
    bare: LocalStage,
) -> None:
    """The release stands in the outbox; the relay delivers it, and no second one follows."""
    run_id = new_run_id()
    bare.record(*disk_records(run_id))
    bare.die("released", draft_ready(run_id, disk_draft()), CHECK, REVIEW)
    assert pending(bare) == [run_id.encode()]
    assert not bare.redis.llen("release.results")
    bare.relay()
    outcome = bare.outcome(run_id)
    assert outcome.type == SUCCEEDED
    assert outcome.data["draft"] == disk_draft()
    bare.wait_for(lambda: not pending(bare), "an empty outbox")
    assert not bare.redis.llen("release.results")


@pytest.mark.scenario("delivery", "A reply queue that cannot be")
def test_a_reply_that_cannot_be_delivered_is_kept_and_hinders_nothing(stage: LocalStage) -> None:
    """The results get the ending at once; the reply becomes a dead letter in the end."""
    run_id = new_run_id()
    reply_to = f"release.reply.{run_id}"
    stage.redis.hset(reply_to, "no", "list")
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft(), reply_to=reply_to))
    assert stage.outcome(run_id).type == SUCCEEDED

    def kept() -> list[str]:
        return [reason for reason, raw in stage.dead() if id_.encode() in raw]

    id_ = message_id(run_id, SUCCEEDED, 0)
    stage.wait_for(kept, "the undeliverable reply")
    assert kept() == ["UNDELIVERABLE"]
    assert run_id.encode() not in pending(stage)
    assert stage.redis.type(reply_to) == b"hash"


@pytest.mark.scenario("delivery", "Two consumers of one name")
def test_a_repeated_ending_reaches_no_second_consumer_of_the_name(stage: LocalStage) -> None:
    """The relay may send what was sent already; a reader that comes later does not see it."""
    run_id = new_run_id()
    reply_to = f"release.reply.{run_id}"
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft(), reply_to=reply_to))
    outcome = stage.outcome(run_id)
    stage.reply(reply_to)
    body = outcome.model_dump_json().encode()
    for _ in range(2):
        stage.publish_raw(body, reply_to)
    handled: list[Envelope] = []
    for _ in range(2):
        consumer = ResultConsumer(stage.redis_server.url, name=run_id, reply_to=reply_to)
        consumer.consume(handled.append, timeout=0.2)
        consumer.close()
    assert [message.id for message in handled] == [outcome.id]
    assert not stage.redis.llen(reply_to)
