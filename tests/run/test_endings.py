"""Which ending a record calls for: the table of endings, row by row."""

import itertools

import pytest

from contracts.fallback import FallbackType
from tests.run.story import (
    CHECK,
    RECHECK,
    REPAIR,
    REREVIEW,
    REVIEW,
    SUCCEEDED,
    facts,
    fallback,
    record,
)
from worker.run.draft_path import was_repaired
from worker.run.outcomes import AttemptOutcome
from worker.run.path import decide_ending, next_step
from worker.run.policy import Policy
from worker.run.state import CheckFacts, Ending, EndingKind
from worker.run.steps import Step, StepRef

O = AttemptOutcome  # noqa: E741  # the table below is read by its outcomes
POLICY = Policy()
INVALID = fallback(FallbackType.EVIDENCE_VALIDATION_FAILED)
INSUFFICIENT = fallback(FallbackType.INSUFFICIENT_EVIDENCE)
MISSING_CONTEXT = fallback(FallbackType.MISSING_REQUIRED_CONTEXT)
UNSUPPORTED = fallback(FallbackType.SEMANTIC_UNSUPPORTED)
UNAVAILABLE = fallback(FallbackType.SEMANTIC_UNAVAILABLE)
REPAIRED = {CHECK: O.VIOLATED, REPAIR: O.REPAIRED, RECHECK: O.PASSED}

WITHOUT_CONCLUSION: list[tuple[str, CheckFacts, Ending]] = [
    (
        f"row 2: stopped, {readable=}, {verified=}, {missing_context=}",
        facts(
            stopped=True,
            concluded=False,
            readable=readable,
            verified=verified,
            named_calls=verified,
            missing_context=missing_context,
        ),
        INSUFFICIENT,
    )
    for readable, verified, missing_context in itertools.product((True, False), repeat=3)
]
WITHOUT_CONCLUSION += [
    (
        "row 3: unreadable with verified progress",
        facts(concluded=False, readable=False),
        INSUFFICIENT,
    ),
    (
        "row 4: unreadable, progress named and not verified",
        facts(concluded=False, readable=False, verified=False),
        INVALID,
    ),
    (
        "row 4: unreadable, nothing named",
        facts(concluded=False, readable=False, verified=False, named_calls=False),
        INVALID,
    ),
    (
        "row 5: something verified",
        facts(concluded=False),
        INSUFFICIENT,
    ),
    (
        "row 5: something verified, though context is missing",
        facts(concluded=False, missing_context=True),
        INSUFFICIENT,
    ),
    (
        "row 6: no call named, missing context named",
        facts(concluded=False, verified=False, named_calls=False, missing_context=True),
        MISSING_CONTEXT,
    ),
    (
        "row 7: a call named and not verified, missing context named",
        facts(concluded=False, verified=False, missing_context=True),
        INSUFFICIENT,
    ),
    (
        "row 7: a call named and not verified",
        facts(concluded=False, verified=False),
        INSUFFICIENT,
    ),
    (
        "row 7: nothing named at all",
        facts(concluded=False, verified=False, named_calls=False),
        INSUFFICIENT,
    ),
]


@pytest.mark.parametrize(
    ("check", "expected"),
    [row[1:] for row in WITHOUT_CONCLUSION],
    ids=[row[0] for row in WITHOUT_CONCLUSION],
)
def test_draft_without_a_conclusion_ends_by_what_is_verified(
    check: CheckFacts, expected: Ending
) -> None:
    """Rows 2 to 7; no model step ever comes next."""
    run = record({CHECK: O.UNCONCLUDED}, check)
    assert decide_ending(run, POLICY) == expected
    step = next_step(run, POLICY)
    assert step is not None
    assert step.step is Step.PUBLISH


