"""The path of claims: what follows, what waits, and how it ends."""

import pytest

from contracts.claims import Verdict
from contracts.messages import Budget
from worker.run.events import (
    Admitted,
    Answer,
    Cancelled,
    Claimed,
    Event,
    Finished,
    Published,
    Ticked,
)
from worker.run.outcomes import AttemptOutcome as Outcome
from worker.run.path import after, decide_ending, due_at, next_step
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import Attempt, Protocol, Run, VerifyFacts
from worker.run.steps import Step, StepRef

POLICY = Policy()
START = 1_700_000_000.0
DEADLINE = START + 900
PASS, LOW, REJECT = Verdict.PASS, Verdict.LOW_CONFID, Verdict.REJECT


class Story:
    """A run of claims, told event by event."""

    def __init__(self, deadline: float = DEADLINE) -> None:
        self.now = START
        self.run: Run | None = None
        self.deadline = deadline
        self.says(self.output())

    def output(self, round_: int = 0, sha: str = "a") -> Admitted:
        return Admitted(
            run_id="run-1",
            key=f"ExecutorOutputReady/{round_}",
            sha256=sha,
            session_id="s-1",
            deadline_at=self.deadline,
            protocol=Protocol.CLAIMS,
            round=round_,
            budget=Budget(),
        )

    def says(self, event: Event) -> Answer:
        decision = decide(self.run, event, self.now, POLICY)
        self.run = decision.run
        return decision.answer

    @property
    def next(self) -> StepRef | None:
        assert self.run is not None
        return next_step(self.run, POLICY)

    def does(
        self, step: Step, outcome: Outcome, verify: VerifyFacts | None = None, attempt: int = 1
    ) -> Answer:
        assert self.run is not None
        ref = StepRef(self.run.round, step, attempt)
        assert self.next == ref
        assert self.says(Claimed(ref)) is Answer.GRANTED
        return self.says(Finished(ref, outcome, verify=verify))

    def ends(self) -> str:
        assert self.run is not None
        ref = StepRef(self.run.round, Step.PUBLISH, 1)
        assert self.next == ref
        self.says(Claimed(ref))
        assert self.says(Published(ref)) is Answer.ENDED
        return str(self.run.ending)


def facts(final: Verdict, *, wants: bool = False) -> VerifyFacts:
    return VerifyFacts(effective=final, final=final, wants_evidence=wants)


def waiting() -> Story:
    """A run that has asked for evidence."""
    story = Story()
    story.does(Step.GATE_CLAIMS, Outcome.PASSED)
    story.does(Step.VERIFY_CLAIMS, Outcome.VERIFIED, facts(LOW, wants=True))
    return story


@pytest.mark.scenario("claim-routing", "Endings by verdict")
@pytest.mark.parametrize(
    ("final", "composed", "ending"),
    [
        (PASS, Outcome.COMPOSED, "SUCCEEDED"),
        (PASS, Outcome.BARE, "LOW_CONFIDENCE"),
        (LOW, Outcome.COMPOSED, "LOW_CONFIDENCE"),
        (LOW, Outcome.BARE, "LOW_CONFIDENCE"),
        (REJECT, Outcome.COMPOSED, "CLAIMS_REJECTED"),
        (REJECT, Outcome.BARE, "CLAIMS_REJECTED"),
    ],
)
def test_the_ending_follows_from_verdict_and_composer(
    final: Verdict, composed: Outcome, ending: str
) -> None:
    """Only a PASS whose answer was composed is released."""
    story = Story()
    story.does(Step.GATE_CLAIMS, Outcome.PASSED)
    story.does(Step.VERIFY_CLAIMS, Outcome.VERIFIED, facts(final))
    story.does(Step.COMPOSE_ANSWER, composed)
    assert story.ends() == ending


@pytest.mark.parametrize("outcome", [Outcome.VIOLATED, Outcome.UNCONCLUDED])
def test_a_failed_gate_asks_no_model(outcome: Outcome) -> None:
    """A rejected or unreadable output ends before any verifier."""
    story = Story()
    story.does(Step.GATE_CLAIMS, outcome)
    assert story.ends() == "PRE_VERIFICATION"


