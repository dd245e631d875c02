"""Whatever happens to a run, in whatever order: properties over any sequence of events."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.claims import Verdict
from contracts.messages import Budget
from tests.run.history import History
from tests.run.normal_form import normal_form
from tests.run.setups import VERDICTS, success
from tests.run.story import (
    ANSWER_KEY,
    CLAIM_REFS,
    CLAIMS_KEY,
    DRAFT_REFS,
    EVERY_REF,
    KEY,
    RUN_ID,
    START,
)
from worker.run.events import (
    Admitted,
    Answer,
    Cancelled,
    Claimed,
    Event,
    Finished,
    Lost,
    Published,
    Ticked,
    Used,
)
from worker.run.outcomes import AttemptOutcome
from worker.run.path import due_at, next_step
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import CheckFacts, EndingKind, Protocol, Run, Spend
from worker.run.steps import MODEL_STEPS, Step, StepRef

POLICY = Policy()
EXAMPLES = settings().max_examples
"""As many as the profile says: few for each mutant, many otherwise."""
OPENINGS = {
    Protocol.DRAFT: Admitted(RUN_ID, KEY, "a" * 64, "s-1", START + 900),
    Protocol.CLAIMS: Admitted(
        RUN_ID, CLAIMS_KEY, "a" * 64, "s-1", START + 900, protocol=Protocol.CLAIMS
    ),
}
REFS = {Protocol.DRAFT: DRAFT_REFS, Protocol.CLAIMS: CLAIM_REFS}
FITTING: dict[Step, tuple[AttemptOutcome, ...]] = {
    Step.CHECK_EVIDENCE: (
        AttemptOutcome.PASSED,
        AttemptOutcome.VIOLATED,
        AttemptOutcome.UNCONCLUDED,
    ),
    Step.REPAIR_EVIDENCE: (AttemptOutcome.REPAIRED, AttemptOutcome.ALTERED),
    Step.REVIEW_SEMANTICS: (AttemptOutcome.SUPPORTED, AttemptOutcome.UNSUPPORTED),
    Step.GATE_CLAIMS: (AttemptOutcome.PASSED, AttemptOutcome.VIOLATED),
    Step.VERIFY_CLAIMS: (AttemptOutcome.VERIFIED,),
    Step.COMPOSE_ANSWER: (AttemptOutcome.COMPOSED, AttemptOutcome.BARE),
    Step.PUBLISH: (),
}

counts = st.integers(0, 50)
spends = st.none() | st.builds(
    Spend, model_calls=st.just(1), input_bytes=counts, output_bytes=counts, tokens=counts
)
usages = st.none() | st.builds(Used, output_bytes=st.none() | counts, tokens=st.none() | counts)
checks = st.builds(
    CheckFacts,
    readable=st.booleans(),
    stopped=st.booleans(),
    concluded=st.booleans(),
    violations=st.integers(0, 3),
    named_calls=st.booleans(),
    verified=st.booleans(),
    missing_context=st.booleans(),
)
budgets = st.builds(
    Budget,
    model_calls=st.none() | st.integers(0, 3),
    input_bytes=st.none() | counts,
    output_bytes=st.none() | counts,
    tokens=st.none() | counts,
)
waits = st.sampled_from((0.0, 0.5, 5.0, 39.9, 60.0, 70.0, 300.0)) | st.floats(0, 1000)


@st.composite
def results(draw: st.DrawFn, protocol: Protocol) -> Finished:
    """An attempt's outcome: one that fits its step, or any other."""
    ref = draw(st.sampled_from(REFS[protocol]))
    outcome = (
        draw(st.sampled_from(FITTING[ref.step] or tuple(AttemptOutcome)))
        if draw(st.booleans())
        else draw(st.sampled_from(AttemptOutcome))
    )
    verified = ref.step is Step.VERIFY_CLAIMS and outcome is AttemptOutcome.VERIFIED
    return Finished(
        ref,
        outcome,
        check=draw(checks) if ref.step is Step.CHECK_EVIDENCE else None,
        verify=draw(st.sampled_from(VERDICTS)) if verified else None,
        used=draw(usages),
        retry_after=draw(st.sampled_from((0.0, 7.0))),
    )


