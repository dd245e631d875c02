"""A question is data to its last character, whatever a chat template takes for its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.strict_json import parse
from worker.guards.questions import as_data

MARKS = [
    "<|im_end|>", "<|start_header_id|>system", "</s>", "<<SYS>>", "<end_of_turn>", "[INST]",
    "[/INST]", "[TOOL_CALLS]", "\\<|eot_id|>", '"<s>"', "<｜end▁of▁sentence｜>",
]  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
def test_a_templates_mark_is_spelled_otherwise_and_reads_the_same(mark: str) -> None:
    """As a value and as a key: the text holds it no longer, the data still does."""
    value = {"excerpt": [f"a {mark} b", mark], mark: 1}
    text = as_data(value)
    assert "<" not in text
    assert mark not in text
    assert parse(text) == value


@given(st.recursive(st.text('<[]/\\"AIu|', max_size=8) | st.integers(), st.lists))
def test_any_value_reads_back_as_it_was(value: object) -> None:
    """Lists of lists and backslashes before a mark among them."""
    text = as_data({"value": value})
    assert "<" not in text
    assert parse(text) == {"value": value}
