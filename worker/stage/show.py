"""The evaluation record of a run, for the people on call: what was decided, and why.

Reasons and violations live here and only here; nothing of it is sent anywhere.
"""

from typing import Any

from contracts.strict_json import parse
from worker.guards import repair as repair_guard
from worker.guards import review as review_guard
from worker.ports import Records
from worker.run.policy import Policy
from worker.run.steps import Step, StepRef
from worker.stage.check import violations_blob
from worker.stage.review import reason_blob

_ROUND = 0


def show(records: Records, policy: Policy, run_id: str) -> dict[str, Any] | None:
    """The record as plain JSON data; None when there is no such run."""
    numbers = range(1, policy.review_attempts + 1)
    reasons = {number: reason_blob(number) for number in numbers}
    violations = {number: violations_blob(number) for number in (1, 2)}
    stored = records.load(run_id, (*reasons.values(), *violations.values()))
    run = stored.run
    if run is None:
        return None
    record: dict[str, Any] = run.model_dump(mode="json", exclude_defaults=True)
    attempts = record.get("attempts", {})
    for step, blobs, name in (
        (Step.REVIEW_SEMANTICS, reasons, "reason"),
        (Step.CHECK_EVIDENCE, violations, "violations"),
    ):
        for number, blob in blobs.items():
            key = StepRef(_ROUND, step, number).key
            if blob in stored.blobs and key in attempts:
                text = stored.blobs[blob]
                attempts[key][name] = text.decode() if name == "reason" else parse(text)
    record["prompts"] = {
        guard.PROMPT_NAME: guard.PROMPT_VERSION for guard in (review_guard, repair_guard)
    }
    return record
