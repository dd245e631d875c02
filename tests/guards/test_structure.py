"""The rules that a concluded draft keeps by itself."""

from typing import Any

import pytest

from tests.strategies import draft
from worker.guards.structure import check_structure
from worker.guards.violations import ViolationCode as Code

BLANKS = ["", " ", "\t\n", "\u200b", "\u3164", "\u0301", "\ufeff\u2060"]


def found(**changes: Any) -> list[tuple[str, str]]:
    return [(item.code.value, item.target) for item in check_structure(draft(**changes))]


def analysis(analysis_id: str = "a1", **changes: Any) -> dict[str, Any]:
    return {
        "analysis_id": analysis_id,
        "kind": "NORMAL",
        "text": "Something was seen.",
        "tool_call_ids": ["call-1"],
        **changes,
    }


def item(*ids: str, text: str = "Do this.") -> dict[str, Any]:
    return {"text": text, "based_on_analysis_ids": list(ids)}


def test_a_sound_draft_has_no_structural_violation() -> None:
    """Both kinds, every section and references to every analysis pass."""
    assert check_structure(draft(missing_context=["Which region?"])) == ()


@pytest.mark.scenario("evidence-check", "Blank and repeated analysis ids")
def test_duplicate_or_missing_analysis_id_in_concluded_draft() -> None:
    """A blank id and the second bearer of an id are violations at their own places."""
    assert found(analyses=[analysis("a1"), analysis("a2"), analysis("a1"), analysis("a1")]) == [
        ("ANALYSIS_ID_DUPLICATE", "analyses[2].analysis_id"),
        ("ANALYSIS_ID_DUPLICATE", "analyses[3].analysis_id"),
    ]
    for blank in BLANKS:
        assert found(analyses=[analysis("a1"), analysis("a2"), analysis(blank)]) == [
            ("ANALYSIS_ID_BLANK", "analyses[2].analysis_id")
        ]


def test_two_blank_ids_are_blank_and_not_duplicates() -> None:
    """One broken rule is told once."""
    assert found(analyses=[analysis("a1"), analysis("a2"), analysis(""), analysis("")]) == [
        ("ANALYSIS_ID_BLANK", "analyses[2].analysis_id"),
        ("ANALYSIS_ID_BLANK", "analyses[3].analysis_id"),
    ]


def test_ids_are_compared_to_the_code_point() -> None:
    """Case, spaces and normal forms make different ids."""
    ids = ["a1", "A1", "a1 ", "\u00e9", "e\u0301", "a2"]
    assert found(analyses=[analysis(name) for name in ids]) == []


@pytest.mark.scenario("evidence-check", "References that lead nowhere")
@pytest.mark.parametrize("ids", [["a9"], ["A1"], ["a1 "], [""]])
@pytest.mark.parametrize("section", ["conclusion", "action_plan", "recommendations"])
def test_broken_report_reference_in_concluded_draft(section: str, ids: list[str]) -> None:
    """An unknown reference is a violation in each of the three sections."""
    bad = item(*ids)
    target = section if section == "conclusion" else f"{section}[1]"
    value = bad if section == "conclusion" else [item("a1"), bad]
    assert found(**{section: value}) == [
        ("REFERENCE_UNKNOWN", f"{target}.based_on_analysis_ids[0]")
    ]


@pytest.mark.scenario("evidence-check", "References that lead nowhere")
@pytest.mark.parametrize("section", ["conclusion", "action_plan", "recommendations"])
def test_empty_and_repeated_references_are_violations(section: str) -> None:
    """A section rests on something, and names it once."""
    target = section if section == "conclusion" else f"{section}[0]"
    for ids, expected in (
        ([], [("REFERENCES_EMPTY", f"{target}.based_on_analysis_ids")]),
        (
            ["a1", "a2", "a1"],
            [("REFERENCE_DUPLICATE", f"{target}.based_on_analysis_ids[2]")],
        ),
        (
            ["a9", "a9"],
            [
                ("REFERENCE_UNKNOWN", f"{target}.based_on_analysis_ids[0]"),
                ("REFERENCE_UNKNOWN", f"{target}.based_on_analysis_ids[1]"),
            ],
        ),
    ):
        value = item(*ids) if section == "conclusion" else [item(*ids)]
        assert found(**{section: value}) == expected


@pytest.mark.scenario("evidence-check", "Text that a reader cannot see")
@pytest.mark.parametrize("blank", BLANKS)
def test_blank_text_is_a_violation_everywhere_a_reader_sees_text(blank: str) -> None:
    """Invisible characters are no text."""
    assert found(
        conclusion=item("a1", text=blank),
        analyses=[analysis("a1", text=blank), analysis("a2")],
        action_plan=[item("a1", text=blank)],
        recommendations=[item("a1"), item("a1", text=blank)],
        limitations=["One.", blank],
        missing_context=[blank],
    ) == [
        ("TEXT_BLANK", "conclusion.text"),
        ("TEXT_BLANK", "analyses[0].text"),
        ("TEXT_BLANK", "action_plan[0].text"),
        ("TEXT_BLANK", "recommendations[1].text"),
        ("TEXT_BLANK", "limitations[1]"),
        ("TEXT_BLANK", "missing_context[0]"),
    ]


@pytest.mark.parametrize("kind", ["", "normal", "NORMAL ", "HYPOTHESIS", "NEGATIVE"])
def test_an_unsupported_kind_is_a_violation(kind: str) -> None:
    """Only the two kinds are known, to the letter."""
    assert found(analyses=[analysis("a1", kind=kind), analysis("a2")]) == [
        ("KIND_UNSUPPORTED", "analyses[0].kind")
    ]


def test_an_analysis_without_tool_calls_is_a_violation() -> None:
    """Every analysis rests on at least one call."""
    assert found(analyses=[analysis("a1", tool_call_ids=[]), analysis("a2")]) == [
        ("TOOL_CALLS_EMPTY", "analyses[0].tool_call_ids")
    ]


def test_a_draft_without_a_conclusion_never_counts_as_checked() -> None:
    """Whoever asks by mistake gets a violation."""
    assert found(conclusion=None) == [("CONCLUSION_MISSING", "conclusion")]


def test_codes_are_their_own_names() -> None:
    """A code in a record can be looked up in the source."""
    assert all(code.name == code.value for code in Code)
