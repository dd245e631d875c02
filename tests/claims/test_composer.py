"""The composer: confirmed, possible and missing apart, and no word that was not let through."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.claims import (
    ClaimCheck,
    Classification,
    NamedGap,
    Verdict,
    VerifiedClaim,
    VerifiedMaterial,
)
from contracts.claims_evaluation import ComposerStatus
from contracts.fallback import FallbackType, Locale
from tests.claims.cases import SECRET, binding, check, claim, material_of
from worker.claims.composer import (
    MAX_ANSWER,
    MAX_STATEMENT,
    MAX_STATEMENTS,
    Composition,
    compose,
)
from worker.guards.fallback import build_fallback

LOCALES: tuple[Locale, ...] = get_args(Locale)
OBSERVED = Classification.DIRECT_OBSERVATION
INFERRED = Classification.REASONABLE_INFERENCE
HIDDEN = [class_ for class_ in Classification if class_ not in {OBSERVED, INFERRED}]


def of(
    *claims: tuple[str, Classification],
    verdict: Verdict = Verdict.PASS,
    locale: Locale = "en",
    gaps: tuple[NamedGap, ...] = (),
    confirmed: bool = True,
    critical: bool = True,
) -> Composition:
    """Compose texts with their classes."""
    material = VerifiedMaterial(
        claims=tuple(
            VerifiedClaim(claim_id=f"c{index}", text=text, critical=critical, confirmed=confirmed)
            for index, (text, _) in enumerate(claims)
        ),
        evidence=(),
        gaps=gaps,
        left_out=0,
        left_out_critical=False,
    )
    checks = [check(f"c{index}", class_) for index, (_, class_) in enumerate(claims)]
    return compose(verdict, material, checks, locale)


def texts(composition: Composition) -> tuple[list[str], list[str]]:
    answer = composition.answer
    return [item.text for item in answer.confirmed], [item.text for item in answer.possible]


@pytest.mark.scenario("claim-composer", "Confirmed, possible and missing")
def test_confirmed_possible_and_missing_stand_apart() -> None:
    """Observed claims that the agent vouches for, inferences, and gaps; each with its sources."""
    gap = {"claim_id": "c2", "tool_name": "query_mysql", "critical": True, "description": SECRET}
    material = material_of(
        claim("c1", binding(), binding("query_logs")),
        claim("c2", binding("query_logs"), critical=False),
        claim("c3", binding("query_mysql"), confirmed=False),
        claim("c4", binding("query_mysql"), text=SECRET),
        evidence_gaps=[gap],
    )
    checks = [
        check("c1", OBSERVED),
        check("c2", INFERRED),
        check("c3", OBSERVED),
        check("c4", Classification.UNSUPPORTED),
    ]
    found = compose(Verdict.LOW_CONFID, material, checks, "en")
    answer = found.answer
    assert texts(found) == (["Statement c1."], ["Statement c2.", "Statement c3."])
    assert [item.label for item in answer.confirmed + answer.possible] == [
        "Observed",
        "Inferred",
        "Observed",
    ]
    assert [item.critical for item in answer.possible] == [False, True]
    assert [source.tool for source in answer.confirmed[0].sources] == ["run_command", "query_logs"]
    assert [(item.tool, item.critical) for item in answer.gaps] == [
        ("query_mysql", True),
        (None, True),
    ]
    assert not answer.bare
    assert SECRET not in answer.model_dump_json()
    assert found.status is ComposerStatus.COMPLETED
    assert found.output.model_dump() == {
        "confirmed_claim_ids": ("c1",),
        "possible_claim_ids": ("c2", "c3"),
        "gaps": 2,
        "bare": False,
    }


@pytest.mark.scenario("claim-composer", "Only what was observed or inferred")
@pytest.mark.parametrize("class_", HIDDEN)
@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.LOW_CONFID])
def test_a_claim_of_another_class_is_left_out(class_: Classification, verdict: Verdict) -> None:
    """Its words go nowhere; the reader is told that something was left out."""
    found = of(("Kept.", OBSERVED), (SECRET, class_), verdict=verdict)
    assert texts(found) == (["Kept."], [])
    assert [item.tool for item in found.answer.gaps] == [None]
    assert SECRET not in found.answer.model_dump_json()


@given(
    st.lists(
        st.tuples(st.sampled_from(Classification), st.booleans(), st.booleans(), st.booleans()),
        max_size=6,
    ),
    st.sampled_from(Verdict),
    st.sampled_from(LOCALES),
)
def test_no_word_passes_that_was_not_let_through(
    kinds: list[tuple[Classification, bool, bool, bool]], verdict: Verdict, locale: Locale
) -> None:
    """Ids, texts of other classes, and claims without a check never reach an answer."""
    material = VerifiedMaterial(
        claims=tuple(
            VerifiedClaim(
                claim_id=f"id-{index}-id",
                text=f"text-{index}-text",
                critical=critical,
                confirmed=confirmed,
            )
            for index, (_, critical, confirmed, _) in enumerate(kinds)
        ),
        evidence=(),
        gaps=(),
        left_out=0,
        left_out_critical=False,
    )
    checks = [
        ClaimCheck(claim_id=f"id-{index}-id", classification=class_, evidence_refs=())
        for index, (class_, _, _, checked) in enumerate(kinds)
        if checked
    ]
    found = compose(verdict, material, checks, locale)
    text = found.answer.model_dump_json()
    for index, (class_, _, confirmed, checked) in enumerate(kinds):
        shown = checked and class_ in {OBSERVED, INFERRED} and verdict is not Verdict.REJECT
        assert (f"text-{index}-text" in text) == shown
        stated = [item.text for item in found.answer.confirmed]
        assert (f"text-{index}-text" in stated) == (shown and confirmed and class_ is OBSERVED)
    assert "id-" not in text


@pytest.mark.scenario("claim-composer", "Rejected claims")
@pytest.mark.parametrize("locale", LOCALES)
def test_rejected_claims_leave_the_fixed_words_alone(locale: Locale) -> None:
    """Neither an observed claim nor a gap is told: no root cause without support."""
    gap = NamedGap(claim_id="c0", tool_name="query_logs", critical=True)
    found = of((SECRET, OBSERVED), verdict=Verdict.REJECT, locale=locale, gaps=(gap,))
    fixed = build_fallback(FallbackType.CLAIMS_REJECTED, locale)
    answer = found.answer
    assert (answer.title, answer.message, answer.bare) == (fixed.title, fixed.message, True)
    assert (answer.confirmed, answer.possible, answer.gaps) == ((), (), ())
    assert found.status is ComposerStatus.COMPLETED


@pytest.mark.scenario("claim-composer", "Over a limit")
@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.LOW_CONFID])
@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([("x", OBSERVED)] * (MAX_STATEMENTS + 1), id="too many"),
        pytest.param([("x" * (MAX_STATEMENT + 1), INFERRED)], id="one too long"),
        pytest.param(
            [("x" * MAX_STATEMENT, OBSERVED)] * (MAX_ANSWER // MAX_STATEMENT + 1), id="too long"
        ),
    ],
)
def test_an_answer_over_a_limit_is_the_bare_template(
    claims: list[tuple[str, Classification]], verdict: Verdict
) -> None:
    """Nothing is cut; the low-confidence words stand alone, and answer and status say so."""
    found = of(*claims, verdict=verdict)
    fixed = build_fallback(FallbackType.LOW_CONFIDENCE, "en")
    answer = found.answer
    assert (answer.title, answer.message, answer.bare) == (fixed.title, fixed.message, True)
    assert (answer.confirmed, answer.possible, answer.gaps) == ((), (), ())
    assert (found.status, found.output.bare) == (ComposerStatus.FALLBACK, True)


def test_the_limits_themselves_are_inside() -> None:
    """What is left out does not count."""
    assert not of(*[("x", OBSERVED)] * MAX_STATEMENTS).answer.bare
    assert not of(("x" * MAX_STATEMENT, OBSERVED)).answer.bare
    assert not of(("x" * 99_999, Classification.UNSUPPORTED)).answer.bare


@pytest.mark.scenario("claim-composer", "Both languages")
@pytest.mark.parametrize("locale", LOCALES)
def test_every_fixed_word_is_of_the_locale(locale: Locale) -> None:
    """Title, message, labels and gaps; the agent's own text stays as it is."""
    gap = NamedGap(claim_id="c0", tool_name="query_logs", critical=False)
    for verdict in Verdict:
        answer = of(
            ("Kept.", OBSERVED),
            ("Likely.", INFERRED),
            ("No.", Classification.OVERSTATED),
            verdict=verdict,
            locale=locale,
            gaps=(gap, gap.model_copy(update={"critical": True})),
        ).answer
        words = [answer.title, answer.message]
        words += [item.label for item in answer.confirmed + answer.possible]
        words += [item.text for item in answer.gaps]
        assert answer.locale == locale
        assert len(words) == (2 if verdict is Verdict.REJECT else 7)
        assert all(text.isascii() == (locale == "en") for text in words)


