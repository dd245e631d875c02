"""Every interleaving that one run can see: one ending, no unsafe release, always an end.

Two workers claim, finish with each outcome or die; somebody cancels; the reconciler
looks; errbacks come, twice and of starts that never were; messages are lost, repeated
and late, since any worker may claim any step at any moment; and the clock steps over
each call's time, each lease, each wait and the deadline. The reducer is the only
judge of a run, so what holds here holds for the system.

``EXPLORE=deep`` makes the worlds larger: every outcome, three starts, a longer life.
"""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from contracts.messages import Budget
from tests.run.exploration import Exploration, World
from tests.run.normal_form import normal_form
from tests.run.setups import EXPLORED, Setup, claim, success
from tests.run.story import (
    COMPOSE,
    EVERY_REF,
    PUBLISH,
    REPAIR,
    REREVIEW,
    REVERIFY,
    REVIEW,
    SECOND_PUBLISH,
    SECOND_REVERIFY,
    SECOND_VERIFY,
    VERIFY,
)
from worker.run.events import Answer, Ticked, Used
from worker.run.outcomes import RETRYABLE, AttemptOutcome
from worker.run.path import due_at, next_step
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import Protocol, Run
from worker.run.steps import MODEL_STEPS, Step

O = AttemptOutcome  # noqa: E741  # the tables below are read by their outcomes
DEEP = os.environ.get("EXPLORE") == "deep"
CALLS = tuple(ref for ref in EVERY_REF if ref.step in MODEL_STEPS)

FAST = Policy(
    attempt_timeout=2,
    soft_margin=0.5,
    hard_margin=1,
    review_total_timeout=3,
    light_soft_limit=0.5,
    light_hard_limit=1,
    lease_margin=1,
    max_grants=3 if DEEP else 2,
    resend_first=100,
    resend_max=100,
)
"""Whole seconds, so that moments coincide: a light lease is 2, a call's lease is 4."""
RESENDING = Policy(
    attempt_timeout=2,
    soft_margin=0.5,
    hard_margin=1,
    review_total_timeout=3,
    light_soft_limit=0.5,
    light_hard_limit=1,
    lease_margin=1,
    max_grants=2,
    resend_first=1,
    resend_max=2,
)
WITHOUT_REPAIR = Policy(
    attempt_timeout=2,
    soft_margin=0.5,
    hard_margin=1,
    review_total_timeout=3,
    light_soft_limit=0.5,
    light_hard_limit=1,
    lease_margin=1,
    repair_attempts=0,
    resend_first=100,
    resend_max=100,
)
CHECKS = (O.PASSED, O.VIOLATED, O.UNCONCLUDED)
FAILURES = (*sorted(RETRYABLE - {O.LOST}), O.PROVIDER_REFUSED, O.INPUT_TOO_LARGE, O.CANCELLED)
ONE_OF_EACH_KIND = {
    Step.CHECK_EVIDENCE: CHECKS,
    Step.REPAIR_EVIDENCE: (O.REPAIRED, O.ALTERED, O.TIMEOUT),
    Step.REVIEW_SEMANTICS: (
        O.SUPPORTED,
        O.UNSUPPORTED,
        O.TIMEOUT,
        O.RATE_LIMITED,
        O.PROVIDER_REFUSED,
        O.CANCELLED,
    ),
}
EVERY_OUTCOME = {
    Step.CHECK_EVIDENCE: CHECKS,
    Step.REPAIR_EVIDENCE: (O.REPAIRED, O.ALTERED, *FAILURES),
    Step.REVIEW_SEMANTICS: (O.SUPPORTED, O.UNSUPPORTED, *FAILURES),
}
FEW_OUTCOMES = {
    Step.CHECK_EVIDENCE: (O.PASSED, O.VIOLATED),
    Step.REPAIR_EVIDENCE: (O.REPAIRED, O.TIMEOUT),
    Step.REVIEW_SEMANTICS: (O.SUPPORTED, O.TIMEOUT),
}
GATES = (O.PASSED, O.VIOLATED, O.UNCONCLUDED)
CLAIMS_OF_EACH_KIND = {
    Step.GATE_CLAIMS: (O.PASSED, O.VIOLATED),
    Step.VERIFY_CLAIMS: (O.VERIFIED, O.TIMEOUT, O.PROVIDER_REFUSED),
    Step.COMPOSE_ANSWER: (O.COMPOSED, O.BARE),
}
EVERY_OUTCOME_OF_CLAIMS = {
    Step.GATE_CLAIMS: GATES,
    Step.VERIFY_CLAIMS: (O.VERIFIED, *FAILURES),
    Step.COMPOSE_ANSWER: (O.COMPOSED, O.BARE),
}
FEW_OUTCOMES_OF_CLAIMS = {
    Step.GATE_CLAIMS: (O.PASSED,),
    Step.VERIFY_CLAIMS: (O.VERIFIED, O.TIMEOUT),
    Step.COMPOSE_ANSWER: (O.COMPOSED,),
}
WAITING = replace(FAST, evidence_reserve=1, max_grants=2)
WAITING_AND_RESENDING = replace(RESENDING, evidence_reserve=1)
USAGES = (None, Used(output_bytes=1, tokens=1), Used(output_bytes=9, tokens=9))

