"""Matched texts: what really stands at a place, to the code point."""

import string
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.claims.matched_text import lines_around, stands
from worker.claims.raw_path import Scalar


@pytest.mark.scenario("claim-gatekeeper", "A number is compared whole")
@pytest.mark.parametrize(
    ("matched", "value", "expected"),
    [
        ("42", 42, True),
        ("42.0", 42, True),
        ("4.2e1", 42, True),
        ("3.50", Decimal("3.5"), True),
        ("3.5", Decimal("3.50"), True),
        ("-0.25", Decimal("-0.25"), True),
        ("0.12345678901234567891", Decimal("0.12345678901234567891"), True),
        ("0.12345678901234567890", Decimal("0.12345678901234567891"), False),
        ("42", 142, False),
        ("4", 42, False),
        ("2", 42, False),
        ("-42", 42, False),
        ("+42", 42, False),
        ("042", 42, False),
        ("42 ", 42, False),
        ("42%", 42, False),
        ("\uff14\uff12", 42, False),
        ("1e999999999", 42, False),
        ("NaN", 42, False),
        ("0" * 5000, 0, False),
        ("1", True, False),
        ("true", True, True),
        ("True", True, False),
        ("false", False, True),
        ("0", False, False),
        ("null", None, True),
        ("None", None, False),
        ("0", None, False),
    ],
)
def test_a_value_that_is_no_text_is_compared_whole(
    matched: str, value: Scalar, *, expected: bool
) -> None:
    """By value and not by spelling; a part of a number is another number."""
    assert stands(matched, value) is expected


@pytest.mark.parametrize(
    ("matched", "text", "expected"),
    [
        ("upstream timed out", "10:02 upstream timed out (110)", True),
        ("Upstream timed out", "10:02 upstream timed out", False),
        ("upstream  timed out", "upstream timed out", False),
        ("healthy", "unhealthy", False),
        ("healthy", "unhealthy, then healthy", True),
        ("time", "runtime", False),
        ("error", "error_count", False),
        ("42", "took 42 ms", True),
        ("42", "took 42ms", False),
        ("42", "took 142 ms", False),
        ("42", "took 3.42 s", False),
        ("42", "took 42.7 s", False),
        ("42", "1,042", False),
        ("1", "1,042", False),
        ("42", "delta -42", False),
        ("-42", "delta -42", True),
        ("42", "range 7-42", True),
        (".5", "load 0.5", False),
        ("0.5", "load 0.5.", True),
        ("5", "load .5", False),
        ("10.0.0.1", "10.0.0.1:6379", True),
        ("10.0.0", "10.0.0.1", False),
        ("é", "caf\u0065\u0301", False),
        ("e", "caf\u0065\u0301", False),
        ("超时", "连接超时错误", True),
        ("42", "共42个", True),
        ("a\nb", "x\na\nb\ny", True),
        ("a b", "a\u00a0b", False),
        ("whole", "whole", True),
        ("more than there is", "more", False),
    ],
)
def test_a_text_stands_where_it_cuts_nothing(matched: str, text: str, *, expected: bool) -> None:
    """No word, number or character is cut, and no code point differs."""
    assert stands(matched, text) is expected


@given(st.text(min_size=1, max_size=30))
def test_a_text_stands_at_itself(text: str) -> None:
    """The whole value is always a quotation of it."""
    assert stands(text, text)


@given(st.text(max_size=10), st.text(min_size=1, max_size=10), st.text(max_size=10))
def test_what_stands_really_occurs(before: str, matched: str, after: str) -> None:
    """Nothing is normalised: where a text stands, its very code points stand."""
    if stands(matched, before + after):
        assert matched in before + after


@given(st.text(max_size=10), st.text(string.printable, min_size=1), st.text(max_size=10))
def test_what_stands_between_spaces_is_cut_nowhere(before: str, matched: str, after: str) -> None:
    """Spaces around a quotation are edges enough."""
    assert stands(matched, f"{before} {matched} {after}")


def test_a_text_of_many_cut_occurrences_is_given_up() -> None:
    """A repetitive text costs a bounded number of looks."""
    assert not stands("aa", "a" * 1_000_000)


def test_the_lines_around_a_quotation() -> None:
    """Whole lines, as many as the quotation touches."""
    assert lines_around("two", "one\none two three\nfour") == "one two three"
    assert lines_around("two\nthree", "one\na two\nthree b") == "a two\nthree b"
    assert lines_around("one", "one") == "one"
