"""Marked claims through every ending: no word of content where it does not belong."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.pipeline.cases import command_record
from tests.pipeline.claimed import answer, binding, claim, document, output_ready
from tests.pipeline.harness import PATIENCE, LocalStage, local_stage, new_run_id
from tests.pipeline.marked import MARK, Marks
from tests.pipeline.watching import Watch, watching
from worker.claims import verifier
from worker.claims.evaluation import CHANNEL
from worker.offline.judge_script import Behaviour, content, hang, refusal, status
from worker.offline.processes import wait_until
from worker.stage.blobs import SELF_EVALUATION

DIRECT, INFERENCE = "direct_observation", "reasonable_inference"
TOLD = f"{MARK}-told"
"""Begins the words of a claim that the verifier lets through."""


@dataclass
class Runs:
    """Marked runs that were submitted to one stage, each with the ending that it must get."""

    stage: LocalStage
    marks: Marks = field(default_factory=Marks)
    expected: dict[str, str] = field(default_factory=dict)

    def output(self, run_id: str, *, gap: bool = False) -> dict[str, Any]:
        """Two claims that pass the gate, one that does not, and a gap; every word is marked."""
        word = self.marks.word
        call_id, quoted = word("call-id"), word("quoted")
        unquoted = f"{word('unquoted')}\n{quoted}\n"
        command = f"tail {word('command')}"
        self.stage.record(command_record(run_id, call_id, command=command, stdout=unquoted))
        one = binding(invocation_id=call_id, matched_text=quoted)
        gaps = [
            {
                "claim_id": "c1",
                "tool_name": "query_logs",
                "critical": gap,
                "description": word("gap"),
            }
        ]
        return document(
            claim("c1", word("told"), one),
            claim("c2", word("doubted"), one, critical=False),
            claim("c3", word("unbound"), confirmed=False, evidence_bindings=[]),
            evidence_gaps=gaps,
            diagnosis_context={"systems": [word("system")]},
        )

    def passed(self, output: dict[str, Any], *classes: str, **changes: Any) -> Behaviour:
        """The verifier's opinion on the two claims that pass the gate."""
        shown = {"claims": output["claims"][:2]}
        return answer(shown, *classes, rationale=self.marks.word("rationale"), **changes)

    def submit(
        self, ending: str, output: Any, *behaviours: Behaviour, run_id: str, **more: Any
    ) -> None:
        """Submit one marked document."""
        self.stage.judge.add(*(one.on(run_id) for one in behaviours))
        query = f"{self.marks.word('query')} {run_id}"
        self.stage.client.submit_claims(output_ready(run_id, output, query=query, **more))
        self.expected[run_id] = ending

    def submit_all(self) -> None:
        """Bring about every kind of ending."""
        words = self.marks.word("provider")
        error = json.dumps({"error": {"message": words, "code": words}})
        for ending, classes in (
            ("SUCCEEDED", (DIRECT, "unsupported")),
            ("LOW_CONFIDENCE", (INFERENCE, "overstated")),
            ("CLAIMS_REJECTED", ("contradicted", "unsupported")),
        ):
            run_id = new_run_id("marked")
            output = self.output(run_id)
            self.submit(ending, output, self.passed(output, *classes), run_id=run_id)
        for behaviours in (
            (status(500, body=error), content(words)),
            (refusal(words), hang()),
            (status(401, body=error),),
        ):
            run_id = new_run_id("marked")
            self.submit("PRE_VERIFICATION", self.output(run_id), *behaviours, run_id=run_id)
        run_id = new_run_id("marked")
        self.submit("PRE_VERIFICATION", f"{{{words}", run_id=run_id)
        run_id = new_run_id("marked")
        removed = {**self.output(run_id), "user_facing_answer": self.marks.word("removed")}
        self.submit("PRE_VERIFICATION", removed, run_id=run_id)
        run_id = new_run_id("marked")
        self.submit(
            "BUDGET_EXHAUSTED", self.output(run_id), run_id=run_id, budget={"model_calls": 0}
        )

    def cancel_two(self) -> None:
        """Cancel one run that waits for evidence, and one whose verifier is asked."""
        waits, asked = new_run_id("marked"), new_run_id("marked")
        output = self.output(waits, gap=True)
        doubts = self.passed(output, "unsupported", "unsupported")
        self.submit("CANCELLED", output, doubts, run_id=waits)
        self.submit("CANCELLED", self.output(asked), hang(), run_id=asked)
        self.stage.request(waits)
        self.stage.judge.wait(lambda _: bool(self.stage.judge.asked_about(asked)), PATIENCE)
        for run_id in (waits, asked):
            self.stage.client.cancel_run(run_id)

    def evaluation(self, run_id: str) -> dict[str, Any]:
        container = self.stage.redis.hget(self.stage.keys.run(run_id), SELF_EVALUATION)
        evaluation = json.loads(container)[CHANNEL]
        assert isinstance(evaluation, dict)
        return evaluation