SETUPS: dict[str, Setup] = {
    "leases and deadline": Setup(FAST, 14 if DEEP else 8, Budget(), ONE_OF_EACH_KIND),
    "every outcome": Setup(FAST, 9 if DEEP else 4, Budget(), EVERY_OUTCOME),
    "sending again": Setup(RESENDING, 9 if DEEP else 4, Budget(), ONE_OF_EACH_KIND),
    "without repair": Setup(WITHOUT_REPAIR, 14 if DEEP else 8, Budget(), ONE_OF_EACH_KIND),
    "budget": Setup(
        FAST,
        5 if DEEP else 3,
        Budget(model_calls=3, tokens=9),
        ONE_OF_EACH_KIND if DEEP else FEW_OUTCOMES,
        USAGES,
    ),
    "claims: leases, wait and deadline": Setup(
        WAITING, 8 if DEEP else 4, Budget(), CLAIMS_OF_EACH_KIND, protocol=Protocol.CLAIMS
    ),
    "claims: every outcome": Setup(
        WAITING, 4 if DEEP else 2, Budget(), EVERY_OUTCOME_OF_CLAIMS, protocol=Protocol.CLAIMS
    ),
    "claims: sending again": Setup(
        WAITING_AND_RESENDING,
        5 if DEEP else 3,
        Budget(),
        CLAIMS_OF_EACH_KIND,
        protocol=Protocol.CLAIMS,
    ),
    "claims: budget": Setup(
        WAITING,
        3 if DEEP else 2,
        Budget(model_calls=3, tokens=9),
        CLAIMS_OF_EACH_KIND if DEEP else FEW_OUTCOMES_OF_CLAIMS,
        USAGES,
        protocol=Protocol.CLAIMS,
    ),
}


