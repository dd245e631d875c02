"""The evaluation record of a run, for the people on call: what was decided, and why.

Reasons and violations live here and only here; nothing of it is sent anywhere.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from contracts.draft import DiagnosisDraft
from contracts.strict_json import parse
from worker.guards.mending import mendings
from worker.ports import Records
from worker.run.policy import Policy
from worker.run.steps import Step, StepRef
from worker.stage.blobs import INPUT, REPAIRED_DRAFT, SELF_EVALUATION, reason_blob, violations_blob
from worker.stage.submission import read_submission

_ROUND = 0


def show(records: Records, policy: Policy, run_id: str) -> dict[str, Any] | None:
    """The record as plain JSON data; None when there is no such run.

    A run of claims has its container of evaluations under ``self_evaluation``.
    """
    numbers = range(1, policy.review_attempts + 1)
    reasons = {number: reason_blob(number) for number in numbers}
    violations = {number: violations_blob(number) for number in (1, 2)}
    whole = (INPUT, REPAIRED_DRAFT, SELF_EVALUATION)
    stored = records.load(run_id, (*reasons.values(), *violations.values(), *whole))
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
    repair = attempts.get(StepRef(_ROUND, Step.REPAIR_EVIDENCE, 1).key)
    if repair is not None and REPAIRED_DRAFT in stored.blobs:
        repair["mended"] = _mended(stored.blobs)
    if SELF_EVALUATION in stored.blobs:
        record["self_evaluation"] = parse(stored.blobs[SELF_EVALUATION])
    return record


def _mended(blobs: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Tell what the repair changed: the place, and the ids before and after."""
    original = read_submission(blobs[INPUT]).draft
    assert original is not None, "an unreadable draft is never repaired"
    repaired = DiagnosisDraft.model_validate_json(blobs[REPAIRED_DRAFT])
    return [asdict(mending) for mending in mendings(original, repaired)]