@dataclass
class Watched:
    """All runs at their end, and what was seen on the way."""

    runs: Runs
    watch: Watch
    log: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with local_stage(tmp_path_factory.mktemp("marked-claims")) as stage:
        stage.worker("marked", concurrency=2)
        stage.relay("marked-relay")
        with watching(stage.redis_server.broker_url, stage.redis_server.url) as watch:
            runs = Runs(stage)
            runs.submit_all()
            runs.cancel_two()

            def all_ended() -> bool:
                watch.inspect()
                found = [stage.run(run_id) for run_id in runs.expected]
                return all(run is not None and run.ending is not None for run in found)

            wait_until(all_ended, 2 * PATIENCE, "all endings")
            for run_id in runs.expected:
                stage.outcome(run_id)
        yield Watched(runs, watch, stage.log_text())


def marks_in(text: str, *allowed: str) -> list[str]:
    """The marks in a text but for those that begin so."""
    found = [f"{MARK}{rest[:40]}" for rest in text.split(MARK)[1:]]
    return [mark for mark in found if not mark.startswith(allowed or ("-",))]


def test_every_kind_of_ending_of_claims_was_reached(watched: Watched) -> None:
    """Otherwise the tests below would prove little."""
    stage, expected = watched.runs.stage, watched.runs.expected
    assert {run_id: str(stage.ended(run_id).ending) for run_id in expected} == expected
    assert len(watched.watch.tasks) > len(expected)
    assert any("release.verify_claims" in text for text in watched.watch.inspected)


@pytest.mark.scenario("claim-runs", "Marked claims stay inside")
def test_an_ending_holds_composed_statements_alone(watched: Watched) -> None:
    """Of all that was submitted, an answer holds the claim that was let through, if one was."""
    for run_id, ending in watched.runs.expected.items():
        text = watched.runs.stage.outcome(run_id).model_dump_json()
        assert marks_in(text, TOLD) == [], ending
        assert (TOLD in text) is (ending in ("SUCCEEDED", "LOW_CONFIDENCE"))


@pytest.mark.scenario("claim-runs", "Marked claims stay inside")
def test_a_request_holds_what_its_agent_said_is_missing(watched: Watched) -> None:
    """The gap's own words go back to the agent, and nothing else does."""
    (request,) = [one for found in watched.runs.stage.requests.values() for one in found]
    assert marks_in(request.model_dump_json(), f"{MARK}-gap") == []


@pytest.mark.scenario("claim-runs", "Marked claims stay inside")
def test_an_evaluation_holds_nothing_raw(watched: Watched) -> None:
    """Verified claims, quotations, references and the rationale; no prompt, no raw output."""
    kept = [f"{MARK}-{word}" for word in ("told", "doubted", "quoted", "call-id", "rationale")]
    for run_id, ending in watched.runs.expected.items():
        text = json.dumps(watched.runs.evaluation(run_id))
        assert marks_in(text, *kept) == [], ending
        assert verifier.SYSTEM[:60] not in text
        assert "tool_trace" not in text


@pytest.mark.scenario("claim-runs", "Marked claims stay inside")
def test_logs_events_and_step_messages_hold_no_mark(watched: Watched) -> None:
    """Worker and relay logs, what Flower shows, and every message on the task queue."""
    assert [line for line in watched.log.splitlines() if MARK in line] == []
    assert [event for event in watched.watch.events if MARK in repr(event)] == []
    assert [text for text in watched.watch.inspected if MARK in text] == []
    assert [text for text in watched.watch.tasks if MARK in text] == []
