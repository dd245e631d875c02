"""The safe fallback: fixed words by type and locale.

The builder has no parameter through which a draft's text, a guard's reason, a
provider's error or a counter could enter. Facts come typed and get their words here.
"""
# ruff: noqa: RUF001 - Chinese text has Chinese punctuation

from collections.abc import Mapping, Sequence

from contracts.fallback import FallbackType, Locale, SafeFallback, VerifiedSource
from worker.guards.facts import ObservedFact, render

_WITHOUT_SOURCES = frozenset(
    {
        FallbackType.EVIDENCE_VALIDATION_FAILED,
        FallbackType.MISSING_REQUIRED_CONTEXT,
        FallbackType.PRE_VERIFICATION,
    }
)

_LOW_CONFIDENCE: Mapping[Locale, tuple[str, str]] = {
    "en": (
        "Low confidence: no reliable conclusion",
        (
            "What could be verified does not carry a reliable conclusion. Statements listed "
            "below, if any, are all that verified evidence bears; nothing else is shown. Please "
            "continue the investigation by hand."
        ),
    ),
    "zh-CN": (
        "置信度低：暂无可靠结论",
        (
            "已核实的内容不足以得出可靠结论。下列陈述（如有）是已核实证据所能支持的全部内容，"
            "其余不予展示。请人工继续排查。"
        ),
    ),
}
"""Also what a reader sees when claims were never judged: there is no verdict to tell of."""

_TEMPLATES: Mapping[Locale, Mapping[FallbackType, tuple[str, str]]] = {
    "en": {
        FallbackType.INSUFFICIENT_EVIDENCE: (
            "No conclusion: not enough evidence",
            (
                "The checks that were completed do not support a conclusion. What was observed, "
                "if anything, is listed below. A check without matches says nothing about the "
                "health of a system and excludes no cause. Please continue the investigation "
                "by hand."
            ),
        ),
        FallbackType.MISSING_REQUIRED_CONTEXT: (
            "No conclusion: information is missing",
            (
                "The investigation could not begin because required information was missing. "
                "Please name the affected system, the symptom and the time window, and ask again."
            ),
        ),
        FallbackType.EVIDENCE_VALIDATION_FAILED: (
            "Report withheld: its evidence could not be verified",
            (
                "A report was written, but its references to evidence could not be verified, so it "
                "is not shown. Please investigate by hand or ask again."
            ),
        ),
        FallbackType.SEMANTIC_UNSUPPORTED: (
            "Report withheld: its evidence does not support it",
            (
                "A report was written from verified evidence, but a review found that it does not "
                "follow from that evidence, so it is not shown. The sources below were really "
                "looked at. Please judge them yourself."
            ),
        ),
        FallbackType.SEMANTIC_UNAVAILABLE: (
            "Report withheld: it could not be reviewed",
            (
                "A report was written from verified evidence, but its review could not be "
                "completed, so it is not shown. The sources below were really looked at. Please "
                "judge them yourself or ask again later."
            ),
        ),
        FallbackType.LOW_CONFIDENCE: _LOW_CONFIDENCE["en"],
        FallbackType.PRE_VERIFICATION: _LOW_CONFIDENCE["en"],
        FallbackType.CLAIMS_REJECTED: (
            "No conclusion: the evidence speaks against the claims",
            (
                "Claims were written, but the evidence cannot support a reliable conclusion from "
                "them, so none is shown. Please investigate by hand."
            ),
        ),
    },
    "zh-CN": {
        FallbackType.INSUFFICIENT_EVIDENCE: (
            "暂无结论：证据不足",
            (
                "已完成的检查不足以支持结论。如有观察结果，列于下方。无匹配的检查不代表系统健康，"
                "也不能排除任何原因。请人工继续排查。"
            ),
        ),
        FallbackType.MISSING_REQUIRED_CONTEXT: (
            "暂无结论：缺少必要信息",
            "由于缺少必要信息，排查未能开始。请补充受影响的系统、现象和时间范围后重新提问。",
        ),
        FallbackType.EVIDENCE_VALIDATION_FAILED: (
            "报告未发布：证据无法核实",
            "报告已生成，但其引用的证据无法核实，因此不予展示。请人工排查或重新提问。",
        ),
        FallbackType.SEMANTIC_UNSUPPORTED: (
            "报告未发布：证据不支持其内容",
            (
                "报告基于已核实的证据生成，但复核认为其内容不能由这些证据得出，因此不予展示。"
                "下列来源确实查询过，请自行判断。"
            ),
        ),
        FallbackType.SEMANTIC_UNAVAILABLE: (
            "报告未发布：复核未能完成",
            (
                "报告基于已核实的证据生成，但复核未能完成，因此不予展示。下列来源确实查询过，"
                "请自行判断或稍后重试。"
            ),
        ),
        FallbackType.LOW_CONFIDENCE: _LOW_CONFIDENCE["zh-CN"],
        FallbackType.PRE_VERIFICATION: _LOW_CONFIDENCE["zh-CN"],
        FallbackType.CLAIMS_REJECTED: (
            "暂无结论：证据与陈述不符",
            "代理给出了陈述，但现有证据无法支持可靠结论，因此均不予展示。请人工排查。",
        ),
    },
}


def build_fallback(
    type: FallbackType,  # noqa: A002 - the contract's own word
    locale: Locale,
    *,
    sources: Sequence[VerifiedSource] = (),
    facts: Sequence[ObservedFact] = (),
) -> SafeFallback:
    """Build one fallback; every field is set, since messages leave unset ones out.

    Raises ValueError for sources where nothing was verified
    (EVIDENCE_VALIDATION_FAILED, MISSING_REQUIRED_CONTEXT, PRE_VERIFICATION) and for
    facts in any type but INSUFFICIENT_EVIDENCE.
    """
    if sources and type in _WITHOUT_SOURCES:
        raise ValueError(f"{type} has no verified sources")
    if facts and type is not FallbackType.INSUFFICIENT_EVIDENCE:
        raise ValueError(f"{type} has no observed facts")
    title, message = _TEMPLATES[locale][type]
    return SafeFallback(
        type=type,
        locale=locale,
        conclusion=None,
        title=title,
        message=message,
        observed_facts=tuple(render(fact, locale) for fact in facts),
        verified_sources=tuple(sources),
    )


def choose_locale(requested: str | None, default: Locale) -> Locale:
    """The locale for a language tag such as ``zh``, ``zh_Hans`` or ``en-GB``.

    The primary language decides; what is not known gets the default.
    """
    if requested is None:
        return default
    language = requested.strip().replace("_", "-").partition("-")[0].lower()
    known: Mapping[str, Locale] = {"en": "en", "zh": "zh-CN"}
    return known.get(language, default)