@pytest.mark.scenario("claim-composer", "Gaps in fixed words")
def test_gaps_are_told_once_and_the_critical_first() -> None:
    """By tool and weight, without a claim's id."""
    gaps = [
        NamedGap(claim_id=f"id-{index}-id", tool_name=tool, critical=critical)
        for index, (tool, critical) in enumerate(
            [("query_logs", False), ("query_mysql", True), ("query_mysql", True)]
        )
    ]
    found = of(("Kept.", OBSERVED), gaps=tuple(gaps))
    assert [item.text for item in found.answer.gaps] == [
        "Evidence from query_mysql is missing for a statement that matters.",
        "More evidence from query_logs would help to judge a further statement.",
    ]
    assert "id-" not in found.answer.model_dump_json()


def test_what_the_gate_left_out_is_told() -> None:
    """A claim whose bindings all failed is missing from the answer, and that is said."""
    material = material_of(claim("c1"), claim("c2", binding(raw_path="$.nowhere")))
    found = compose(Verdict.LOW_CONFID, material, [check("c1", OBSERVED)], "en")
    assert [(item.tool, item.critical) for item in found.answer.gaps] == [(None, True)]


def test_a_passed_answer_reads_as_a_diagnosis() -> None:
    """Its title differs from the low-confidence one."""
    passed = of(("Kept.", OBSERVED)).answer
    low = of(("Kept.", OBSERVED), verdict=Verdict.LOW_CONFID).answer
    assert passed.title == "Diagnosis from verified evidence"
    assert low.title == build_fallback(FallbackType.LOW_CONFIDENCE, "en").title