def events(protocol: Protocol) -> st.SearchStrategy[Event]:
    """Anything that may reach a run: of its own protocol, and the messages of both."""
    refs = st.sampled_from(REFS[protocol])
    opening = OPENINGS[protocol]
    answer = replace(OPENINGS[Protocol.CLAIMS], key=ANSWER_KEY, round=1)
    publishes = [ref for ref in REFS[protocol] if ref.step is Step.PUBLISH]
    return st.one_of(
        st.builds(Claimed, refs, spends),
        st.builds(Claimed, refs, spends),
        results(protocol),
        st.builds(Lost, refs, st.integers(0, 4)),
        st.builds(Published, st.sampled_from((*publishes, publishes[0]._replace(attempt=2)))),
        st.just(Ticked()),
        st.just(Cancelled(RUN_ID)),
        st.sampled_from((*OPENINGS.values(), replace(opening, sha256="b" * 64))),
        st.sampled_from((answer, answer, replace(answer, sha256="b" * 64))),
    )


NEXT = "next"
"""Stands for what a sound worker would do next, so that stories get somewhere."""
ASK = "ask"
"""The same, but of a verifier that wants evidence."""
Told = list[tuple[float, Event | str]]
stories: dict[Protocol, st.SearchStrategy[Told]] = {
    protocol: st.lists(
        st.tuples(waits, events(protocol) | st.sampled_from((NEXT, NEXT, ASK))), max_size=30
    )
    for protocol in Protocol
}
of_either = st.sampled_from(Protocol).flatmap(
    lambda protocol: st.tuples(st.just(protocol), stories[protocol])
)


def sound(run: Run | None, protocol: Protocol, told: str = NEXT) -> Event:
    """Carry on as a worker would: open, claim what is next, finish it well, decide."""
    if run is None or run.opened_at is None:
        return OPENINGS[protocol]
    step = next_step(run, POLICY)
    if step is None:
        return Ticked() if run.waits_for_evidence else OPENINGS[protocol]
    if run.attempt(step).lease_until is None:
        return Claimed(step)
    event = success(step)
    if told == ASK and isinstance(event, Finished) and step.step is Step.VERIFY_CLAIMS:
        return replace(event, verify=VERDICTS[1])
    return event


