"""The rule-based review: whether each hard fact of a draft stands in its evidence.

It compares numbers with units, names, times and quotations, and where a text has
none of them it asks for a word in common. It knows nothing of cause, order or
meaning, and says so in every reason. Only the conclusion and the analyses are held
to the evidence: actions and recommendations may name numbers of their own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from worker.offline.judge_evidence import Evidence
from worker.offline.judge_facts import facts, words

NOTICE = "This judge compares hard facts and words; it does not judge meaning."

_NAMED_OBJECTIONS = 5
_COMMON_PREFIX = 5
_WORDS_TO_COMPARE = 5
_CLAUSE_END = re.compile(r"[.,;!?。\uff1b\uff01\uff1f\uff0c\n]")
_OVERCLAIM = re.compile(
    r"\b(?:healthy|ruled out|rules out|excluded|excludes|no problem|no issue|works? normally"
    r"|working normally|is fine|are fine|is not the cause)\b|健康|排除|一切正常|没有问题",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|no|cannot|can't|never|nor|without|neither|whether)\b|不|未|无法|并非", re.IGNORECASE
)
_NEGATIVE = re.compile(
    r"\b(?:no|not|none|nothing|without|never|zero|0)\b|n't\b|未|没|无|不", re.IGNORECASE
)


@dataclass(frozen=True)
class Judgement:
    """The review's answer; ``reason`` is one short paragraph."""

    supported: bool
    reason: str


def review(query: str, draft: Mapping[str, Any], evidence: Mapping[str, Any]) -> Judgement:
    """Compare a visible draft with the snapshot of its verified evidence.

    ``draft`` and ``evidence`` have the shapes of the worker's review question.
    Raises KeyError, TypeError or AttributeError for other shapes.
    """
    by_id = {entry["analysis_id"]: entry["evidence"] for entry in evidence["analyses"]}
    known = Evidence.of([query, *by_id])
    objections: list[str] = []
    compared = 0
    for analysis in draft["analyses"]:
        calls = by_id.get(analysis["analysis_id"], [])
        found, count = _compare(analysis["text"], calls, known)
        if analysis["kind"] == "NEGATIVE_OBSERVATION":
            found += _overclaims(analysis["text"])
        objections += [f"analysis {analysis['analysis_id']}: {one}" for one in found]
        compared += count
    conclusion = draft["conclusion"]
    if conclusion is not None:
        calls = [call for one in conclusion["based_on_analysis_ids"] for call in by_id.get(one, [])]
        found, count = _compare(conclusion["text"], calls, known)
        if calls and not any(call["found"] for call in calls):
            found += _overclaims(conclusion["text"])
            if not _NEGATIVE.search(conclusion["text"]):
                found.append("it rests on empty results only")
        objections += [f"conclusion: {one}" for one in found]
        compared += count
    return _judgement(objections, compared)


def _compare(text: str, calls: list[Any], known: Evidence) -> tuple[list[str], int]:
    """The objections to one text and how many facts it stated; ``known`` may be said freely."""
    stated = facts(text)
    evidence = Evidence.of(calls)
    lost = evidence.missing(stated, text)
    if lost:
        strange = set(known.missing(stated, text))
        lost = [fact for fact in lost if fact in strange]
    objections = [f"{fact} is not in its evidence" for fact in lost]
    if calls and not stated and not _share_words(text, evidence.words):
        objections.append("it has no word in common with its evidence")
    return objections, len(stated)


def _share_words(text: str, evidence: str) -> bool:
    content = {word for word in words(text).split() if len(word) >= _COMMON_PREFIX}
    if len(content) < _WORDS_TO_COMPARE:
        return True
    return any(f" {word[:_COMMON_PREFIX]}" in evidence for word in content)


def _overclaims(text: str) -> list[str]:
    claims = ((_OVERCLAIM.search(clause), clause) for clause in _CLAUSE_END.split(text))
    return [
        f"an empty result does not show “{match[0]}”"
        for match, clause in claims
        if match and not _DENIED.search(clause[: match.start()])
    ]


def _judgement(objections: list[str], compared: int) -> Judgement:
    head = "Rule-based comparison of hard facts, no judgement of meaning: "
    if not objections:
        return Judgement(True, f"{head}none of the {compared} compared facts is against the draft.")
    named = "; ".join(objections[:_NAMED_OBJECTIONS])
    more = len(objections) - _NAMED_OBJECTIONS
    return Judgement(False, f"{head}{named}{f'; and {more} more' if more > 0 else ''}.")