def test_a_verifier_that_fails_twice_leaves_no_verdict() -> None:
    """Two technical failures end as if nothing had been verified."""
    story = Story()
    story.does(Step.GATE_CLAIMS, Outcome.PASSED)
    story.does(Step.VERIFY_CLAIMS, Outcome.OFF_SCHEMA)
    story.does(Step.VERIFY_CLAIMS, Outcome.TIMEOUT, attempt=2)
    assert story.ends() == "PRE_VERIFICATION"


def test_a_lost_verifier_call_is_a_used_attempt() -> None:
    """It is charged before it starts, never made again, and the second attempt follows."""
    story = Story()
    story.does(Step.GATE_CLAIMS, Outcome.PASSED)
    first = StepRef(0, Step.VERIFY_CLAIMS, 1)
    assert story.says(Claimed(first)) is Answer.GRANTED
    assert story.run is not None
    assert story.run.spent.model_calls == 1
    assert story.run.attempt(first).timeout == POLICY.attempt_timeout
    story.now += POLICY.lease(Step.VERIFY_CLAIMS)
    assert story.says(Claimed(first)) is Answer.DONE
    assert story.run.attempt(first).outcome is Outcome.LOST
    assert story.next == StepRef(0, Step.VERIFY_CLAIMS, 2)


def test_a_second_attempt_may_verify() -> None:
    """The answer of the second attempt counts."""
    story = Story()
    story.does(Step.GATE_CLAIMS, Outcome.PASSED)
    story.does(Step.VERIFY_CLAIMS, Outcome.UNPARSEABLE)
    story.does(Step.VERIFY_CLAIMS, Outcome.VERIFIED, facts(PASS), attempt=2)
    story.does(Step.COMPOSE_ANSWER, Outcome.COMPOSED)
    assert story.ends() == "SUCCEEDED"


def test_a_run_that_asked_waits_until_its_reserve() -> None:
    """While it waits nothing may start, and the reconciler looks when the wait is over."""
    story = waiting()
    assert story.run is not None
    assert story.next is None
    assert due_at(story.run, POLICY) == DEADLINE - POLICY.evidence_reserve
    before = story.run
    story.now = DEADLINE - POLICY.evidence_reserve - 0.001
    assert story.says(Ticked()) is Answer.WAIT
    assert story.run is before


def test_the_answer_that_was_asked_for_opens_round_one() -> None:
    """Round 1 goes through gate and verifier again, and cannot ask once more."""
    story = waiting()
    assert story.says(story.output(1)) is Answer.CONTINUED
    story.does(Step.GATE_CLAIMS, Outcome.PASSED)
    story.does(Step.VERIFY_CLAIMS, Outcome.VERIFIED, facts(LOW, wants=True))
    assert story.next == StepRef(1, Step.COMPOSE_ANSWER, 1)
    story.does(Step.COMPOSE_ANSWER, Outcome.COMPOSED)
    assert story.ends() == "LOW_CONFIDENCE"


def test_a_malformed_round_one_ends_before_verification() -> None:
    """What round 0 found no longer counts."""
    story = waiting()
    story.says(story.output(1))
    story.does(Step.GATE_CLAIMS, Outcome.UNCONCLUDED)
    assert story.ends() == "PRE_VERIFICATION"


def test_a_wait_that_is_over_goes_on_without_an_answer() -> None:
    """The run composes from round 0, and a later answer is recorded and ignored."""
    story = waiting()
    story.now = DEADLINE - POLICY.evidence_reserve
    assert story.says(Ticked()) is Answer.SEND
    assert story.next == StepRef(0, Step.COMPOSE_ANSWER, 1)
    assert story.says(story.output(1)) is Answer.IGNORED
    assert story.says(story.output(1)) is Answer.REPEATED
    story.does(Step.COMPOSE_ANSWER, Outcome.COMPOSED)
    assert story.ends() == "LOW_CONFIDENCE"