@pytest.mark.timeout(3600 if DEEP else 400)
@pytest.mark.parametrize("name", SETUPS)
def test_invariants_hold_in_every_state_that_can_be_reached(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """Nothing that workers, cancellers, clocks and losses do together breaks the promise."""
    setup = SETUPS[name]
    exploration = Exploration(setup)
    judged: set[tuple[int, int]] = set()
    for world in exploration.explore(None):
        pair = (world.record, world.history)
        if pair not in judged:
            judged.add(pair)
            fault = _fault(exploration, world)
            assert not fault, f"{fault}: {exploration.path_to(world)}"
    assert exploration.complete
    _every_open_run_can_end(exploration)
    _coverage(exploration)
    states, records = len(exploration.reached), len(exploration.records)
    record_property(
        EXPLORED,
        f"{name}: {states} states of {records} records, all that there are, "
        f"up to {exploration.depth} events deep",
    )


def _fault(exploration: Exploration, world: World) -> str:
    """What is wrong with a state; empty when nothing is."""
    run = exploration.records[world.record]
    history = exploration.histories[world.history]
    policy = exploration.setup.policy
    starts = dict(zip(EVERY_REF, history.starts, strict=True))
    ending = "" if run is None or run.ending is None else str(run.ending)
    rules = {
        history.forbidden: not history.forbidden,
        "not exactly the ending that was released": list(history.released)
        == [ending] * bool(ending),
        "open after its cancel": not (history.cancelled and run is not None and run.is_open),
        "a call was started twice": all(starts[ref] <= 1 for ref in CALLS),
        "too many reviews": starts[REVIEW] + starts[REREVIEW] <= policy.review_attempts,
        "too many verifications": all(
            starts[first] + starts[again] <= policy.review_attempts
            for first, again in ((VERIFY, REVERIFY), (SECOND_VERIFY, SECOND_REVERIFY))
        ),
        "a repair that is turned off": starts[REPAIR] <= policy.repair_attempts,
        "a step was started too often": all(count <= policy.max_grants for count in history.starts),
    }
    if run is not None and run.is_open:
        rules |= _rules_of_an_open_run(run, exploration.setup)
    return ", ".join(rule for rule, holds in rules.items() if not holds)


def _rules_of_an_open_run(run: Run, setup: Setup) -> dict[str, bool]:
    held = [ref for ref in EVERY_REF if run.attempt(ref).lease_until is not None]
    due = due_at(run, setup.policy)
    calls = [run.attempt(ref) for ref in CALLS]
    step = next_step(run, setup.policy)
    return {
        "no next step": (step is None) is run.waits_for_evidence,
        "something else is held than the next step": held in ([], [step]),
        "no due time up to the deadline": due is not None and due <= run.deadline_at,
        "a call over its time": all(
            call.timeout is None or call.timeout <= setup.policy.attempt_timeout for call in calls
        ),
    }


def _every_open_run_can_end(exploration: Exploration) -> None:
    """From each open record ticks alone lead to an end, and one sound worker leads to one."""
    policy = exploration.setup.policy
    ends: dict[str, bool] = {}
    for run in exploration.records:
        if run is None or not run.is_open:
            continue
        _ends_by_ticks(run, policy, ends)
        _ends_by_a_worker(run, policy)


def _ends_by_ticks(run: Run, policy: Policy, known: dict[str, bool]) -> None:
    at: Run | None = run
    passed = []
    while at is not None and at.is_open:
        key = at.model_dump_json(exclude_defaults=True)
        if key in known:
            break
        assert key not in passed, "ticks lead round in a circle"
        passed.append(key)
        due = due_at(at, policy)
        assert due is not None, "nobody would ever look at an open run again"
        decision = decide(at, Ticked(), due, policy)
        assert decision.run is not at, "a tick at the due time does nothing"
        at = normal_form(decision.run, due, policy)
    known |= dict.fromkeys(passed, True)


def _ends_by_a_worker(run: Run, policy: Policy) -> None:
    at: Run | None = run
    now = 0.0
    for _ in range(30):
        assert at is not None
        step = next_step(at, policy)
        if step is None:
            if not at.is_open:
                return
            # It waits for evidence that nobody brings.
            now = due_at(at, policy) or now
            at = decide(at, Ticked(), now, policy).run
            continue
        decision = decide(at, claim(step), now, policy)
        at = decision.run
        if decision.answer is Answer.HELD:
            assert at is not None
            now = at.attempt(step).lease_until or now
        elif decision.answer is Answer.GRANTED:
            at = decide(at, success(step), now, policy).run
    raise AssertionError("a sound worker does not get a run to its end")


def _coverage(exploration: Exploration) -> None:
    """The exploration went where it was meant to go: an unreached corner proves nothing."""
    setup = exploration.setup
    endings = {ending for history in exploration.histories for ending in history.released}
    assert {"SUCCEEDED", "CANCELLED", "DEADLINE_EXCEEDED"} <= endings
    if setup.protocol is Protocol.CLAIMS:
        _coverage_of_claims(exploration, endings)
    else:
        _coverage_of_drafts(exploration, endings)
    if setup.budget != Budget():
        assert "BUDGET_EXHAUSTED" in endings
    if setup.policy in (FAST, WAITING) and setup.budget == Budget():
        assert "PROCESSING_FAILED" in endings


def _coverage_of_drafts(exploration: Exploration, endings: set[str]) -> None:
    assert "SEMANTIC_UNAVAILABLE" in endings
    started = [
        sum(history.starts[EVERY_REF.index(ref)] for history in exploration.histories)
        for ref in (REREVIEW, PUBLISH)
    ]
    assert all(started), "both attempts and the decision were reached"
    both = (EVERY_REF.index(REPAIR), EVERY_REF.index(REREVIEW))
    repaired = any(all(history.starts[at] for at in both) for history in exploration.histories)
    assert repaired is bool(exploration.setup.policy.repair_attempts)


def _coverage_of_claims(exploration: Exploration, endings: set[str]) -> None:
    assert {"LOW_CONFIDENCE", "CLAIMS_REJECTED", "PRE_VERIFICATION"} <= endings
    for ref in (REVERIFY, COMPOSE, SECOND_REVERIFY, SECOND_PUBLISH):
        place = EVERY_REF.index(ref)
        assert any(history.starts[place] for history in exploration.histories), ref.key
    runs = [run for run in exploration.records if run is not None]
    assert any(run.evidence_waived for run in runs), "a wait that was over"
    assert any(run.waits_for_evidence and run.is_open for run in runs)
    assert any(history.answered for history in exploration.histories)