def reload(run: Run | None) -> Run | None:
    """The record as another process would read it."""
    return run and Run.model_validate_json(run.model_dump_json(exclude_defaults=True))


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(budgets, of_either)
def test_promises_hold_over_any_sequence_of_events(
    budget: Budget, story: tuple[Protocol, Told]
) -> None:
    """One ending that never changes, no start after it, nothing started twice or over budget."""
    run: Run | None = None
    now = START
    started: list[StepRef] = []
    recorded: dict[StepRef, AttemptOutcome] = {}
    endings = []
    protocol, events_told = story
    said: Verdict | None = None
    asked = 0
    for wait, told in events_told:
        now += wait
        event = sound(run, protocol, told) if isinstance(told, str) else told
        if isinstance(event, Admitted):
            event = replace(event, budget=budget)
        before = run
        decision = decide(run, event, now, POLICY)
        run = decision.run
        if isinstance(event, Finished) and decision.answer in (Answer.RECORDED, Answer.ENDED):
            assert event.ref not in recorded
            recorded[event.ref] = event.outcome
            said = event.verify.final if event.verify else said
        asked += bool(
            before and run and before.evidence_until is None and run.evidence_until is not None
        )
        if decision.answer is Answer.CONTINUED:
            assert asked == 1
            said = None
        if isinstance(event, Claimed) and decision.answer is Answer.GRANTED:
            assert run is not None
            assert event.ref not in recorded
            started.append(event.ref)
            if event.ref.step in MODEL_STEPS:
                assert run.spent.fits(budget)
                timeout = run.attempt(event.ref).timeout
                assert timeout is not None
                assert 0 < timeout <= min(POLICY.attempt_timeout, run.deadline_at - now)
        if run is not None and run.ending is not None:
            if before is None or before.ending is None:
                endings.append(run.ending)
                if run.ending.kind is EndingKind.SUCCEEDED:
                    told_by = tuple(recorded.get(ref) for ref in EVERY_REF)
                    answered = run.round == 1
                    assert History(recorded=told_by, said=said, answered=answered).was_passed()
            else:
                assert run.ended_at == before.ended_at
                assert run.ending == before.ending
                assert decision.answer is not Answer.GRANTED
        if run is not None:
            due = due_at(run, POLICY)
            assert (due is not None) is run.is_open
            assert due is None or due <= run.deadline_at
    assert len(endings) <= 1
    assert asked <= 1
    for ref in EVERY_REF:
        most = 1 if ref.step in MODEL_STEPS else POLICY.max_grants
        assert started.count(ref) <= most


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(of_either)
def test_decisions_replay_identically_from_the_stored_record(
    story: tuple[Protocol, Told],
) -> None:
    """A process that reads the record before every event decides as one that never forgot it."""
    kept: Run | None = None
    stored: Run | None = None
    now = START
    protocol, events_told = story
    for wait, told in events_told:
        now += wait
        event = sound(kept, protocol, told) if isinstance(told, str) else told
        here = decide(kept, event, now, POLICY)
        there = decide(reload(stored), event, now, POLICY)
        assert there.answer is here.answer
        assert there.run == here.run
        assert reload(there.run) == there.run
        kept, stored = here.run, there.run


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(of_either)
def test_normal_form_decides_like_the_record_itself(story: tuple[Protocol, Told]) -> None:
    """What the exploration forgets about time changes no answer, now or later.

    Times are whole seconds here, so that shifting them loses nothing.
    """
    real: Run | None = None
    normal: Run | None = None
    now = START
    protocol, events_told = story
    for wait, told in events_told:
        passed = float(round(wait))
        now += passed
        event = sound(real, protocol, told) if isinstance(told, str) else told
        if isinstance(event, Admitted):
            real_event: Event = replace(event, deadline_at=now + 900)
            event = replace(event, deadline_at=900.0)
        else:
            real_event = event
        here = decide(real, real_event, now, POLICY)
        there = decide(normal_form(normal, passed, POLICY), event, 0.0, POLICY)
        assert there.answer is here.answer
        real, normal = here.run, normal_form(there.run, 0.0, POLICY)
        assert normal == normal_form(real, now, POLICY)


@settings(deadline=None)
@given(of_either)
def test_unchanged_record_is_the_same_object(story: tuple[Protocol, Told]) -> None:
    """Saying something a second time at once writes nothing: the record is the one it was."""
    run: Run | None = None
    now = START
    protocol, events_told = story
    for wait, told in events_told:
        now += wait
        event = sound(run, protocol, told) if isinstance(told, str) else told
        run = decide(run, event, now, POLICY).run
        if not isinstance(event, Claimed | Ticked | Finished):
            assert decide(run, event, now, POLICY).run is run


@pytest.mark.parametrize("protocol", Protocol)
def test_sound_worker_gets_a_story_to_its_end(protocol: Protocol) -> None:
    """The generated stories can reach a release, or the properties would prove little."""
    run: Run | None = None
    for _ in range(10):
        run = decide(run, sound(run, protocol), START, POLICY).run
    assert run is not None
    assert run.ending is not None
    assert run.ending.kind is EndingKind.SUCCEEDED


def test_a_sound_worker_and_agent_get_a_story_to_round_one() -> None:
    """The generated stories can reach a release after a request for evidence."""
    protocol = Protocol.CLAIMS
    run: Run | None = None
    for told in (NEXT, NEXT, NEXT, NEXT, ASK):
        run = decide(run, sound(run, protocol, told), START, POLICY).run
    answer = replace(OPENINGS[protocol], key=ANSWER_KEY, round=1)
    assert decide(run, answer, START, POLICY).answer is Answer.CONTINUED
