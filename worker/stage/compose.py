"""The composer: the reader's answer, put together by code from what was verified."""

from contracts.claims import GatekeeperResult, VerifiedMaterial, VerifierAnswer
from contracts.claims_evaluation import ComposerStatus
from worker.claims.composer import compose as put_together
from worker.claims.verdict import final_verdict
from worker.guards.fallback import choose_locale
from worker.run.events import Answer, Finished
from worker.run.outcomes import AttemptOutcome
from worker.run.steps import StepRef
from worker.stage.blobs import RoundBlobs
from worker.stage.engine import Report, Stage, apply, claim, not_granted, report


def compose(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """Compose the round's answer. One over its limits is the bare template, and says so."""
    names = RoundBlobs(ref.round)
    claimed = claim(stage, run_id, ref, read=(names.material, names.answer, names.gate))
    run = claimed.run
    if claimed.answer is not Answer.GRANTED or run is None:
        return not_granted(claimed, ref)
    blobs = claimed.stored.blobs
    material = VerifiedMaterial.model_validate_json(blobs[names.material])
    answer = VerifierAnswer.model_validate_json(blobs[names.answer])
    ceiling = GatekeeperResult.model_validate_json(blobs[names.gate]).ceiling
    composition = put_together(
        final_verdict(answer, material, ceiling),
        material,
        answer.claim_checks,
        choose_locale(run.locale, stage.locale),
    )
    bare = composition.status is ComposerStatus.FALLBACK
    finished = Finished(ref, AttemptOutcome.BARE if bare else AttemptOutcome.COMPOSED)
    kept = {
        names.composed: composition.answer.model_dump_json().encode(),
        names.composer: composition.output.model_dump_json().encode(),
    }
    return report(
        apply(stage, run_id, finished, write=kept, known=claimed.stored), finished.outcome.value
    )
