"""Each fault of a model against first attempt, both attempts and repair, on real workers.

All drafts are submitted at once, each with a judge of its own: the judge's script and
log are told apart by the run id in the query.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.failure_table import PROPERTY
from tests.pipeline.cases import disk_records, draft_ready
from tests.pipeline.failure_matrix import (
    APP_FAULTS,
    ATTEMPT_SECONDS,
    FAULTS,
    HARMLESS,
    HITS,
    INPUT_BYTES,
    OUTPUT_BYTES,
    RETRY_AFTER,
    Fault,
    Hits,
)
from tests.pipeline.harness import LocalStage, local_stage, new_run_id
from worker.offline.judge_log import Received
from worker.offline.processes import Process
from worker.run.state import Attempt, Run
from worker.run.steps import Step, StepRef

Row = tuple[Fault, Hits]
ROWS: tuple[Row, ...] = (
    *((fault, hits) for fault in (*FAULTS, *APP_FAULTS) for hits in HITS),
    *((answer, "first attempt") for answer in HARMLESS),
)

SETTINGS = {
    "RELEASE_ATTEMPT_TIMEOUT": str(ATTEMPT_SECONDS),
    "RELEASE_REVIEW_TOTAL_TIMEOUT": "8",
    "RELEASE_REVIEW_OUTPUT_BYTES": str(OUTPUT_BYTES),
    "RELEASE_REVIEW_INPUT_BYTES": str(INPUT_BYTES),
    "RELEASE_REPAIR_INPUT_BYTES": str(INPUT_BYTES),
}


class Matrix:
    """The stages that run the matrix, and what was submitted to them."""

    def __init__(self, plain: LocalStage, failing: LocalStage) -> None:
        self._stages = {True: plain, False: failing}
        self.run_ids: dict[Row, str] = {}
        for row in ROWS:
            self._submit(*row)

    def stage(self, fault: Fault) -> LocalStage:
        return self._stages[fault not in APP_FAULTS]

    def _submit(self, fault: Fault, hits: Hits) -> None:
        run_id = self.run_ids[fault, hits] = new_run_id("matrix")
        stage = self.stage(fault)
        hit = 2 if hits == "both attempts" else 1
        if fault.behaviour is not None:
            stage.judge.add(fault.behaviour.on(run_id).repeat(hit))
        query = f"Why does checkout fail? fault={fault.name};calls={hit}. {run_id}"
        stage.record(*disk_records(run_id))
        stage.submit(draft_ready(run_id, fault.draft(hits), query=query))


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    folder = tmp_path_factory.mktemp
    with (
        local_stage(folder("plain"), settings=SETTINGS) as plain,
        local_stage(folder("failing"), settings=SETTINGS) as failing,
    ):
        failing.processes.append(_failing_worker(failing))
        plain.worker("plain", pool="threads", concurrency=24)
        plain.relay("relay-plain")
        failing.relay("relay-failing")
        for one in (plain, failing):
            one.processes[0].ready("ready.")
        yield Matrix(plain, failing)


def _failing_worker(stage: LocalStage) -> Process:
    """A worker with processes of its own, since only those can be interrupted."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "tests.pipeline.failure_matrix_app", "worker"),
        *("--loglevel", "INFO", "--concurrency", "4", "--hostname", "failing@local"),
    ]
    root = str(Path(__file__).parents[2])
    environment = {**stage.environment, "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    return Process("failing", command, environment, stage.logs)


def _attempts(run: Run, hits: Hits) -> list[Attempt]:
    step = Step.REPAIR_EVIDENCE if hits == "repair" else Step.REVIEW_SEMANTICS
    made = [run.attempt(StepRef(0, step, number)) for number in (1, 2, 3)]
    return [attempt for attempt in made if attempt.grants]


def _input_of(request: Received) -> str:
    texts = [message["content"] for message in request.json["messages"]]
    return hashlib.sha256("".join(texts).encode()).hexdigest()


@pytest.mark.parametrize(
    ("fault", "hits"), ROWS, ids=[f"{fault.name}, {hits}" for fault, hits in ROWS]
)
@pytest.mark.scenario("model-boundary", "Failure first, verdict second")
@pytest.mark.scenario("model-boundary", "Failure twice")
@pytest.mark.scenario("model-boundary", "A refusal by the provider is not repeated")
@pytest.mark.scenario("model-boundary", "Almost JSON")
@pytest.mark.scenario("model-boundary", "An answer over its limit")
@pytest.mark.scenario("model-boundary", "A completion without an answer")
@pytest.mark.scenario("model-boundary", "A call that no deadline reaches")
@pytest.mark.scenario("semantic-review", "Nothing but a verdict and a reason")
@pytest.mark.scenario("evidence-repair", "A failed repair is not tried again")
@pytest.mark.scenario("evidence-repair", "A draft too large to repair")
def test_each_fault_comes_to_what_the_matrix_says(
    matrix: Matrix, fault: Fault, hits: Hits, record_property: Callable[[str, object], None]
) -> None:
    """Retries, calls, record and ending of one row; both attempts send the same bytes."""
    stage, run_id = matrix.stage(fault), matrix.run_ids[fault, hits]
    run = stage.ended(run_id)
    attempts = _attempts(run, hits)
    requests = stage.judge.asked_about(run_id)
    outcomes = [str(attempt.outcome) for attempt in attempts]
    record_property(
        PROPERTY, (fault.name, hits, " ".join(outcomes), str(len(requests)), str(run.ending))
    )

    assert outcomes == fault.attempts(hits)
    assert len(requests) == fault.calls(hits)
    assert str(run.ending) == fault.ending(hits)
    assert len({request.body for request in requests}) <= 1, "both attempts send the same bytes"
    inputs = {attempt.input_sha256 for attempt in attempts}
    assert len(inputs) == 1, "both attempts ask the same"
    assert inputs >= {_input_of(request) for request in requests}, "the record tells what was sent"
    assert all(attempt.ended_at is not None for attempt in attempts)


@pytest.mark.scenario("model-boundary", "A provider that asks for patience")
def test_a_provider_is_given_the_time_that_it_asks_for(matrix: Matrix) -> None:
    """After a 429 the second call comes when the provider said, and at once if it said nothing."""
    for fault in (fault for fault in FAULTS if fault.outcome == "RATE_LIMITED"):
        run_id = matrix.run_ids[fault, "both attempts"]
        first, second = _attempts(matrix.stage(fault).ended(run_id), "both attempts")
        if fault.name == "429":
            assert first.retry_at is None
            continue
        assert first.ended_at is not None
        assert second.claimed_at is not None
        assert first.retry_at is not None
        assert first.retry_at == pytest.approx(first.ended_at + RETRY_AFTER)
        assert second.claimed_at >= first.retry_at
        asked, again = matrix.stage(fault).judge.asked_about(run_id)
        assert again.arrived_at - asked.arrived_at >= RETRY_AFTER


@pytest.mark.scenario("model-boundary", "An answer that trickles")
def test_a_trickle_ends_in_time_and_is_hung_up(matrix: Matrix) -> None:
    """The attempt's time counts the whole answer, and the connection is closed at its end."""
    for fault in (fault for fault in FAULTS if fault.outcome == "TIMEOUT"):
        run_id = matrix.run_ids[fault, "both attempts"]
        run = matrix.stage(fault).ended(run_id)
        for attempt in _attempts(run, "both attempts"):
            assert attempt.claimed_at is not None
            assert attempt.ended_at is not None
            assert attempt.timeout == ATTEMPT_SECONDS
            assert ATTEMPT_SECONDS <= attempt.ended_at - attempt.claimed_at < ATTEMPT_SECONDS + 1
        for request in matrix.stage(fault).judge.asked_about(run_id):
            assert request.closed_at is not None
