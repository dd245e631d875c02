"""The rule-based verifier: what each claim is worth by the hard facts of its own quotations.

It compares numbers, times, names and quoted words, and knows nothing of meaning; every
rationale says so. Where nothing hard is stated it compares bare words. A cause or a
guess is never seen directly, so it is an inference at most.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.claims import ClaimCheck, Classification, EvidenceRef, Verdict, VerifiedClaim
from contracts.strict_json import canonical
from worker.claims.verdict import allowed_by_checks, strictest
from worker.offline.judge_evidence import Evidence
from worker.offline.judge_facts import Facts, facts, words
from worker.offline.judge_numbers import Number, same

_NAMED_CLAIMS = 5
_CONTENT_WORD = 4
_COMMON_PREFIX = 5
_MOST_OF_THEM = 0.5
_REASONED = re.compile(
    r"\b(?:because|caus(?:e|ed|es|ing)|due to|therefore|thus|hence|le(?:d|ads) to|results? in"
    r"|so that|explains?|probably|likely|may|might|could|suggests?|indicates?|seems?)\b"
    r"|因为|由于|导致|所以|可能|说明|表明",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(
    r"\b(?:all|every|each|always|never|none|only|entire(?:ly)?|complete(?:ly)?|definitely|certainly"
    r"|ruled out|excluded|healthy)\b|全部|所有|总是|从不|完全|唯一|排除",
    re.IGNORECASE,
)
_WORTH: Mapping[Classification, float] = {
    Classification.DIRECT_OBSERVATION: 1.0,
    Classification.REASONABLE_INFERENCE: 1.0,
    Classification.OVERSTATED: 0.5,
}
_RESTS_ON_NOTHING = frozenset({Classification.UNSUPPORTED, Classification.EXTERNAL_UNKNOWN})


@dataclass(frozen=True)
class _Opinion:
    classification: Classification
    objection: str = ""


def verify(question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a verifier's question; the answer is an object of ``VerifierAnswer``'s shape.

    Raises KeyError, TypeError, AttributeError or ValueError for a question of another shape.
    """
    context = question["diagnosis_context"]
    known = Evidence.of([context["query"], context["systems"], context["window"]])
    claims = [
        VerifiedClaim.model_validate_json(canonical(claim))
        for claim in question["verified_executor_output"]["claims"]
    ]
    opinions: dict[str, _Opinion] = {}
    checks: list[ClaimCheck] = []
    for claim in claims:
        quoted = [
            item for item in question["verified_evidence"] if item["claim_id"] == claim.claim_id
        ]
        opinion = _weigh(claim.text, [item["matched_text"] for item in quoted], known)
        opinions[claim.claim_id] = opinion
        checks.append(
            ClaimCheck(
                claim_id=claim.claim_id,
                classification=opinion.classification,
                evidence_refs=_refs(opinion, quoted),
            )
        )
    ceiling = Verdict(question["verdict_ceiling"])
    score = sum(_WORTH.get(check.classification, 0.0) for check in checks) / len(checks)
    return {
        "rationale": _rationale(opinions),
        "claim_checks": [check.model_dump(mode="json") for check in checks],
        "verdict": strictest((allowed_by_checks(claims, checks), ceiling)).value,
        "groundedness_score": round(score, 2),
        "facts_checked": None,
    }


def _weigh(text: str, quotations: Sequence[str], known: Evidence) -> _Opinion:
    """Classify one claim. What the question itself names, ``known``, may be said freely."""
    stated, evidence = facts(text), Evidence.of(quotations)
    if not stated:
        return _weigh_words(text, stated, evidence)
    absent = evidence.missing(stated, text)
    strange = set(known.missing(stated, text))
    lost = [fact for fact in absent if fact in strange]
    nothing_stands = len(absent) == _distinct(stated)
    if not lost:
        return (_weigh_words if nothing_stands else _supported)(text, stated, evidence)
    objection = f"{lost[0]} is not in its quotations"
    named = Facts(stated.quotations, (), stated.names, ())
    made_up = not nothing_stands and set(evidence.missing(named, text)) & set(lost)
    about_it = not nothing_stands or _shared(text, evidence)[0]
    if made_up or (about_it and _says_another_value(stated, evidence)):
        return _Opinion(Classification.CONTRADICTED, objection)
    if nothing_stands:
        return _Opinion(Classification.UNSUPPORTED, objection)
    return _Opinion(Classification.OVERSTATED, objection)


