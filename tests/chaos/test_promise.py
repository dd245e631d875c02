"""What the promise stands on, and what nobody is promised: each limit is shown, not only told."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts import channels
from contracts.envelope import wrap
from contracts.messages import ReleaseAborted, ReleaseSucceeded
from tests.fakes.records import FakeOutbox
from tests.pipeline.cases import disk_draft, disk_records, draft_ready, event
from tests.pipeline.harness import PATIENCE, LocalStage, local_stage, new_run_id
from tests.stage.conftest import House, house
from worker.offline.judge_script import hang
from worker.offline.processes import Process
from worker.offline.redis_server import RedisServer
from worker.ports import StoreUnavailable
from worker.stage.admit import admit
from worker.stage.cancel import cancel
from worker.stage.recover import OUTBOX_PATIENCE, sweep_outbox

__all__ = ["house"]


@dataclass(frozen=True)
class Losses:
    """Runs whose messages a Redis broker lost, and a stage that starts only afterwards."""

    stage: LocalStage
    worker: Process
    plain: str
    submitted: str
    cancelled: str


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Losses]:
    """Each message is taken as a process takes it that dies before it notes that."""
    with local_stage(tmp_path_factory.mktemp("losses")) as stage:
        plain, submitted, cancelled = new_run_id(), new_run_id(), new_run_id()
        stage.publish_raw(json.dumps(event(plain, disk_draft())).encode())
        taken(stage, channels.DRAFTS)
        stage.record(*disk_records(submitted))
        message_id = stage.client.submit_draft(draft_ready(submitted, disk_draft()))
        taken(stage, channels.DRAFTS)
        stage.age_inbox(message_id)
        stage.client.cancel_run(cancelled)
        taken(stage, channels.CONTROL)
        stage.relay()
        yield Losses(stage, stage.worker(), plain, submitted, cancelled)


def taken(stage: LocalStage, queue: str) -> None:
    """Take a message off a Redis broker without a note of it."""
    stage.wait_for(lambda: stage.redis.rpop(queue), f"a message on {queue}")


class ForgetfulOutbox(FakeOutbox):
    """A process dies after each sending and before it noted it."""

    def sent(self, entry_id: str) -> None:
        raise StoreUnavailable("ConnectionError")


@pytest.mark.scenario("promise", "A message that is sent twice")
def test_a_repeated_ending_is_the_same_to_the_byte(house: House) -> None:
    """Its id and its body were fixed by the commit that decided it."""
    dying = replace(house.stage, outbox=ForgetfulOutbox(house.store))
    now = datetime.fromtimestamp(house.now, UTC)
    admit(dying, wrap(draft_ready("run-1", disk_draft()), message_id="m-1", time=now), "tests")
    cancel(dying, "run-1")
    house.now += OUTBOX_PATIENCE + 1
    sweep_outbox(house.stage)
    first, second = house.sender.sent
    assert (first.message_id, first.body) == (second.message_id, second.body)
    assert not house.store.outbox


@pytest.mark.scenario("promise", "A store that evicts")
@pytest.mark.parametrize(
    "command",
    [["celery", "-A", "worker.app", "worker"], ["worker.cli", "relay"]],
    ids=["worker", "relay"],
)
def test_nothing_starts_on_a_store_that_evicts(command: list[str], tmp_path: Path) -> None:
    """It could drop a run without a trace."""
    with RedisServer(maxmemory_policy="allkeys-lru") as server:
        environment = {"REDIS_URL": server.url, "RELEASE_BROKER_URL": "", "OPENAI_API_KEY": "none"}
        with Process("process", [sys.executable, "-m", *command], environment, tmp_path) as process:
            process.ready("set maxmemory-policy noeviction")


@pytest.mark.scenario("promise", "A store that forgets")
def test_a_store_without_a_log_is_told_of(losses: Losses) -> None:
    """The worker works on it, and says what the promise has lost."""
    losses.worker.ready("Redis keeps no append-only file")


@pytest.mark.scenario("promise", "A plain draft that Redis loses")
def test_only_a_submitted_draft_survives_its_taker(losses: Losses) -> None:
    """The inbox remembers the one; of the other nobody knows."""
    assert losses.stage.outcome(losses.submitted).type == ReleaseSucceeded.TYPE
    assert losses.stage.run(losses.plain) is None
    assert not losses.stage.dead()


@pytest.mark.scenario("promise", "A cancel that Redis loses")
def test_a_lost_cancel_message_is_no_cancel(losses: Losses) -> None:
    """Only what is committed is a cancel; asking again works."""
    stage, run_id = losses.stage, losses.cancelled
    stage.judge.add(hang().on(run_id))
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)), PATIENCE)
    stage.client.cancel_run(run_id)
    assert stage.outcome(run_id).type == ReleaseAborted.TYPE


@pytest.mark.scenario("promise", "A reader that dies")
def test_the_record_outlives_a_lost_result(losses: Losses) -> None:
    """The message is gone with its reader; what it said is still on record."""
    stage, run_id = losses.stage, new_run_id()
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    taken(stage, channels.RESULTS)
    assert str(stage.ended(run_id).ending) == "SUCCEEDED"
    stage.wait_for(lambda: not stage.redis.xlen(stage.keys.outbox), "an empty outbox")
    assert not stage.redis.llen(channels.RESULTS)
