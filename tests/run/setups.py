"""One world to explore: its rules, the message that opens its run, what may come out of steps."""

from collections.abc import Mapping
from dataclasses import dataclass

from contracts.claims import Verdict
from contracts.messages import Budget
from tests.run.story import CLAIM_REFS, CLAIMS_KEY, DRAFT_REFS, KEY, RUN_ID
from worker.run.events import Admitted, Claimed, Event, Finished, Published, Used
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.state import CheckFacts, Protocol, Spend, VerifyFacts
from worker.run.steps import MODEL_STEPS, Step, StepRef

CALL = Spend(model_calls=1, input_bytes=1, output_bytes=2, tokens=4)

VERDICTS = (
    VerifyFacts(effective=Verdict.PASS, final=Verdict.PASS, wants_evidence=False),
    VerifyFacts(effective=Verdict.LOW_CONFID, final=Verdict.LOW_CONFID, wants_evidence=True),
    VerifyFacts(effective=Verdict.LOW_CONFID, final=Verdict.LOW_CONFID, wants_evidence=False),
    VerifyFacts(effective=Verdict.REJECT, final=Verdict.REJECT, wants_evidence=False),
)
"""What a verifier may come to."""

EXPLORED = "explored"
"""The property under which a test leaves its line for the summary."""


@dataclass(frozen=True)
class Setup:
    """One world to explore: the rules, the message that opens the run, and what may come out."""

    policy: Policy
    deadline: float
    budget: Budget
    outcomes: Mapping[Step, tuple[AttemptOutcome, ...]]
    usages: tuple[Used | None, ...] = (None,)
    protocol: Protocol = Protocol.DRAFT

    @property
    def opening(self) -> Admitted:
        key = CLAIMS_KEY if self.protocol is Protocol.CLAIMS else KEY
        return Admitted(
            RUN_ID, key, "a", "s-1", self.deadline, protocol=self.protocol, budget=self.budget
        )

    @property
    def refs(self) -> tuple[StepRef, ...]:
        return CLAIM_REFS if self.protocol is Protocol.CLAIMS else DRAFT_REFS


def claim(ref: StepRef) -> Claimed:
    """The claim of a worker that wants to carry out a step."""
    return Claimed(ref, spend=CALL if ref.step in MODEL_STEPS else None)


def success(ref: StepRef) -> Event:
    """What a sound worker makes of a step that it was granted."""
    match ref.step:
        case Step.CHECK_EVIDENCE:
            return Finished(ref, AttemptOutcome.PASSED, check=found_by_check(AttemptOutcome.PASSED))
        case Step.GATE_CLAIMS:
            return Finished(ref, AttemptOutcome.PASSED)
        case Step.REPAIR_EVIDENCE:
            return Finished(ref, AttemptOutcome.REPAIRED)
        case Step.REVIEW_SEMANTICS:
            return Finished(ref, AttemptOutcome.SUPPORTED)
        case Step.VERIFY_CLAIMS:
            return Finished(ref, AttemptOutcome.VERIFIED, verify=VERDICTS[0])
        case Step.COMPOSE_ANSWER:
            return Finished(ref, AttemptOutcome.COMPOSED)
        case Step.PUBLISH:
            return Published(ref)


def found_by_check(outcome: AttemptOutcome) -> CheckFacts:
    """The facts that go with a check's outcome."""
    return CheckFacts(
        readable=True,
        stopped=False,
        concluded=outcome is not AttemptOutcome.UNCONCLUDED,
        violations=int(outcome is AttemptOutcome.VIOLATED),
        named_calls=True,
        verified=outcome is AttemptOutcome.PASSED,
        missing_context=False,
    )
