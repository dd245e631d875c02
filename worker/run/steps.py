"""The steps of a run and their ids.

A step's task id is a pure function of run, round, step and attempt, so a
repeated delivery is recognised and a whole run can be revoked without looking
anything up.
"""

from enum import StrEnum
from typing import NamedTuple
from uuid import UUID, uuid5

_NAMESPACE = UUID("6f1c2f0e-6d1b-5b0f-9d0f-2f5a1e8c7a41")


class Step(StrEnum):
    CHECK_EVIDENCE = "check_evidence"
    REPAIR_EVIDENCE = "repair_evidence"
    REVIEW_SEMANTICS = "review_semantics"

    GATE_CLAIMS = "gate_claims"
    VERIFY_CLAIMS = "verify_claims"
    COMPOSE_ANSWER = "compose_answer"

    PUBLISH = "publish"


MODEL_STEPS = frozenset({Step.REPAIR_EVIDENCE, Step.REVIEW_SEMANTICS, Step.VERIFY_CLAIMS})
"""Steps that ask a model. A lost one is a used attempt; any other is granted again."""


class StepRef(NamedTuple):
    """One attempt at one step of one round; rounds count from 0, attempts from 1."""

    round: int
    step: Step
    attempt: int

    @property
    def key(self) -> str:
        return f"{self.round}.{self.step}.{self.attempt}"


def task_id(run_id: str, ref: StepRef) -> str:
    """The id of the Celery task that carries out this attempt."""
    return str(uuid5(_NAMESPACE, f"{run_id}/{ref.key}"))


def errback_id(run_id: str, ref: StepRef, grant: int) -> str:
    """The id of the task that reports the loss of this attempt's ``grant``-th start."""
    return str(uuid5(_NAMESPACE, f"{run_id}/{ref.key}/lost/{grant}"))


def message_id(run_id: str, message_type: str, round_: int) -> str:
    """The stable id of an outgoing message: consumers drop repeats by it."""
    return str(uuid5(_NAMESPACE, f"{run_id}/{message_type}/{round_}"))


def every_ref(rounds: int, attempts: int) -> tuple[StepRef, ...]:
    """All attempts that a run can have, for revoking it whole."""
    return tuple(
        StepRef(round_, step, attempt)
        for round_ in range(rounds)
        for step in Step
        for attempt in range(1, attempts + 1)
    )
