"""What a repair changed, by place."""

import json
from typing import Any

import pytest
from hypothesis import given

from contracts.draft import DiagnosisDraft
from tests.strategies import draft, drafts
from worker.guards.mending import Mending, mendings


def changed(**fields: Any) -> DiagnosisDraft:
    value = json.loads(draft().model_dump_json())
    for path, new in fields.items():
        place = value
        *keys, last = path.split("__")
        for key in keys:
            place = place[int(key) if key.isdecimal() else key]
        place[last] = new
    return DiagnosisDraft.model_validate_json(json.dumps(value))


@pytest.mark.scenario("evidence-repair", "Mended references")
def test_every_changed_reference_is_told_with_its_place() -> None:
    """Before and after, in the order of the draft; what is the same is not told."""
    repaired = changed(
        recommendations__0__based_on_analysis_ids=["a1"],
        conclusion__based_on_analysis_ids=["a2"],
        analyses__1__analysis_id="a3",
        analyses__0__tool_call_ids=["call-1", "call-2"],
        action_plan__0__based_on_analysis_ids=[],
    )
    assert mendings(draft(), repaired) == (
        Mending("conclusion.based_on_analysis_ids", ("a1",), ("a2",)),
        Mending("analyses[0].tool_call_ids", ("call-1",), ("call-1", "call-2")),
        Mending("analyses[1].analysis_id", "a2", "a3"),
        Mending("action_plan[0].based_on_analysis_ids", ("a1",), ()),
        Mending("recommendations[0].based_on_analysis_ids", ("a1", "a2"), ("a1",)),
    )


@given(drafts())
def test_a_draft_needs_no_mending_to_be_itself(original: DiagnosisDraft) -> None:
    """Nothing differs, whatever the draft."""
    assert mendings(original, original) == ()


def test_drafts_of_different_shape_are_not_compared() -> None:
    """A repair that adds or drops an item is refused before anyone asks what it mended."""
    with pytest.raises(ValueError, match="zip"):
        mendings(draft(), draft(analyses=[]))
