"""No word of content leaves the stage but in a released draft: marked drafts, real workers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from contracts.envelope import Envelope, wrap
from contracts.messages import DraftReady
from tests.pipeline.harness import PATIENCE, LocalStage, local_stage, new_run_id
from tests.pipeline.judged import tool_record
from tests.pipeline.marked import MARK, Marks, marked_content, marked_draft
from tests.pipeline.watching import Watch, watching
from worker.client import ResultConsumer
from worker.offline.judge_script import Behaviour, content, hang, refusal, status, verdict
from worker.offline.processes import wait_until
from worker.run.steps import Step, StepRef

TOOLS = ("run_command", "query_logs", "query_mysql")
COUNTER = 918_273_645
REPLY_TO = "release.reply.marked"
OUTSIDE = ("reason", "query", "uncited", "error", "provider")
"""What not even a released report holds."""


@dataclass
class Runs:
    """Marked runs that were submitted to one stage, each with the ending that it must get."""

    stage: LocalStage
    marks: Marks = field(default_factory=Marks)
    expected: dict[str, str] = field(default_factory=dict)

    def submit(
        self, ending: str, *behaviours: Behaviour, draft: Any = None, good: bool = True, **more: Any
    ) -> str:
        """Record marked calls and submit a marked draft that cites them, rightly or not."""
        run_id = new_run_id("marked")
        calls = [self.marks.word("call-id") for _ in TOOLS]
        for tool, call_id in zip(TOOLS, calls, strict=True):
            told = {"error_message": self.marks.word("error"), "session_id": self.marks.word("s")}
            self.stage.record(
                tool_record(run_id, tool, call_id, **marked_content(self.marks, tool), **told)
            )
        uncited = marked_content(self.marks, "run_command")
        self.stage.record(tool_record(run_id, "run_command", self.marks.word("uncited"), **uncited))
        cited = calls if good else [*calls, self.marks.word("fabricated")]
        self.stage.judge.add(*(one.on(run_id) for one in behaviours))
        if draft is None:
            draft = marked_draft(self.marks, *cited)
        progress = {"completed_tool_call_ids": calls} if more.pop("progress", False) else {}
        ready = DraftReady.model_validate(
            {
                "run_id": run_id,
                "session_id": "session-1",
                "query": f"{self.marks.word('query')} {run_id}",
                "draft": draft,
                "progress": progress,
                **more,
            },
            strict=False,
        )
        self.expected[run_id] = ending
        return self.stage.submit(ready)

    def submit_all(self) -> None:
        """Bring about every kind of ending, and keep some calls open for a while."""
        reason, words = self.marks.word("reason"), self.marks.word("provider")
        error = json.dumps({"error": {"message": words, "code": words}})
        unread = f'{{"conclusion": "{words}"'
        unconcluded = {**marked_draft(self.marks, self.marks.word("nobody")), "conclusion": None}
        stop = {"reason": "INFORMATION_SATURATION"}
        self.submit("SUCCEEDED", verdict("SUPPORTED", reason))
        self.submit("SEMANTIC_UNSUPPORTED", verdict("UNSUPPORTED", reason))
        self.submit("SEMANTIC_UNAVAILABLE", status(500, body=error), content(words))
        self.submit("SEMANTIC_UNAVAILABLE", refusal(words), hang())
        self.submit("SEMANTIC_UNAVAILABLE", status(401, body=error))
        self.submit("EVIDENCE_VALIDATION_FAILED", content(words), good=False)
        self.submit("EVIDENCE_VALIDATION_FAILED", status(400, body=error), good=False)
        self.submit("EVIDENCE_VALIDATION_FAILED", draft=unread)
        self.submit("INSUFFICIENT_EVIDENCE", draft=unread, progress=True)
        self.submit("INSUFFICIENT_EVIDENCE", draft=unconcluded)
        self.submit("INSUFFICIENT_EVIDENCE", stop=stop, progress=True, locale="zh")
        missing = {"conclusion": None, "analyses": [], "missing_context": [words]}
        self.submit("MISSING_REQUIRED_CONTEXT", draft=missing)
        self.submit("BUDGET_EXHAUSTED", budget={"model_calls": 0})
        for _ in range(3):
            self.submit("SEMANTIC_UNAVAILABLE", hang().repeat(2))


def _as_a_task(runs: Runs) -> None:
    """Submit by the Celery task, with a stop whose further fields hold a counter and a word."""
    run_id, words = new_run_id("marked"), runs.marks.word("stop")
    ready = DraftReady(
        run_id=run_id, session_id="s", query=words, draft=marked_draft(runs.marks, words)
    )
    message = json.loads(wrap(ready, message_id=f"{run_id}-0", time=datetime.now(UTC)))
    message["data"]["stop"] = {"reason": "BUDGET_HANDLED", "rounds": COUNTER, "why": words}
    producer = Celery("agent", broker=runs.stage.redis_server.broker_url, set_as_current=False)
    producer.send_task("release.submit", args=[message], queue="release.tasks")
    producer.close()
    runs.expected[run_id] = "INSUFFICIENT_EVIDENCE"


def _to_be_refused(runs: Runs) -> str:
    """Publish a draft that is refused, and answered, for what it has under a known field."""
    run_id, words = new_run_id("refused"), runs.marks.word("refused")
    ready = DraftReady(run_id=run_id, session_id=words, query=words, draft=words, reply_to=REPLY_TO)
    message = json.loads(wrap(ready, message_id=run_id, time=datetime.now(UTC)))
    message["data"]["progress"] = {"completed_tool_call_ids": words}
    message["data"]["deadline"] = words
    runs.stage.publish_raw(json.dumps(message).encode())
    return run_id


def _to_break_a_step(runs: Runs) -> None:
    """Spoil a run's record while its first call is open: the second step fails on marked bytes."""
    run_id = runs.submit("SEMANTIC_UNAVAILABLE", hang())
    stage = runs.stage
    stage.judge.wait(lambda _: bool(stage.judge.asked_about(run_id)), PATIENCE)
    spoiled = runs.marks.word("spoiled").encode() + b"\xff"
    stage.redis.hset(stage.keys.run(run_id), "question", spoiled)


