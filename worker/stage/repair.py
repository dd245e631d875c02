"""The evidence repair: a model mends references once, and nothing that a reader can see."""

from worker.guards import repair as guard
from worker.guards.answers import OffSchema, Unparseable
from worker.run.outcomes import AttemptOutcome
from worker.run.steps import StepRef
from worker.stage.blobs import INPUT, REPAIRED_DRAFT, violations_blob
from worker.stage.call import Question, Reading, attempt_call
from worker.stage.check import read_violations
from worker.stage.engine import Report, Stage
from worker.stage.submission import read_submission


def repair(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """Ask once for a draft with sound references; any visible difference is ALTERED."""
    stored = stage.records.load(run_id, (INPUT, violations_blob(1)))
    submission = read_submission(stored.blobs[INPUT])
    original = submission.draft
    assert original is not None, "an unreadable draft is never repaired"
    violations = read_violations(stored.blobs[violations_blob(1)])
    question = Question(
        prompt=f"{guard.PROMPT_NAME}/{guard.PROMPT_VERSION}",
        system=guard.SYSTEM,
        user=guard.question(submission.query, original, violations).encode(),
        answer_name=guard.ANSWER_NAME,
        answer_schema=guard.ANSWER_SCHEMA,
        input_bytes=stage.limits.repair_input_bytes,
        output_bytes=stage.limits.repair_output_bytes,
        output_tokens=stage.limits.repair_output_tokens,
    )

    def read(text: str) -> Reading:
        try:
            repaired = guard.parse_answer(text)
        except Unparseable:
            return Reading(AttemptOutcome.UNPARSEABLE)
        except OffSchema:
            return Reading(AttemptOutcome.OFF_SCHEMA)
        if not guard.accept(original, repaired):
            return Reading(AttemptOutcome.ALTERED)
        kept = guard.mended(original, repaired).model_dump_json(exclude_unset=True).encode()
        return Reading(AttemptOutcome.REPAIRED, {REPAIRED_DRAFT: kept})

    return attempt_call(stage, run_id, ref, stored, question, read)
