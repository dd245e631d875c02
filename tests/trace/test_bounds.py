"""Cutting a text at its bound, to the byte."""

import pytest

from worker.trace.bounds import clean, cut


@pytest.mark.parametrize(
    ("text", "most", "kept", "was_cut"),
    [
        ("", 3, "", False),
        ("abc", 3, "abc", False),
        ("abcd", 3, "abc", True),
        ("aé", 3, "aé", False),
        ("aéb", 3, "aé", True),
        ("a€", 3, "a", True),
        ("€€", 6, "€€", False),
        ("🙂a", 4, "🙂", True),
        ("🙂", 3, "", True),
        ("x\ud800", 4, "x\ufffd", False),
    ],
)
def test_a_text_is_cut_at_its_bound(text: str, most: int, kept: str, was_cut: bool) -> None:
    """What fits stays whole; what does not ends at the last whole character."""
    assert cut(text, most) == (kept, was_cut)


def test_a_surrogate_pair_is_its_character() -> None:
    """Two halves that belong together are one character, a lone half is none."""
    assert clean("\ud83d\ude42 \ud83d") == "🙂 \ufffd"