GUARDED: list[tuple[str, dict[StepRef, AttemptOutcome], Ending]] = [
    ("row 8: violated, repair off or never made", {CHECK: O.VIOLATED}, INVALID),
    *(
        (f"row 8: repair {outcome}", {CHECK: O.VIOLATED, REPAIR: outcome}, INVALID)
        for outcome in sorted(set(AttemptOutcome) - {O.REPAIRED})
    ),
    (
        "row 8: second check fails",
        {CHECK: O.VIOLATED, REPAIR: O.REPAIRED, RECHECK: O.VIOLATED},
        INVALID,
    ),
    ("row 8: repaired and never checked again", {CHECK: O.VIOLATED, REPAIR: O.REPAIRED}, INVALID),
    ("row 9: unsupported", {CHECK: O.PASSED, REVIEW: O.UNSUPPORTED}, UNSUPPORTED),
    (
        "row 9: unsupported at the second attempt",
        {CHECK: O.PASSED, REVIEW: O.TIMEOUT, REREVIEW: O.UNSUPPORTED},
        UNSUPPORTED,
    ),
    ("row 9: unsupported after repair", {**REPAIRED, REVIEW: O.UNSUPPORTED}, UNSUPPORTED),
    (
        "row 9: an objection stands beside a support",
        {CHECK: O.PASSED, REVIEW: O.UNSUPPORTED, REREVIEW: O.SUPPORTED},
        UNSUPPORTED,
    ),
    ("row 10: never reviewed", {CHECK: O.PASSED}, UNAVAILABLE),
    *(
        (f"row 10: {outcome}", {CHECK: O.PASSED, REVIEW: outcome}, UNAVAILABLE)
        for outcome in sorted(set(AttemptOutcome) - {O.SUPPORTED, O.UNSUPPORTED})
    ),
    (
        "row 10: two failures after repair",
        {**REPAIRED, REVIEW: O.LOST, REREVIEW: O.OFF_SCHEMA},
        UNAVAILABLE,
    ),
    ("row 11: both guards pass", {CHECK: O.PASSED, REVIEW: O.SUPPORTED}, SUCCEEDED),
    (
        "row 11: supported at the second attempt",
        {CHECK: O.PASSED, REVIEW: O.TRANSPORT, REREVIEW: O.SUPPORTED},
        SUCCEEDED,
    ),
    ("row 11: both pass after repair", {**REPAIRED, REVIEW: O.SUPPORTED}, SUCCEEDED),
    ("fails closed: nothing is on record", {}, INVALID),
    ("fails closed: a support without a check", {REVIEW: O.SUPPORTED}, INVALID),
    (
        "fails closed: a support, and a check that was violated",
        {CHECK: O.VIOLATED, REVIEW: O.SUPPORTED},
        INVALID,
    ),
    (
        "fails closed: the second check counts, not the first",
        {CHECK: O.PASSED, RECHECK: O.VIOLATED, REVIEW: O.SUPPORTED},
        INVALID,
    ),
]


@pytest.mark.parametrize(
    ("outcomes", "expected"), [row[1:] for row in GUARDED], ids=[row[0] for row in GUARDED]
)
def test_concluded_draft_ends_by_its_guards(
    outcomes: dict[StepRef, AttemptOutcome], expected: Ending
) -> None:
    """Rows 8 to 11, and what is missing or strange is never a release."""
    assert decide_ending(record(outcomes), POLICY) == expected


def test_passed_check_without_its_facts_releases_nothing() -> None:
    """A record that says PASSED and not what was found is no passed check."""
    run = record({CHECK: O.PASSED, REVIEW: O.SUPPORTED})
    bare = run.attempt(CHECK).model_copy(update={"check": None})
    assert decide_ending(run.with_attempt(CHECK, bare), POLICY) == INVALID


def test_release_needs_a_passed_check_and_a_support() -> None:
    """Over all pairs of outcomes exactly PASSED with SUPPORTED is a release."""
    releases = {
        (checked, reviewed)
        for checked, reviewed in itertools.product(AttemptOutcome, repeat=2)
        if decide_ending(record({CHECK: checked, REVIEW: reviewed}), POLICY).kind
        is EndingKind.SUCCEEDED
    }
    assert releases == {(O.PASSED, O.SUPPORTED)}


def test_support_of_an_attempt_over_the_policy_does_not_count() -> None:
    """A verdict counts only from an attempt that the policy allows."""
    run = record({CHECK: O.PASSED, REVIEW: O.TIMEOUT, REREVIEW: O.SUPPORTED})
    assert decide_ending(run, Policy(review_attempts=1)) == UNAVAILABLE


def test_support_of_an_attempt_that_cannot_be_does_not_count() -> None:
    """Attempts count from 1: a verdict under number 0 was never granted."""
    run = record({CHECK: O.PASSED, REVIEW._replace(attempt=0): O.SUPPORTED})
    assert decide_ending(run, POLICY) == UNAVAILABLE


@pytest.mark.parametrize("outcome", list(AttemptOutcome))
def test_only_a_repair_that_was_accepted_is_told(outcome: AttemptOutcome) -> None:
    """A release says that it was repaired only if the repair came to REPAIRED."""
    run = record({CHECK: O.VIOLATED, REPAIR: outcome})
    assert was_repaired(run) is (outcome is O.REPAIRED)
    assert not was_repaired(record({CHECK: O.VIOLATED}))


def test_ending_is_told_by_its_code() -> None:
    """A release has no code and is told by its kind."""
    assert str(SUCCEEDED) == "SUCCEEDED"
    assert str(UNSUPPORTED) == "SEMANTIC_UNSUPPORTED"
