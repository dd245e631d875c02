"""The composer: the reader's answer, put together by code from what the verifier let through.

No model. Words of the agent come in one way only: the text of a verified claim that was
classed as observation or inference. Labels, headings and gaps are fixed words by locale;
a gap tells its tool and never what the agent said of it. A rejected run gets the fixed
words alone, and so does an answer over a limit, which then says of itself that it is bare.
"""
# ruff: noqa: RUF001 - Chinese text has Chinese punctuation

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.claims import (
    ClaimCheck,
    Classification,
    ComposedAnswer,
    GapNote,
    Statement,
    Verdict,
    VerifiedClaim,
    VerifiedMaterial,
)
from contracts.claims_evaluation import ComposerOutput, ComposerStatus
from contracts.fallback import FallbackType, Locale
from worker.guards.fallback import build_fallback

PROMPT_NAME = "claim_composer"
PROMPT_VERSION = "1"
"""Name and version of the fixed words below, for the audit beside the models' prompts."""

MAX_STATEMENTS = 50
MAX_STATEMENT = 2000
MAX_ANSWER = 20_000
"""Statements of one answer, characters of one text, characters of all texts together."""


@dataclass(frozen=True)
class _Words:
    """Fixed words; ``labels`` by classification."""

    title: str
    message: str
    labels: Mapping[Classification, str]
    missing: str
    missing_critical: str
    left_out: str


_WORDS: Mapping[Locale, _Words] = {
    "en": _Words(
        title="Diagnosis from verified evidence",
        message=(
            "Each statement below was checked against quotations from tool results of this run. "
            "Inferences are marked as such. Please read what is missing before you act."
        ),
        labels={
            Classification.DIRECT_OBSERVATION: "Observed",
            Classification.REASONABLE_INFERENCE: "Inferred",
        },
        missing="More evidence from {tool} would help to judge a further statement.",
        missing_critical="Evidence from {tool} is missing for a statement that matters.",
        left_out="Statements that verified evidence does not bear were left out.",
    ),
    "zh-CN": _Words(
        title="基于已核实证据的诊断",
        message=(
            "下列每条陈述都已与本次运行的工具结果原文核对，推断均已标明。"
            "采取行动前请先阅读尚缺的内容。"
        ),
        labels={
            Classification.DIRECT_OBSERVATION: "直接观察",
            Classification.REASONABLE_INFERENCE: "合理推断",
        },
        missing="如有来自 {tool} 的更多证据，将有助于判断另一条陈述。",
        missing_critical="一条关键陈述缺少来自 {tool} 的证据。",
        left_out="已核实证据不支持的陈述均已略去。",
    ),
}


@dataclass(frozen=True)
class Composition:
    """The answer, how the composer fared, and a note without words for the record."""

    answer: ComposedAnswer
    status: ComposerStatus
    output: ComposerOutput


def compose(
    verdict: Verdict, material: VerifiedMaterial, checks: Sequence[ClaimCheck], locale: Locale
) -> Composition:
    """Compose the answer of a run whose verifier came to a final ``verdict``.

    Confirmed is what the agent holds confirmed and the verifier saw directly; an
    inference, or an observation that the agent does not vouch for, is possible. All
    else is left out and told as a gap.
    """
    if verdict is Verdict.REJECT:
        return _bare(FallbackType.CLAIMS_REJECTED, locale, ComposerStatus.COMPLETED)
    words = _WORDS[locale]
    classes = {check.claim_id: check.classification for check in checks}
    shown = [claim for claim in material.claims if classes.get(claim.claim_id) in words.labels]
    confirmed = [
        claim
        for claim in shown
        if claim.confirmed and classes[claim.claim_id] is Classification.DIRECT_OBSERVATION
    ]
    possible = [claim for claim in shown if claim not in confirmed]
    if _over_a_limit(shown):
        return _bare(FallbackType.LOW_CONFIDENCE, locale, ComposerStatus.FALLBACK)
    title, message = words.title, words.message
    if verdict is not Verdict.PASS:
        fixed = build_fallback(FallbackType.LOW_CONFIDENCE, locale)
        title, message = fixed.title, fixed.message
    gaps = _gaps(material, shown, words)
    answer = ComposedAnswer(
        locale=locale,
        title=title,
        message=message,
        confirmed=_statements(confirmed, material, classes, words),
        possible=_statements(possible, material, classes, words),
        gaps=gaps,
        bare=False,
    )
    output = ComposerOutput(
        confirmed_claim_ids=tuple(claim.claim_id for claim in confirmed),
        possible_claim_ids=tuple(claim.claim_id for claim in possible),
        gaps=len(gaps),
        bare=False,
    )
    return Composition(answer, ComposerStatus.COMPLETED, output)


def _over_a_limit(shown: Sequence[VerifiedClaim]) -> bool:
    sizes = [len(claim.text) for claim in shown]
    return (
        len(sizes) > MAX_STATEMENTS
        or any(size > MAX_STATEMENT for size in sizes)
        or sum(sizes) > MAX_ANSWER
    )


def _statements(
    claims: Sequence[VerifiedClaim],
    material: VerifiedMaterial,
    classes: Mapping[str, Classification],
    words: _Words,
) -> tuple[Statement, ...]:
    return tuple(
        Statement(
            label=words.labels[classes[claim.claim_id]],
            text=claim.text,
            critical=claim.critical,
            sources=tuple(
                dict.fromkeys(
                    item.origin for item in material.evidence if item.claim_id == claim.claim_id
                )
            ),
        )
        for claim in claims
    )


def _gaps(
    material: VerifiedMaterial, shown: Sequence[VerifiedClaim], words: _Words
) -> tuple[GapNote, ...]:
    """Missing evidence by tool, the critical first, each once; then what was left out."""
    notes: list[GapNote] = []
    for gap in sorted(material.gaps, key=lambda gap: not gap.critical):
        text = words.missing_critical if gap.critical else words.missing
        notes.append(
            GapNote(tool=gap.tool_name, critical=gap.critical, text=text.format(tool=gap.tool_name))
        )
    dropped = [claim for claim in material.claims if claim not in shown]
    if dropped or material.left_out:
        critical = material.left_out_critical or any(claim.critical for claim in dropped)
        notes.append(GapNote(tool=None, critical=critical, text=words.left_out))
    return tuple(dict.fromkeys(notes))


def _bare(type_: FallbackType, locale: Locale, status: ComposerStatus) -> Composition:
    fixed = build_fallback(type_, locale)
    answer = ComposedAnswer(
        locale=locale,
        title=fixed.title,
        message=fixed.message,
        confirmed=(),
        possible=(),
        gaps=(),
        bare=True,
    )
    output = ComposerOutput(confirmed_claim_ids=(), possible_claim_ids=(), gaps=0, bare=True)
    return Composition(answer, status, output)
