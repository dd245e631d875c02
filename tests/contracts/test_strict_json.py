"""Strict JSON: what a lenient parser hides is named."""

import json

import pytest
from hypothesis import given

from contracts.strict_json import (
    MAX_DEPTH,
    Flaw,
    StrictJsonError,
    canonical,
    flaws,
    parse,
    read,
)
from tests.contracts.messages_of_all_kinds import json_values


@pytest.mark.scenario("message-contracts", "JSON that hides something")
@pytest.mark.parametrize(
    ("document", "code"),
    [
        pytest.param(b'{"a": 1, "a": 1}', "DUPLICATE_KEY", id="same key, same value"),
        pytest.param(b'[{"b": {"a": 1, "\\u0061": 2}}]', "DUPLICATE_KEY", id="escaped key, deep"),
        pytest.param(b"[NaN]", "NOT_FINITE", id="NaN"),
        pytest.param(b'{"a": -Infinity}', "NOT_FINITE", id="minus infinity"),
        pytest.param(b"1e999", "NOT_FINITE", id="a number too large for a float"),
        pytest.param(b'"\\ud800"', "LONE_SURROGATE", id="lone surrogate in a text"),
        pytest.param(b'{"\\udfff": 1}', "LONE_SURROGATE", id="lone surrogate in a key"),
        pytest.param(b"\xff", "NOT_UTF8", id="not UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', "NOT_UTF8", id="surrogate as bytes"),
        pytest.param(b"\xef\xbb\xbf{}", "NOT_JSON", id="byte order mark"),
        pytest.param(b"", "NOT_JSON", id="nothing"),
        pytest.param(b"{} {}", "NOT_JSON", id="two documents"),
        pytest.param(b"```json\n{}\n```", "NOT_JSON", id="fences"),
        pytest.param(b"{'a': 1}", "NOT_JSON", id="single quotes"),
        pytest.param(b"[1,]", "NOT_JSON", id="trailing comma"),
        pytest.param(b"[" * 65 + b"]" * 65, "TOO_DEEP", id="one level too deep"),
        pytest.param(b"[" * 200_000, "TOO_DEEP", id="deeper than the stack"),
        pytest.param(b'{"a":' * 200_000, "TOO_DEEP", id="objects deeper than the stack"),
        pytest.param(b"9" * 5000, "NOT_JSON", id="an integer of 5000 digits"),
    ],
)
def test_what_is_not_strict_is_named(document: bytes, code: str) -> None:
    """Each way to be not quite JSON has its code, and the error quotes nothing of the input."""
    with pytest.raises(StrictJsonError) as caught:
        parse(document)
    assert caught.value.code == str(caught.value) == code
    assert caught.value.__cause__ is None


def test_the_deepest_document_that_is_allowed_parses() -> None:
    """The limit itself is inside."""
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.dumps(parse(text)) == text


def test_a_flaw_stands_in_its_place() -> None:
    """One bad value leaves the rest of the document readable."""
    value = read(b'{"run_id": "r1", "draft": {"a": 1, "a": 2}, "more": [NaN, 2]}')
    assert value["run_id"] == "r1"
    assert value["draft"] == Flaw("DUPLICATE_KEY")
    assert value["more"] == [Flaw("NOT_FINITE"), 2]
    assert {flaw.code for flaw in flaws(value)} == {"DUPLICATE_KEY", "NOT_FINITE"}


@pytest.mark.scenario("message-contracts", "One form for comparison")
@given(json_values)
def test_canonical_text_reads_back_as_itself(value: object) -> None:
    """Writing and reading a strict value changes nothing, and writing again gives the same."""
    written = canonical(value)
    assert parse(written) == value
    assert canonical(parse(written)) == written


@pytest.mark.scenario("message-contracts", "One form for comparison")
def test_canonical_has_one_form() -> None:
    """Key order, spaces and escapes of the sender make no difference."""
    assert canonical(parse('{"b": 1,  "a": "\\u00e9"}')) == canonical(parse('{"a":"é","b":1}'))
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")]])
def test_canonical_refuses_what_has_no_form(value: object) -> None:
    """A value that strict JSON cannot hold is never written."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(value)
