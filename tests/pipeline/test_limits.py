"""The time of an attempt: held by the boundary, then by the soft limit, then by the hard one."""

import re
import sys
from collections.abc import Iterator

import pytest
from celery import Celery

from tests.pipeline.cases import disk_draft
from tests.pipeline.harness import REVIEW, SECOND_REVIEW, LocalStage, local_stage, new_run_id
from tests.pipeline.judged import judge, judged, submitted
from worker.offline.judge_script import Behaviour, hang, rules, trickle
from worker.offline.processes import Process
from worker.run.state import Attempt
from worker.run.steps import Step, errback_id
from worker.tasks import ATTEMPT_LOST

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"


def start_stuck_worker(stage: LocalStage, *, concurrency: int = 2) -> Process:
    """Start a worker whose model can get stuck; see ``tests.pipeline.stuck_app``."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "tests.pipeline.stuck_app", "worker"),
        *("--loglevel", "INFO", "--concurrency", str(concurrency), "--hostname", "stuck@local"),
    ]
    worker = Process("stuck", command, stage.environment, stage.logs)
    stage.processes.append(worker)
    return worker.ready("stuck@local ready.")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    """A stage whose model can get stuck. An attempt has 2 s, soft limit 3 s, hard limit 4 s."""
    with local_stage(tmp_path_factory.mktemp("limited")) as running:
        start_stuck_worker(running)
        running.relay()
        yield running


def stuck(limited: LocalStage, how: str, *behaviours: Behaviour) -> str:
    """Submit a sound draft whose first call gets stuck."""
    run_id = new_run_id()
    query = f"Why does checkout fail? ({run_id}) stuck={how};calls=1."
    return submitted(limited, disk_draft(), *behaviours, run_id=run_id, query=query)


def lasted(attempt: Attempt) -> float:
    assert attempt.claimed_at is not None
    assert attempt.ended_at is not None
    return attempt.ended_at - attempt.claimed_at


@pytest.mark.scenario("attempt-limits", "The boundary ends an attempt in time")
def test_the_boundary_ends_an_attempt_in_time(limited: LocalStage) -> None:
    """A trickling answer is hung up before any limit of Celery's; the second attempt decides."""
    end = judge(limited, disk_draft(), trickle(0.05))
    assert end.outcome.type == SUCCEEDED
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["TIMEOUT", "SUPPORTED"]
    policy = limited.settings.policy()
    first = lasted(end.run.attempt(REVIEW))
    assert policy.attempt_timeout <= first < policy.soft_limit(Step.REVIEW_SEMANTICS)
    assert end.calls[0].closed_at is not None


@pytest.mark.scenario("attempt-limits", "The soft limit ends what the boundary missed")
def test_the_soft_limit_ends_what_the_boundary_missed(limited: LocalStage) -> None:
    """A call that outlives its own deadline is interrupted, and its process goes on."""
    end = judged(limited, stuck(limited, "asleep"))
    assert end.outcome.type == SUCCEEDED
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["TIMEOUT", "SUPPORTED"]
    policy = limited.settings.policy()
    first = lasted(end.run.attempt(REVIEW))
    assert first >= policy.soft_limit(Step.REVIEW_SEMANTICS)
    assert first < policy.hard_limit(Step.REVIEW_SEMANTICS)


@pytest.mark.scenario("attempt-limits", "The hard limit ends what ignores both")
def test_the_hard_limit_ends_what_ignores_both(limited: LocalStage) -> None:
    """A call blocked in C code loses its process; the second attempt runs in another one."""
    end = judged(limited, stuck(limited, "in C"))
    assert end.outcome.type == SUCCEEDED
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["LOST", "SUPPORTED"]
    assert lasted(end.run.attempt(REVIEW)) >= limited.settings.policy().hard_limit(
        Step.REVIEW_SEMANTICS
    )
    log = limited.log_text()
    lost = errback_id(end.run.run_id, REVIEW, 1)
    limited.wait_for(
        lambda: re.search(rf"{ATTEMPT_LOST}\[{lost}\] (succeeded|ignored)", limited.log_text()),
        "the errback",
    )
    assert "Hard time limit" in log


@pytest.mark.scenario("attempt-limits", "Total time holds over both attempts")
@pytest.mark.parametrize(
    ("total", "calls"), [("3.5", 2), ("2.5", 1)], ids=["a short second", "no second"]
)
def test_total_time_holds_over_both_attempts(
    total: str, calls: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The second attempt gets what the first one left, and is not made if that is too little."""
    settings = {"RELEASE_REVIEW_TOTAL_TIMEOUT": total}
    with local_stage(tmp_path_factory.mktemp("total"), settings=settings) as stage:
        stage.worker()
        stage.relay()
        end = judge(stage, disk_draft(), hang().always())
        assert end.fallback["type"] == "SEMANTIC_UNAVAILABLE"
        assert end.outcomes(Step.REVIEW_SEMANTICS) == ["TIMEOUT"] * calls
        assert len(end.calls) == calls
        if calls == 2:
            second = end.run.attempt(SECOND_REVIEW)
            left = float(total) - lasted(end.run.attempt(REVIEW))
            assert second.timeout is not None
            assert second.timeout == pytest.approx(left)
            assert second.timeout < stage.settings.attempt_timeout


@pytest.mark.scenario("attempt-limits", "An errback that fires again")
def test_an_errback_that_fires_again_changes_nothing(limited: LocalStage) -> None:
    """While the second attempt runs, and after the end, the first one's loss is old news."""
    run_id = stuck(limited, "in C", rules().after(1.0))

    def fire() -> None:
        names = {"run_id": run_id, "step": REVIEW.step.value, "round": 0, "attempt": 1, "grant": 1}
        with Celery("celery", broker=limited.broker_url, set_as_current=False) as app:
            app.conf.task_ignore_result = True
            for _ in range(2):
                app.send_task(ATTEMPT_LOST, args=["any"], kwargs=names, queue="release.tasks")

    limited.wait_for(lambda: limited.judge.asked_about(run_id), "the second attempt")
    fire()
    end = judged(limited, run_id)
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["LOST", "SUPPORTED"]
    fire()
    limited.wait_for(lambda: not limited.redis.llen("release.tasks"), "the last errback")
    assert limited.outcome(run_id).type == SUCCEEDED
    assert limited.run(run_id) == end.run
    assert len(limited.judge.asked_about(run_id)) == 1


@pytest.mark.scenario("attempt-limits", "A delivery while the first one runs")
def test_a_delivery_while_the_first_one_runs_changes_nothing(limited: LocalStage) -> None:
    """Redis delivers a slow step again; the judge is asked once, and one message goes out."""
    run_id = submitted(limited, disk_draft(), rules().after(1.0))
    limited.judge.wait(lambda _: bool(limited.judge.asked_about(run_id)), 30)
    for _ in range(3):
        limited.deliver(run_id, REVIEW)
    end = judged(limited, run_id)
    assert end.outcome.type == SUCCEEDED
    assert end.outcomes(Step.REVIEW_SEMANTICS) == ["SUPPORTED"]
    assert len(end.calls) == 1
    limited.wait_for(
        lambda: (
            [what for ref, what in limited.steps(run_id) if ref == REVIEW].count("ignored") == 3
        ),
        "three deliveries that were ignored",
    )
    assert limited.outcome(run_id).type == SUCCEEDED
