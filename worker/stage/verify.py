"""The verifier: an isolated model classifies the claims, and code has the last word."""

from contracts.claims import GatekeeperResult, VerifiedMaterial
from worker.claims import verifier as guard
from worker.claims.routing import Route, after_verifier
from worker.claims.verdict import effective_verdict, final_verdict
from worker.guards.answers import OffSchema, Unparseable
from worker.run.outcomes import AttemptOutcome
from worker.run.state import VerifyFacts
from worker.run.steps import StepRef
from worker.stage.blobs import RoundBlobs
from worker.stage.call import Question, Reading, attempt_call
from worker.stage.engine import Report, Stage


def verify(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """Make one attempt at the verification. Both attempts send the question that the gate wrote."""
    names = RoundBlobs(ref.round)
    stored = stage.records.load(run_id, (names.question, names.material, names.gate))
    question = Question(
        prompt=f"{guard.PROMPT_NAME}/{guard.PROMPT_VERSION}",
        system=guard.SYSTEM,
        user=stored.blobs.get(names.question, b""),
        answer_name=guard.ANSWER_NAME,
        answer_schema=guard.ANSWER_SCHEMA,
        input_bytes=stage.limits.review_input_bytes,
        output_bytes=stage.limits.verifier_output_bytes,
        output_tokens=stage.limits.verifier_output_tokens,
    )

    def read(text: str) -> Reading:
        material = VerifiedMaterial.model_validate_json(stored.blobs[names.material])
        ceiling = GatekeeperResult.model_validate_json(stored.blobs[names.gate]).ceiling
        try:
            answer = guard.parse_answer(text, material)
        except Unparseable:
            return Reading(AttemptOutcome.UNPARSEABLE)
        except OffSchema:
            return Reading(AttemptOutcome.OFF_SCHEMA)
        effective = effective_verdict(answer.verdict, material.claims, answer.claim_checks, ceiling)
        route = after_verifier(effective, ceiling, material.gaps, ref.round)
        facts = VerifyFacts(
            effective=effective,
            final=final_verdict(answer, material, ceiling),
            wants_evidence=route is Route.REQUEST_EVIDENCE,
        )
        kept = {names.answer: answer.model_dump_json().encode()}
        return Reading(AttemptOutcome.VERIFIED, kept, facts)

    return attempt_call(stage, run_id, ref, stored, question, read)
