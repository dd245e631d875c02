"""The gatekeeper: code proves that what the claims quote really stands in this run's records."""

from contracts.claims import ExecutorOutput, VerifiedMaterial
from worker.claims.gatekeeper import Gate, gatekeep
from worker.claims.output import bound_ids, known_gaps
from worker.claims.routing import Route, after_gate, requested, retry_context
from worker.claims.verifier import question
from worker.run.events import Answer, Finished
from worker.run.outcomes import AttemptOutcome
from worker.run.steps import StepRef
from worker.stage.blobs import RoundBlobs
from worker.stage.claims_record import REQUESTED
from worker.stage.engine import Report, Stage, apply, claim, not_granted, report
from worker.stage.submission import ClaimsSubmission, read_claims


def gate(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """Check the round's claims and record what passed; the verifier's question is written here."""
    names, before = RoundBlobs(ref.round), RoundBlobs(0)
    claimed = claim(stage, run_id, ref, read=(names.input, before.material))
    if claimed.answer is not Answer.GRANTED:
        return not_granted(claimed, ref)
    submission = read_claims(claimed.stored.blobs[names.input])
    blobs: dict[str, bytes] = {}
    outcome = AttemptOutcome.UNCONCLUDED
    if submission.output is not None:
        records = stage.invocations.fetch(run_id, bound_ids(submission.output))
        found = gatekeep(run_id, submission.output, records, stage.tools)
        blobs[names.gate] = found.result.model_dump_json().encode()
        outcome = AttemptOutcome.VIOLATED
        if found.material is not None and after_gate(found.result.ceiling) is Route.VERIFY:
            outcome = AttemptOutcome.PASSED
            asked = claimed.stored.blobs[before.material] if ref.round else None
            blobs |= _asking(stage, names, submission, submission.output, found, asked)
    finished = Finished(ref, outcome)
    return report(apply(stage, run_id, finished, write=blobs, known=claimed.stored), outcome.value)


def _asking(
    stage: Stage,
    names: RoundBlobs,
    submission: ClaimsSubmission,
    output: ExecutorOutput,
    found: Gate,
    asked: bytes | None,
) -> dict[str, bytes]:
    """What passed, the verifier's question, and what could be asked of the agent.

    ``asked`` is the material of the round that asked for evidence, if one did.
    """
    assert found.material is not None
    retry = None
    if asked is not None:
        retry = retry_context(VerifiedMaterial.model_validate_json(asked).gaps)
    context = output.diagnosis_context
    asking = question(submission.query, context, found.material, found.result, retry)
    return {
        names.material: found.material.model_dump_json().encode(),
        names.question: asking.encode(),
        names.requested: REQUESTED.dump_json(requested(known_gaps(output, stage.tools))),
    }
