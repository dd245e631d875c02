"""One document of claims through the real stage, and everything that it came to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.envelope import Envelope
from contracts.messages import ExecutorOutputReady
from tests.pipeline.cases import disk_records
from tests.pipeline.harness import LocalStage, new_run_id
from worker.claims.evaluation import CHANNEL
from worker.offline.judge_log import Received
from worker.offline.judge_script import Behaviour, content
from worker.run.state import Attempt, Run
from worker.run.steps import Step, StepRef
from worker.stage.blobs import SELF_EVALUATION

FULL = "/dev/sdb1 20G 20G 0 100% /var"
"""A line of ``call-df`` in ``tests.pipeline.cases.disk_records``."""

SUCCEEDED = "release_stage.ReleaseSucceeded.v1"
FALLBACK = "release_stage.ReleaseFallback.v1"
ABORTED = "release_stage.ReleaseAborted.v1"
PROMPTS = {
    "planner": {"name": "planner", "version": "7"},
    "executor": {"name": "executor", "version": "12"},
}


def binding(**changes: Any) -> dict[str, Any]:
    """A binding that passes against the disk records."""
    return {
        "invocation_id": "call-df",
        "tool_name": "run_command",
        "raw_path": "$.stdout",
        "matched_text": FULL,
        **changes,
    }


def claim(claim_id: str, text: str, *bindings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A critical claim that the agent confirms; without bindings it gets a good one."""
    return {
        "claim_id": claim_id,
        "text": text,
        "critical": True,
        "confirmed": True,
        "evidence_bindings": list(bindings) or [binding()],
        **changes,
    }


OBSERVED = claim("c1", "100% of the 20G of /dev/sdb1 on /var are used.")
INFERRED = claim("c2", "Writes to /var fail because /dev/sdb1 is full.", critical=False)
MADE_UP = claim("c3", "The index is corrupt.", binding(invocation_id="call-nowhere"))
GAP = {
    "claim_id": "c1",
    "tool_name": "query_logs",
    "critical": True,
    "description": "The log of the writer was not searched.",
}


def document(*claims: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A document; without claims it has the two that the rule judge passes."""
    return {
        "schema_version": "executor_evidence_v2",
        "claims": list(claims) or [OBSERVED, INFERRED],
        "diagnosis_context": {"systems": ["web-1"]},
        **changes,
    }


def answer(output: Mapping[str, Any], *classes: str, **changes: Any) -> Behaviour:
    """A verifier that gives the document's claims these classes, in their order."""
    checks = [
        {
            "claim_id": one["claim_id"],
            "classification": class_,
            "evidence_refs": [
                {name: item[name] for name in ("invocation_id", "tool_name", "raw_path")}
                for item in one["evidence_bindings"]
            ],
        }
        for one, class_ in zip(output["claims"], classes, strict=True)
    ]
    whole = {
        "rationale": "As told by the script.",
        "claim_checks": checks,
        "verdict": "PASS",
        "groundedness_score": 0.9,
        **changes,
    }
    return content(json.dumps(whole))


def output_ready(run_id: str, output: Any, **changes: Any) -> ExecutorOutputReady:
    fields = {
        "run_id": run_id,
        "session_id": "session-1",
        "query": f"Why does checkout fail? ({run_id})",
        "output": output,
        "prompts": PROMPTS,
    }
    return ExecutorOutputReady.model_validate({**fields, **changes}, strict=False)


@dataclass(frozen=True)
class Claimed:
    """A run's end: its record, its one ending, its evaluation, the calls that the judge saw."""

    run: Run
    outcome: Envelope
    container: dict[str, Any]
    calls: list[Received]

    @property
    def ending(self) -> str:
        return str(self.run.ending)

    @property
    def evaluation(self) -> dict[str, Any]:
        evaluation = self.container[CHANNEL]
        assert isinstance(evaluation, dict)
        return evaluation

    @property
    def answer(self) -> dict[str, Any]:
        answer = self.outcome.data["answer"]
        assert isinstance(answer, dict)
        return answer

    def attempts(self, step: Step, round_: int = 0) -> list[Attempt]:
        """The attempts that were made at a step, in order."""
        made = [self.run.attempt(StepRef(round_, step, number)) for number in (1, 2, 3)]
        return [attempt for attempt in made if attempt.grants]

    def outcomes(self, step: Step, round_: int = 0) -> list[str]:
        return [str(attempt.outcome) for attempt in self.attempts(step, round_)]

    def statuses(self) -> list[str]:
        """How far executor, gatekeeper, verifier and composer came."""
        names = ("executor_status", "gatekeeper_status", "verifier_status", "composer_status")
        return [self.evaluation[name] for name in names]


def submit_claims(
    stage: LocalStage, output: Any, *behaviours: Behaviour, run_id: str = "", **changes: Any
) -> str:
    """Submit a document with its records, and the judge's behaviours towards it; its run id."""
    run_id = run_id or new_run_id("claims")
    stage.judge.add(*(one.on(run_id) for one in behaviours))
    stage.record(*disk_records(run_id))
    stage.client.submit_claims(output_ready(run_id, output, **changes))
    return run_id


def claimed(stage: LocalStage, run_id: str) -> Claimed:
    """Wait for the end of a run."""
    outcome = stage.outcome(run_id)
    container = stage.redis.hget(stage.keys.run(run_id), SELF_EVALUATION)
    return Claimed(
        stage.ended(run_id), outcome, json.loads(container), stage.judge.asked_about(run_id)
    )


def judge_claims(stage: LocalStage, output: Any, *behaviours: Behaviour, **changes: Any) -> Claimed:
    """Submit a document and wait for its end; see :func:`submit_claims`."""
    return claimed(stage, submit_claims(stage, output, *behaviours, **changes))
