"""The rule-based repair of a draft's references: only ids change, and only where a rule is sure."""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any

from contracts.base import is_blank

_TOOL_CALL = re.compile(r"analyses\[(\d+)\]\.tool_call_ids\[(\d+)\]")
_REFERRERS = ("action_plan", "recommendations")


def repair(draft: Mapping[str, Any], violations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A copy of ``draft`` whose references are mended where a rule can tell how.

    An id that differs from a known one only by case, spaces or punctuation becomes
    that one. A reference to nothing, and a tool call id that a violation points at,
    is left out where others remain. Blank and repeated analysis ids become fresh.
    """
    mended: dict[str, Any] = copy.deepcopy(dict(draft))
    analyses = mended["analyses"]
    _mend_tool_calls(analyses, {violation["target"] for violation in violations})
    renamed_blank = _mend_analysis_ids(analyses)
    known = [analysis["analysis_id"] for analysis in analyses]
    conclusion = mended.get("conclusion")
    items = [conclusion] if conclusion is not None else []
    for name in _REFERRERS:
        items += mended.get(name, [])
    for item in items:
        wanted = [
            renamed_blank if renamed_blank and is_blank(one) else one
            for one in item["based_on_analysis_ids"]
        ]
        item["based_on_analysis_ids"] = _resolved(wanted, known, broken=None)
    return mended


def _mend_tool_calls(analyses: list[Any], targets: set[str]) -> None:
    places = {
        (int(match[1]), int(match[2]))
        for match in map(_TOOL_CALL.fullmatch, targets)
        if match is not None
    }
    known = [
        one
        for place, analysis in enumerate(analyses)
        for index, one in enumerate(analysis["tool_call_ids"])
        if (place, index) not in places
    ]
    for place, analysis in enumerate(analyses):
        broken = {index for at, index in places if at == place}
        if broken:
            analysis["tool_call_ids"] = _resolved(analysis["tool_call_ids"], known, broken)


def _mend_analysis_ids(analyses: list[Any]) -> str | None:
    """Make the ids unique; returns the new id of the one blank analysis, if there is just one."""
    taken = {analysis["analysis_id"] for analysis in analyses}
    seen: set[str] = set()
    fresh_for_blank = []
    number = 0
    for analysis in analyses:
        old = analysis["analysis_id"]
        if is_blank(old) or old in seen:
            number += 1
            while f"analysis-{number}" in taken:
                number += 1
            analysis["analysis_id"] = f"analysis-{number}"
            taken.add(analysis["analysis_id"])
            if is_blank(old):
                fresh_for_blank.append(analysis["analysis_id"])
        seen.add(analysis["analysis_id"])
    return fresh_for_blank[0] if len(fresh_for_blank) == 1 else None


def _resolved(wanted: list[str], known: list[str], broken: set[int] | None) -> list[str]:
    """The references with broken ones mapped or left out; never empty where one was given.

    ``broken`` are the places to mend; None means every id that is not known.
    """
    kept: list[str] = []
    for index, one in enumerate(wanted):
        is_sound = one in known if broken is None else index not in broken
        found = one if is_sound else _alike(one, known)
        if found is not None and found not in kept:
            kept.append(found)
    return kept or wanted


def _alike(wanted: str, known: list[str]) -> str | None:
    """The known id of the same letters and digits, if it is the only one."""
    alike = {one for one in known if _bare(one) == _bare(wanted) != ""}
    alike.discard(wanted)
    return alike.pop() if len(alike) == 1 else None


def _bare(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
