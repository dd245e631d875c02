"""A run told event by event, for the tests of the reducer."""

from collections.abc import Mapping

from contracts.messages import Budget
from worker.run.events import Admitted, Answer, Cancelled, Claimed, Event, Finished, Published
from worker.run.outcomes import AttemptOutcome
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import Attempt, CheckFacts, Ending, EndingKind, Run, Spend
from worker.run.steps import Step, StepRef

CHECK = StepRef(0, Step.CHECK_EVIDENCE, 1)
RECHECK = StepRef(0, Step.CHECK_EVIDENCE, 2)
REPAIR = StepRef(0, Step.REPAIR_EVIDENCE, 1)
REVIEW = StepRef(0, Step.REVIEW_SEMANTICS, 1)
REREVIEW = StepRef(0, Step.REVIEW_SEMANTICS, 2)
PUBLISH = StepRef(0, Step.PUBLISH, 1)
DRAFT_REFS = (CHECK, REPAIR, RECHECK, REVIEW, REREVIEW, PUBLISH)

GATE, SECOND_GATE = (StepRef(round_, Step.GATE_CLAIMS, 1) for round_ in (0, 1))
VERIFY, SECOND_VERIFY = (StepRef(round_, Step.VERIFY_CLAIMS, 1) for round_ in (0, 1))
REVERIFY, SECOND_REVERIFY = (StepRef(round_, Step.VERIFY_CLAIMS, 2) for round_ in (0, 1))
COMPOSE, SECOND_COMPOSE = (StepRef(round_, Step.COMPOSE_ANSWER, 1) for round_ in (0, 1))
SECOND_PUBLISH = StepRef(1, Step.PUBLISH, 1)
"""``SECOND_`` is round 1, the answer to a request for evidence; ``RE`` is a second attempt."""
CLAIM_REFS = (
    *(GATE, VERIFY, REVERIFY, COMPOSE, PUBLISH),
    *(SECOND_GATE, SECOND_VERIFY, SECOND_REVERIFY, SECOND_COMPOSE, SECOND_PUBLISH),
)
EVERY_REF = tuple(dict.fromkeys((*DRAFT_REFS, *CLAIM_REFS)))

RUN_ID = "run-1"
KEY = "DraftReady/0"
CLAIMS_KEY, ANSWER_KEY = "ExecutorOutputReady/0", "ExecutorOutputReady/1"
START = 1_700_000_000.0
DEFAULTS = Policy()
UNLIMITED = Budget()

SUCCEEDED = Ending(kind=EndingKind.SUCCEEDED)


def aborted(reason: str) -> Ending:
    return Ending(kind=EndingKind.ABORTED, code=reason)


def fallback(type_: str) -> Ending:
    return Ending(kind=EndingKind.FALLBACK, code=type_)


def facts(
    *,
    readable: bool = True,
    stopped: bool = False,
    concluded: bool = True,
    violations: int = 0,
    named_calls: bool = True,
    verified: bool = True,
    missing_context: bool = False,
) -> CheckFacts:
    """What a check found; as it stands, a concluded draft with sound evidence."""
    return CheckFacts(
        readable=readable,
        stopped=stopped,
        concluded=concluded,
        violations=violations,
        named_calls=named_calls,
        verified=verified,
        missing_context=missing_context,
    )


def record(outcomes: Mapping[StepRef, AttemptOutcome], check: CheckFacts | None = None) -> Run:
    """An open run in which these attempts came to these outcomes, a second of call time each."""
    found = check or facts()
    return Run(
        run_id=RUN_ID,
        opened_at=START,
        deadline_at=START + 900,
        attempts={
            ref.key: Attempt(
                grants=1,
                claimed_at=START,
                ended_at=START + 1,
                timeout=60.0,
                outcome=outcome,
                check=found if ref.step is Step.CHECK_EVIDENCE else None,
            )
            for ref, outcome in outcomes.items()
        },
    )


def assert_stamped(before: Run | None, run: Run, now: float) -> None:
    """What has come to its end says when, is held by nobody and is not sent again."""
    if run.ending is not None and (before is None or before.ending is None):
        assert run.ended_at == now
        assert run.resend_at is None
    for key, attempt in run.attempts.items():
        was = None if before is None else before.attempts.get(key)
        if attempt.outcome is not None and (was is None or was.outcome is None):
            assert attempt.ended_at == now
            assert attempt.lease_until is None


class Story:
    """One run and a clock (seconds). Between two events the record passes through its JSON."""

    def __init__(
        self,
        *,
        policy: Policy = DEFAULTS,
        deadline: float = 900.0,
        budget: Budget = UNLIMITED,
        admitted: bool = True,
    ) -> None:
        self.policy = policy
        self.now = START
        self.found: Run | None = None
        self.opening = Admitted(
            run_id=RUN_ID,
            key=KEY,
            sha256="a" * 64,
            session_id="s-1",
            deadline_at=START + deadline,
            budget=budget,
        )
        if admitted:
            assert self.hears(self.opening) is Answer.OPENED

    @property
    def run(self) -> Run:
        assert self.found is not None
        return self.found

    @property
    def ending(self) -> Ending | None:
        return self.run.ending

    def after(self, seconds: float) -> "Story":
        """Let time pass."""
        self.now += seconds
        return self

    def hears(self, event: Event) -> Answer:
        """Decide one event now and keep what was decided."""
        decision = decide(self.found, event, self.now, self.policy)
        kept = decision.run
        if kept is not None:
            again = Run.model_validate_json(kept.model_dump_json(exclude_defaults=True))
            assert again == kept, "a record must survive its JSON"
            kept = self.found if kept is self.found else again
            assert_stamped(self.found, kept, self.now)
        self.found = kept
        return decision.answer

    def claims(self, ref: StepRef, *, spend: Spend | None = None) -> Answer:
        return self.hears(Claimed(ref, spend=spend))

    def carries_out(
        self, ref: StepRef, outcome: AttemptOutcome, check: CheckFacts | None = None
    ) -> "Story":
        """Claim an attempt and finish it at once, as a worker does."""
        assert self.claims(ref) is Answer.GRANTED
        if ref.step is Step.CHECK_EVIDENCE:
            check = check or facts(violations=int(outcome is AttemptOutcome.VIOLATED))
        assert self.hears(Finished(ref, outcome, check=check)) in (Answer.RECORDED, Answer.ENDED)
        return self

    def publishes(self) -> Ending:
        """Claim and decide, as the publishing step does."""
        assert self.claims(PUBLISH) is Answer.GRANTED
        assert self.hears(Published(PUBLISH)) is Answer.ENDED
        assert self.run.ending is not None
        return self.run.ending

    def is_cancelled(self) -> Answer:
        return self.hears(Cancelled(RUN_ID))
