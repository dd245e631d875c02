"""The rules that a concluded draft must keep by itself, before any record is read.

See the spec ``evidence-check``. A draft without a conclusion is not held to them.
"""

from collections.abc import Iterator, Set

from contracts.base import is_blank
from contracts.draft import NEGATIVE_OBSERVATION, NORMAL, Analysis, DiagnosisDraft
from worker.guards.violations import Violation, ViolationCode

KINDS = frozenset({NORMAL, NEGATIVE_OBSERVATION})


def check_structure(draft: DiagnosisDraft) -> tuple[Violation, ...]:
    """All structural violations of a concluded draft, in the order of the draft.

    A draft without a conclusion gives CONCLUSION_MISSING: nobody may take it for
    a draft that passed.
    """
    return tuple(_violations(draft))


def _violations(draft: DiagnosisDraft) -> Iterator[Violation]:
    known = frozenset(analysis.analysis_id for analysis in draft.analyses)
    if draft.conclusion is None:
        yield Violation(ViolationCode.CONCLUSION_MISSING, "conclusion")
    else:
        yield from _text(draft.conclusion.text, "conclusion.text")
        yield from _references(draft.conclusion.based_on_analysis_ids, known, "conclusion")
    yield from _analyses(draft.analyses)
    for section, items in (
        ("action_plan", draft.action_plan),
        ("recommendations", draft.recommendations),
    ):
        for index, item in enumerate(items):
            target = f"{section}[{index}]"
            yield from _text(item.text, f"{target}.text")
            yield from _references(item.based_on_analysis_ids, known, target)
    for section, texts in (
        ("limitations", draft.limitations),
        ("missing_context", draft.missing_context),
    ):
        for index, text in enumerate(texts):
            yield from _text(text, f"{section}[{index}]")


def _analyses(analyses: tuple[Analysis, ...]) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, analysis in enumerate(analyses):
        target = f"analyses[{index}]"
        if is_blank(analysis.analysis_id):
            yield Violation(ViolationCode.ANALYSIS_ID_BLANK, f"{target}.analysis_id")
        elif analysis.analysis_id in seen:
            yield Violation(ViolationCode.ANALYSIS_ID_DUPLICATE, f"{target}.analysis_id")
        seen.add(analysis.analysis_id)
        if analysis.kind not in KINDS:
            yield Violation(ViolationCode.KIND_UNSUPPORTED, f"{target}.kind")
        yield from _text(analysis.text, f"{target}.text")
        if not analysis.tool_call_ids:
            yield Violation(ViolationCode.TOOL_CALLS_EMPTY, f"{target}.tool_call_ids")


def _text(text: str, target: str) -> Iterator[Violation]:
    if is_blank(text):
        yield Violation(ViolationCode.TEXT_BLANK, target)


def _references(ids: tuple[str, ...], known: Set[str], owner: str) -> Iterator[Violation]:
    target = f"{owner}.based_on_analysis_ids"
    if not ids:
        yield Violation(ViolationCode.REFERENCES_EMPTY, target)
    seen: set[str] = set()
    for index, analysis_id in enumerate(ids):
        if analysis_id not in known:
            yield Violation(ViolationCode.REFERENCE_UNKNOWN, f"{target}[{index}]")
        elif analysis_id in seen:
            yield Violation(ViolationCode.REFERENCE_DUPLICATE, f"{target}[{index}]")
        seen.add(analysis_id)
