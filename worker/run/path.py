"""What comes next, and how it ends: pure functions of the record, for both protocols.

Step, repeat, errback, reconciler and admission all hand on through
:func:`next_step`, so a crash between recording and handing on costs nothing.
"""

from worker.run import claims_path, draft_path
from worker.run.policy import Policy
from worker.run.state import Ending, Protocol, Run
from worker.run.steps import Step, StepRef


def next_step(run: Run, policy: Policy) -> StepRef | None:
    """The one step that may start now; None when the run is not open or waits for evidence."""
    if not run.is_open:
        return None
    if run.protocol is Protocol.CLAIMS:
        return claims_path.next_step(run, policy)
    return draft_path.next_step(run, policy)


def decide_ending(run: Run, policy: Policy) -> Ending:
    """The ending that the record calls for when the run is published."""
    if run.protocol is Protocol.CLAIMS:
        return claims_path.decide_ending(run, policy)
    return draft_path.decide_ending(run, policy)


def hand_on(run: Run, policy: Policy) -> StepRef | None:
    """The next step, to be sent at once; None also while it has to wait.

    A provider may ask for a wait before the second attempt. The reconciler sends it
    then: a task that waits in a worker's memory would be lost with that worker.
    """
    step = next_step(run, policy)
    if step is None or step.attempt == 1:
        return step
    before = run.attempt(StepRef(step.round, step.step, step.attempt - 1))
    return None if before.retry_at is not None else step


def after(ref: StepRef) -> tuple[StepRef, ...]:
    """The steps that follow if this one goes well: the rest of a straight chain."""
    straight = {
        Step.CHECK_EVIDENCE: ((Step.REVIEW_SEMANTICS, 1), (Step.PUBLISH, 1)),
        Step.REPAIR_EVIDENCE: (
            (Step.CHECK_EVIDENCE, 2),
            (Step.REVIEW_SEMANTICS, 1),
            (Step.PUBLISH, 1),
        ),
        Step.REVIEW_SEMANTICS: ((Step.PUBLISH, 1),),
        Step.GATE_CLAIMS: ((Step.VERIFY_CLAIMS, 1), (Step.COMPOSE_ANSWER, 1), (Step.PUBLISH, 1)),
        Step.VERIFY_CLAIMS: ((Step.COMPOSE_ANSWER, 1), (Step.PUBLISH, 1)),
        Step.COMPOSE_ANSWER: ((Step.PUBLISH, 1),),
        Step.PUBLISH: (),
    }
    return tuple(StepRef(ref.round, step, attempt) for step, attempt in straight[ref.step])


def due_at(run: Run, policy: Policy) -> float | None:
    """When the reconciler should look at the run again (Redis time); None when it is not open."""
    if not run.is_open:
        return None
    step = next_step(run, policy)
    if step is None:
        wake = run.evidence_until
    else:
        lease_until = run.attempt(step).lease_until
        wake = lease_until if lease_until is not None else run.resend_at
    return run.deadline_at if wake is None else min(wake, run.deadline_at)