def _replies(stage: LocalStage, run_id: str) -> Envelope:
    found: list[Envelope] = []
    consumer = ResultConsumer(stage.redis_server.url, name="replies", reply_to=REPLY_TO)

    def has_come() -> bool:
        consumer.consume(found.append, timeout=0.05)
        return any(envelope.subject == run_id for envelope in found)

    wait_until(has_come, PATIENCE, "the refusal")
    consumer.close()
    return found[0]


def _inspected_to_the_end(runs: Runs, watch: Watch) -> bool:
    """Ask the workers once more; tell whether all runs have ended."""
    watch.inspect()
    found = [runs.stage.run(run_id) for run_id in runs.expected]
    return all(run is not None and run.ending is not None for run in found)


@dataclass
class Watched:
    """All runs at their end, and what was seen on the way."""

    runs: Runs
    watch: Watch
    rejected: Envelope
    log: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with local_stage(tmp_path_factory.mktemp("marked")) as stage:
        stage.worker("marked", concurrency=2)
        stage.relay("marked-relay")
        with Connection(stage.redis_server.broker_url) as connection:
            connection.SimpleQueue(REPLY_TO).close()
        with watching(stage.redis_server.broker_url, stage.redis_server.url) as watch:
            runs = Runs(stage)
            refused = _to_be_refused(runs)
            _to_break_a_step(runs)
            runs.submit_all()
            _as_a_task(runs)
            wait_until(lambda: _inspected_to_the_end(runs, watch), PATIENCE, "all endings")
            for run_id in runs.expected:
                stage.outcome(run_id)
            rejected = _replies(stage, refused)
        yield Watched(runs, watch, rejected, stage.log_text())


def test_every_kind_of_ending_was_reached(watched: Watched) -> None:
    """Otherwise the tests below would prove little."""
    stage, expected = watched.runs.stage, watched.runs.expected
    assert {run_id: str(stage.ended(run_id).ending) for run_id in expected} == expected
    assert {"task-received", "task-started", "task-succeeded", "task-failed"} <= {
        event["type"] for event in watched.watch.events
    }
    assert len(watched.watch.tasks) > len(expected)
    assert any("release.review_semantics" in text for text in watched.watch.inspected)
    broken = [
        run_id
        for run_id in expected
        if str(stage.ended(run_id).attempt(StepRef(0, Step.REVIEW_SEMANTICS, 2)).outcome) == "LOST"
    ]
    assert len(broken) == 1, "one step broke on what was stored"


@pytest.mark.scenario("release-policy", "Marked words stay inside")
def test_no_fallback_abort_or_refusal_holds_a_marked_word(watched: Watched) -> None:
    """Neither draft, reason, provider, counter nor record; a release holds its draft alone."""
    stage = watched.runs.stage
    for run_id, ending in watched.runs.expected.items():
        text = stage.outcome(run_id).model_dump_json()
        assert str(COUNTER) not in text
        if ending == "SUCCEEDED":
            assert f"{MARK}-conclusion" in text
            assert not [word for word in OUTSIDE if f"{MARK}-{word}" in text]
        else:
            assert MARK not in text, ending
    assert watched.rejected.type == "release_stage.DraftRejected.v1"
    assert watched.rejected.data["reasons"] == ["INVALID_DATA:deadline", "INVALID_DATA:progress"]
    assert MARK not in watched.rejected.model_dump_json()


@pytest.mark.scenario("release-policy", "Marked words stay inside")
def test_no_log_line_holds_a_marked_word(watched: Watched) -> None:
    """Worker and relay logs at INFO, a failed step's traceback among them."""
    assert "StepFailed" in watched.log
    assert [line for line in watched.log.splitlines() if MARK in line] == []
    assert str(COUNTER) not in watched.log


@pytest.mark.scenario("release-policy", "Marked words stay inside")
def test_no_event_or_inspection_holds_a_marked_word(watched: Watched) -> None:
    """What Flower shows: arguments, results, exceptions and tracebacks of every task."""
    assert [event for event in watched.watch.events if MARK in repr(event)] == []
    assert [text for text in watched.watch.inspected if MARK in text] == []


@pytest.mark.scenario("release-policy", "Marked words stay inside")
def test_a_steps_message_holds_names_and_numbers_alone(watched: Watched) -> None:
    """Only the task that submits carries a draft; every other message carries ids."""
    steps = [text for text in watched.watch.tasks if "release.submit" not in text]
    assert len(steps) == len(watched.watch.tasks) - 1
    assert [text for text in steps if MARK in text] == []
