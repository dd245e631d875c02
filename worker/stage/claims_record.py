"""What a claims run keeps beside its record, round by round, and its evaluation."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import TypeAdapter

from contracts.base import Contract
from contracts.claims import (
    ComposedAnswer,
    GatekeeperResult,
    VerifiedMaterial,
    VerifierAnswer,
)
from contracts.claims_evaluation import ComposerOutput, ComposerStatus
from contracts.messages import RequestedEvidence
from contracts.strict_json import canonical, parse
from worker.claims.evaluation import build_evaluation, merged
from worker.run.model_time import outcomes
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.state import EndingKind, Protocol, Run
from worker.run.steps import Step
from worker.stage.blobs import SELF_EVALUATION, RoundBlobs
from worker.stage.submission import read_claims

REQUESTED = TypeAdapter(tuple[RequestedEvidence, ...])

T = TypeVar("T", bound=Contract)


def evaluate(run: Run, blobs: Mapping[str, bytes], policy: Policy) -> dict[str, bytes]:
    """Write the evaluation of an ended run of claims into its container; nothing is made up.

    The record of a draft is its own evaluation, so there is none to write.
    """
    if run.protocol is not Protocol.CLAIMS:
        return {}
    names = RoundBlobs(run.round)
    submission = read_claims(blobs[names.input])
    gate = _read(GatekeeperResult, blobs.get(names.gate))
    material = _read(VerifiedMaterial, blobs.get(names.material))
    answer = _read(VerifierAnswer, blobs.get(names.answer))
    composed = _read(ComposerOutput, blobs.get(names.composer))
    came_to = outcomes(run, run.round, Step.VERIFY_CLAIMS, policy)
    failure = came_to[-1] if came_to and answer is None else None
    assert run.ending is not None
    evaluation = build_evaluation(
        submission.prompts,
        readable=submission.output is not None,
        gate=gate,
        material=material,
        answer=answer,
        verifier_failure=failure,
        composed=None if composed is None else (_composer_status(run), composed),
        retries=0 if run.evidence_until is None else 1,
        reasons=(run.ending.code,) if run.ending.kind is EndingKind.ABORTED else (),
    )
    before = parse(blobs[SELF_EVALUATION]) if SELF_EVALUATION in blobs else {}
    return {SELF_EVALUATION: canonical(merged(before, evaluation))}


def composed_answer(run: Run, blobs: Mapping[str, bytes]) -> ComposedAnswer:
    """The reader's answer; raises KeyError where none was composed."""
    return ComposedAnswer.model_validate_json(blobs[RoundBlobs(run.round).composed])


def _composer_status(run: Run) -> ComposerStatus:
    if run.outcome(run.round, Step.COMPOSE_ANSWER, 1) is AttemptOutcome.BARE:
        return ComposerStatus.FALLBACK
    return ComposerStatus.COMPLETED


def _read(model: type[T], blob: bytes | None) -> T | None:
    return None if blob is None else model.model_validate_json(blob)