def _supported(text: str, stated: Facts, evidence: Evidence) -> _Opinion:
    """Every hard fact stands: directly, unless it was derived or reasoned, or too much is said."""
    absolute = _absolute(text, evidence)
    if absolute is not None:
        return _Opinion(Classification.OVERSTATED, f"“{absolute}” is not in its quotations")
    derived = any(not _stands(number, evidence) for number, _ in stated.numbers)
    if derived or _REASONED.search(text):
        return _Opinion(Classification.REASONABLE_INFERENCE)
    return _Opinion(Classification.DIRECT_OBSERVATION)


def _weigh_words(text: str, stated: Facts, evidence: Evidence) -> _Opinion:
    """A claim whose hard facts, if it has any, stand in the question alone: by its words."""
    shared, content = _shared(text, evidence)
    if content and not shared:
        return _Opinion(Classification.EXTERNAL_UNKNOWN, "no word of it is in its quotations")
    absolute = _absolute(text, evidence)
    if absolute is not None:
        return _Opinion(Classification.OVERSTATED, f"“{absolute}” is not in its quotations")
    if shared < _MOST_OF_THEM * content:
        return _Opinion(Classification.UNSUPPORTED, "few words of it are in its quotations")
    whole = words(text) in evidence.words and not _REASONED.search(text)
    direct = whole and not stated
    return _Opinion(
        Classification.DIRECT_OBSERVATION if direct else Classification.REASONABLE_INFERENCE
    )


def _shared(text: str, evidence: Evidence) -> tuple[int, int]:
    """How many content words of a claim begin as some quoted word does, and how many it has."""
    content = [word for word in words(text).split() if len(word) >= _CONTENT_WORD]
    return sum(f" {word[:_COMMON_PREFIX]}" in evidence.words for word in content), len(content)


def _absolute(text: str, evidence: Evidence) -> str | None:
    """The first word of the claim that leaves no exception and was not quoted either."""
    return next(
        (match[0] for match in _ABSOLUTE.finditer(text) if words(match[0]) not in evidence.words),
        None,
    )


def _says_another_value(stated: Facts, evidence: Evidence) -> bool:
    """Tell whether a value stands where the claim states one that does not."""
    times = Facts((), stated.times, (), ())
    if evidence.times and evidence.missing(times, ""):
        return True
    return any(
        not _stands(number, evidence)
        and any(number.dimension in {None, one.dimension} for one in evidence.numbers)
        for number, _ in stated.numbers
    )


def _distinct(stated: Facts) -> int:
    """How many different facts are stated: as many as can be missing."""
    numbers = {number.text for number, _ in stated.numbers}
    parts = (stated.quotations, stated.times, stated.names, numbers)
    return sum(len(set(part)) for part in parts)


def _stands(number: Number, evidence: Evidence) -> bool:
    return any(same(number, found) for found in evidence.numbers)


def _refs(opinion: _Opinion, quoted: Sequence[Mapping[str, Any]]) -> tuple[EvidenceRef, ...]:
    if opinion.classification in _RESTS_ON_NOTHING:
        return ()
    found = (
        EvidenceRef(
            invocation_id=item["invocation_id"],
            tool_name=item["tool_name"],
            raw_path=item["raw_path"],
        )
        for item in quoted
    )
    return tuple(dict.fromkeys(found))


def _rationale(opinions: Mapping[str, _Opinion]) -> str:
    head = "Rule-based comparison of hard facts, no judgement of meaning: "
    objections = [
        f"claim {claim_id} is {opinion.classification}, {opinion.objection}"
        for claim_id, opinion in opinions.items()
        if opinion.objection
    ]
    if not objections:
        return f"{head}nothing is against the {len(opinions)} compared claims."
    named = "; ".join(objections[:_NAMED_CLAIMS])
    more = len(objections) - _NAMED_CLAIMS
    return f"{head}{named}{f'; and {more} more' if more > 0 else ''}."
