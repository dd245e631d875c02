"""The semantic review: an isolated model says whether the report follows from the evidence."""

from worker.guards import review as guard
from worker.guards.answers import OffSchema, Unparseable
from worker.run.outcomes import AttemptOutcome
from worker.run.steps import StepRef
from worker.stage.blobs import QUESTION, reason_blob
from worker.stage.call import Question, Reading, attempt_call
from worker.stage.engine import Report, Stage

_OUTCOMES = {
    guard.Verdict.SUPPORTED: AttemptOutcome.SUPPORTED,
    guard.Verdict.UNSUPPORTED: AttemptOutcome.UNSUPPORTED,
}


def review(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """Make one attempt at the review. Both attempts send the question that the check wrote."""
    stored = stage.records.load(run_id, (QUESTION,))
    question = Question(
        prompt=f"{guard.PROMPT_NAME}/{guard.PROMPT_VERSION}",
        system=guard.SYSTEM,
        user=stored.blobs.get(QUESTION, b""),
        answer_name=guard.ANSWER_NAME,
        answer_schema=guard.ANSWER_SCHEMA,
        input_bytes=stage.limits.review_input_bytes,
        output_bytes=stage.limits.review_output_bytes,
        output_tokens=stage.limits.review_output_tokens,
        kept=QUESTION in stored.blobs,
    )

    def read(text: str) -> Reading:
        try:
            answer = guard.parse_answer(text)
        except Unparseable:
            return Reading(AttemptOutcome.UNPARSEABLE)
        except OffSchema:
            return Reading(AttemptOutcome.OFF_SCHEMA)
        reason = {reason_blob(ref.attempt): answer.reason.encode()}
        return Reading(_OUTCOMES[answer.verdict], reason)

    return attempt_call(stage, run_id, ref, stored, question, read)