def test_round_one_is_refused_when_nobody_asked() -> None:
    """Neither an open run nor no run at all takes an answer that was not asked for."""
    story = Story()
    assert story.says(story.output(1)) is Answer.CONFLICT
    assert decide(None, story.output(1), START, POLICY).answer is Answer.CONFLICT


def test_a_run_belongs_to_the_protocol_that_opened_it() -> None:
    """A draft under the id of a claims run is a conflict."""
    story = waiting()
    draft = Admitted("run-1", "DraftReady/0", "b", "s-1", DEADLINE)
    assert story.says(draft) is Answer.CONFLICT


def test_too_little_time_asks_for_nothing() -> None:
    """A run that could not wait composes at once."""
    story = Story(deadline=START + POLICY.evidence_reserve)
    story.does(Step.GATE_CLAIMS, Outcome.PASSED)
    story.does(Step.VERIFY_CLAIMS, Outcome.VERIFIED, facts(LOW, wants=True))
    assert story.next == StepRef(0, Step.COMPOSE_ANSWER, 1)


def test_a_waiting_run_can_be_cancelled() -> None:
    """Cancelling ends the wait, and the answer that comes later is ignored."""
    story = waiting()
    assert story.says(Cancelled("run-1")) is Answer.ENDED
    assert story.says(story.output(1)) is Answer.IGNORED
    assert story.run is not None
    assert str(story.run.ending) == "CANCELLED"


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("round_", [0, 1])
def test_the_straight_path_of_claims(round_: int, attempt: int) -> None:
    """One chain: gate, verify, compose, publish, each its first attempt in the same round."""
    chain = tuple(
        StepRef(round_, step, 1)
        for step in (Step.GATE_CLAIMS, Step.VERIFY_CLAIMS, Step.COMPOSE_ANSWER, Step.PUBLISH)
    )
    for position, ref in enumerate(chain):
        assert after(ref._replace(attempt=attempt)) == chain[position + 1 :]


STRANGE: list[tuple[str, dict[Step, Attempt]]] = [
    ("nothing is on record", {}),
    ("the gate alone", {Step.GATE_CLAIMS: Attempt(outcome=Outcome.PASSED)}),
    (
        "an answer that nobody verified",
        {
            Step.GATE_CLAIMS: Attempt(outcome=Outcome.PASSED),
            Step.COMPOSE_ANSWER: Attempt(outcome=Outcome.COMPOSED),
        },
    ),
    (
        "a verdict without an answer",
        {
            Step.GATE_CLAIMS: Attempt(outcome=Outcome.PASSED),
            Step.VERIFY_CLAIMS: Attempt(outcome=Outcome.VERIFIED, verify=facts(PASS)),
        },
    ),
    (
        "a verdict and an answer without a gate",
        {
            Step.VERIFY_CLAIMS: Attempt(outcome=Outcome.VERIFIED, verify=facts(PASS)),
            Step.COMPOSE_ANSWER: Attempt(outcome=Outcome.COMPOSED),
        },
    ),
    *(
        (
            f"a verdict under {outcome}",
            {
                Step.GATE_CLAIMS: Attempt(outcome=Outcome.PASSED),
                Step.VERIFY_CLAIMS: Attempt(outcome=outcome, verify=facts(PASS)),
                Step.COMPOSE_ANSWER: Attempt(outcome=Outcome.COMPOSED),
            },
        )
        for outcome in sorted(set(Outcome) - {Outcome.VERIFIED})
    ),
]


@pytest.mark.parametrize("attempts", [row[1] for row in STRANGE], ids=[row[0] for row in STRANGE])
def test_a_strange_record_of_claims_releases_nothing(attempts: dict[Step, Attempt]) -> None:
    """Gate, verdict and answer must all be on record, or there is no release and no verdict."""
    run = Story().run
    assert run is not None
    for step, attempt in attempts.items():
        run = run.with_attempt(StepRef(0, step, 1), attempt)
    assert str(decide_ending(run, POLICY)) == "PRE_VERIFICATION"
