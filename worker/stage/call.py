"""One attempt at a guard's model call: claim, ask, record. For repair, review, verifier."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from worker.ports import ModelAnswer, ModelCall, ModelFailure, Stored, Usage
from worker.run.events import Answer, Finished, Used
from worker.run.outcomes import AttemptOutcome
from worker.run.state import Spend, VerifyFacts
from worker.run.steps import StepRef
from worker.stage.engine import Report, Stage, apply, claim, not_granted, report


@dataclass(frozen=True)
class Question:
    """What a guard asks, and its bounds in bytes and tokens.

    ``prompt`` is the prompt's name and version, for the record. ``kept`` is false where the
    user message was over its limit when it was written, and so is not there.
    """

    prompt: str
    system: str
    user: bytes
    answer_name: str
    answer_schema: dict[str, object]
    input_bytes: int
    output_bytes: int
    output_tokens: int
    kept: bool = True

    @property
    def size(self) -> int:
        return len(self.system.encode()) + len(self.user)

    @property
    def too_large(self) -> bool:
        return not self.kept or self.size > self.input_bytes


@dataclass(frozen=True)
class Reading:
    """How a guard read an answer: the outcome, and what to keep beside the record."""

    outcome: AttemptOutcome
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    verify: VerifyFacts | None = None


def attempt_call(
    stage: Stage,
    run_id: str,
    ref: StepRef,
    stored: Stored,
    question: Question,
    read: Callable[[str], Reading],
) -> Report:
    """Make one attempt and record what it came to. The first recorded result stands."""
    spend = Spend(
        model_calls=1,
        input_bytes=question.size,
        output_bytes=question.output_bytes,
        tokens=question.output_tokens,
    )
    claimed = claim(
        stage,
        run_id,
        ref,
        spend=Spend() if question.too_large else spend,
        prompt=question.prompt,
        input_sha256=hashlib.sha256(question.system.encode() + question.user).hexdigest(),
        known=stored,
    )
    if claimed.answer is not Answer.GRANTED or claimed.run is None:
        return not_granted(claimed, ref)
    blobs: Mapping[str, bytes] = {}
    if question.too_large:
        event = Finished(ref, AttemptOutcome.INPUT_TOO_LARGE)
    else:
        timeout = claimed.run.attempt(ref).timeout
        assert timeout is not None, "a granted call has its time fixed"
        event, blobs = _ask(stage, _call(run_id, question, timeout), ref, read)
    finished = apply(stage, run_id, event, write=blobs, known=claimed.stored)
    return report(finished, event.outcome.value)


def timed_out(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """Record that the soft limit ended an attempt that the boundary missed."""
    event = Finished(ref, AttemptOutcome.TIMEOUT)
    return report(apply(stage, run_id, event), event.outcome.value)


def _call(run_id: str, question: Question, timeout: float) -> ModelCall:
    return ModelCall(
        run_id=run_id,
        system=question.system,
        user=question.user.decode(),
        timeout=timeout,
        max_output_bytes=question.output_bytes,
        max_output_tokens=question.output_tokens,
        answer_name=question.answer_name,
        answer_schema=question.answer_schema,
    )


def _ask(
    stage: Stage, call: ModelCall, ref: StepRef, read: Callable[[str], Reading]
) -> tuple[Finished, Mapping[str, bytes]]:
    try:
        answer = stage.model.ask(call)
    except ModelFailure as failure:
        used = Used(tokens=_tokens(failure.usage))
        event = Finished(ref, failure.outcome, used=used, retry_after=failure.retry_after or 0.0)
        return event, {}
    reading = read(answer.text)
    event = Finished(ref, reading.outcome, verify=reading.verify, used=_used(answer))
    return event, reading.blobs


def _used(answer: ModelAnswer) -> Used:
    return Used(output_bytes=len(answer.text.encode()), tokens=_tokens(answer.usage))


def _tokens(usage: Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens
