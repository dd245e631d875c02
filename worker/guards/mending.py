"""What an accepted repair changed: the ids and references, by their place in the draft."""

from collections.abc import Iterator
from dataclasses import dataclass

from contracts.draft import DiagnosisDraft

Reference = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mending:
    """One field that differs. ``target`` is a position as in a violation.

    It holds ids of the draft, so it is for the evaluation record alone.
    """

    target: str
    before: Reference
    after: Reference


def mendings(original: DiagnosisDraft, repaired: DiagnosisDraft) -> tuple[Mending, ...]:
    """Compare a draft with its accepted repair, in the order of the draft.

    Raises ValueError for two drafts of different shape: such a repair is never accepted.
    """
    pairs = zip(_references(original), _references(repaired), strict=True)
    return tuple(
        Mending(target, before, after) for (target, before), (_, after) in pairs if before != after
    )


def _references(draft: DiagnosisDraft) -> Iterator[tuple[str, Reference]]:
    if draft.conclusion is not None:
        yield "conclusion.based_on_analysis_ids", draft.conclusion.based_on_analysis_ids
    for index, analysis in enumerate(draft.analyses):
        yield f"analyses[{index}].analysis_id", analysis.analysis_id
        yield f"analyses[{index}].tool_call_ids", analysis.tool_call_ids
    for section, items in (
        ("action_plan", draft.action_plan),
        ("recommendations", draft.recommendations),
    ):
        for index, item in enumerate(items):
            yield f"{section}[{index}].based_on_analysis_ids", item.based_on_analysis_ids
