"""The safe fallback: fixed words, and no way in for any other."""

import inspect
from datetime import UTC, datetime
from typing import get_args

import pytest

from contracts.fallback import FallbackType, Locale, SafeFallback, VerifiedSource
from worker.guards.facts import ObservedFact
from worker.guards.fallback import build_fallback, choose_locale

LOCALES: tuple[Locale, ...] = get_args(Locale)
WHEN = datetime(2026, 5, 1, 14, tzinfo=UTC)
SOURCE = VerifiedSource(tool="query_logs", source="gateway", observed_at=WHEN)
FACT = ObservedFact(tool="query_logs", source="gateway", observed_at=WHEN, found=False)
WITHOUT_SOURCES = [
    FallbackType.EVIDENCE_VALIDATION_FAILED,
    FallbackType.MISSING_REQUIRED_CONTEXT,
    FallbackType.PRE_VERIFICATION,
]


@pytest.mark.scenario("release-policy", "Both languages")
@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("type_", list(FallbackType))
def test_every_type_and_locale_has_a_template(type_: FallbackType, locale: Locale) -> None:
    """Each has a title and a message of its own, and no conclusion."""
    fallback = build_fallback(type_, locale)
    assert (fallback.type, fallback.locale, fallback.conclusion) == (type_, locale, None)
    assert fallback.title
    assert fallback.message
    assert (fallback.observed_facts, fallback.verified_sources) == ((), ())
    assert fallback.title.isascii() == fallback.message.isascii() == (locale == "en")


def test_no_two_templates_are_alike() -> None:
    """A reader can tell why there is no report. Claims never judged read as low confidence."""
    types = [type_ for type_ in FallbackType if type_ is not FallbackType.PRE_VERIFICATION]
    all_of_them = [build_fallback(type_, locale) for type_ in types for locale in LOCALES]
    assert len({item.title for item in all_of_them}) == len(all_of_them)
    assert len({item.message for item in all_of_them}) == len(all_of_them)


@pytest.mark.parametrize("locale", LOCALES)
def test_claims_that_were_never_judged_get_the_low_confidence_words(locale: Locale) -> None:
    """No verdict was reached, so the reader is told of none."""
    never, low = (
        build_fallback(type_, locale)
        for type_ in (FallbackType.PRE_VERIFICATION, FallbackType.LOW_CONFIDENCE)
    )
    assert (never.title, never.message) == (low.title, low.message)


@pytest.mark.parametrize("type_", list(FallbackType))
def test_every_field_is_set(type_: FallbackType) -> None:
    """Messages leave unset fields out, and a fallback says each of its fields."""
    assert build_fallback(type_, "en").model_fields_set == set(SafeFallback.model_fields)


def test_finite_checks_do_not_support_a_conclusion() -> None:
    """Facts are told in the reader's language, sources are listed as they are."""
    expected = {
        "en": "Log search in gateway, at 2026-05-01T14:00:00Z; no matches in this scope.",
        "zh-CN": "日志检索 gateway，时间 2026-05-01T14:00:00Z；该范围内无匹配。",
    }
    for locale in LOCALES:
        fallback = build_fallback(
            FallbackType.INSUFFICIENT_EVIDENCE, locale, sources=[SOURCE], facts=[FACT]
        )
        assert fallback.observed_facts == (expected[locale],)
        assert fallback.verified_sources == (SOURCE,)


@pytest.mark.scenario("release-policy", "Evidence that does not hold")
@pytest.mark.parametrize("type_", WITHOUT_SOURCES)
def test_evidence_validation_fallback_sources(type_: FallbackType) -> None:
    """Where nothing was verified, naming a source is an error of the caller."""
    with pytest.raises(ValueError, match="no verified sources"):
        build_fallback(type_, "en", sources=(SOURCE,))
    assert build_fallback(type_, "en").verified_sources == ()


@pytest.mark.parametrize("type_", [t for t in FallbackType if t not in WITHOUT_SOURCES])
def test_other_fallbacks_name_their_sources(type_: FallbackType) -> None:
    """What was really looked at helps the reader to go on."""
    assert build_fallback(type_, "en", sources=(SOURCE,)).verified_sources == (SOURCE,)


@pytest.mark.parametrize(
    "type_", [t for t in FallbackType if t is not FallbackType.INSUFFICIENT_EVIDENCE]
)
def test_only_insufficient_evidence_tells_facts(type_: FallbackType) -> None:
    """A withheld report is not told in pieces."""
    with pytest.raises(ValueError, match="no observed facts"):
        build_fallback(type_, "en", facts=(FACT,))


def test_the_builder_has_no_way_in_for_other_words() -> None:
    """Type, locale, typed sources and typed facts are all that it takes."""
    assert list(inspect.signature(build_fallback).parameters) == [
        "type",
        "locale",
        "sources",
        "facts",
    ]


@pytest.mark.parametrize(
    ("requested", "default", "expected"),
    [
        (None, "en", "en"),
        (None, "zh-CN", "zh-CN"),
        ("en", "zh-CN", "en"),
        ("en-GB", "zh-CN", "en"),
        ("EN_us", "zh-CN", "en"),
        ("zh", "en", "zh-CN"),
        ("zh-CN", "en", "zh-CN"),
        ("zh_Hans_CN", "en", "zh-CN"),
        (" ZH-cn ", "en", "zh-CN"),
        ("fr", "en", "en"),
        ("fr", "zh-CN", "zh-CN"),
        ("", "zh-CN", "zh-CN"),
        ("zhx", "en", "en"),
        ("x-en", "zh-CN", "zh-CN"),
    ],
)
def test_a_language_tag_chooses_a_locale(
    requested: str | None, default: Locale, expected: Locale
) -> None:
    """The primary language decides; an unknown one gets the default."""
    assert choose_locale(requested, default) == expected
