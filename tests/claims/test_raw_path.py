"""Raw paths: a small syntax that leads to exactly one value, or to a reason."""

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.claims.raw_path import MAX_PATH, PathError, resolve
from worker.claims.rules import GateCode

DOCUMENT: dict[str, Any] = {
    "events": [{"message": "down", "level": None}, {"message": "up", "ok": True}],
    "count": 3,
    "rate": Decimal("0.50"),
    "labels": {"app.io/name": "api", 'a"]b': "odd", "0": "zero"},
    "rows": [[1, "two"]],
    "": "nameless",
}


@pytest.mark.parametrize(
    ("path", "place", "value"),
    [
        ("$.events[0].message", ("events", 0, "message"), "down"),
        ("events[0].message", ("events", 0, "message"), "down"),
        ("events.1.message", ("events", 1, "message"), "up"),
        ("$.events.1.ok", ("events", 1, "ok"), True),
        ("$.events[0].level", ("events", 0, "level"), None),
        ("count", ("count",), 3),
        ("$.rate", ("rate",), Decimal("0.50")),
        ("rows[0][1]", ("rows", 0, 1), "two"),
        ('$.labels["app.io/name"]', ("labels", "app.io/name"), "api"),
        ('labels["a\\"]b"]', ("labels", 'a"]b'), "odd"),
        ("labels.0", ("labels", "0"), "zero"),
        ('[""]', ("",), "nameless"),
        ('$["events"][1]["message"]', ("events", 1, "message"), "up"),
    ],
)
def test_a_path_leads_to_its_scalar(path: str, place: tuple[str | int, ...], value: object) -> None:
    """With or without its root, by names, items and quoted names."""
    assert resolve(DOCUMENT, path) == (place, value)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", GateCode.PATH_INVALID),
        ("$events", GateCode.PATH_INVALID),
        ("$..message", GateCode.PATH_INVALID),
        ("$.events[*].message", GateCode.PATH_INVALID),
        ("$.events[-1].message", GateCode.PATH_INVALID),
        ("$.events[0:1]", GateCode.PATH_INVALID),
        ("$.events[0", GateCode.PATH_INVALID),
        ("events[0].message ", GateCode.PATH_INVALID),
        (" events", GateCode.PATH_INVALID),
        ("events['0']", GateCode.PATH_INVALID),
        ('labels["\\x"]', GateCode.PATH_INVALID),
        ('labels["\\ud800"]', GateCode.PATH_INVALID),
        ("events[0]\n", GateCode.PATH_INVALID),
        ("a" * (MAX_PATH + 1), GateCode.PATH_INVALID),
        ("$.event", GateCode.PATH_MISSING),
        ("$.Events[0].message", GateCode.PATH_MISSING),
        ("$.events[2].message", GateCode.PATH_MISSING),
        ("$.events[00].message", GateCode.PATH_MISSING),
        (f"$.events[{'9' * 100}].message", GateCode.PATH_MISSING),
        ("$.events.message", GateCode.PATH_MISSING),
        ("$.count.value", GateCode.PATH_MISSING),
        ("$.events[0].message[0]", GateCode.PATH_MISSING),
        ("$.labels[0]", GateCode.PATH_MISSING),
        ('$.events["0"].message', GateCode.PATH_MISSING),
        ("$", GateCode.PATH_NOT_SCALAR),
        ("$.events", GateCode.PATH_NOT_SCALAR),
        ("$.events[0]", GateCode.PATH_NOT_SCALAR),
        ("$.labels", GateCode.PATH_NOT_SCALAR),
    ],
)
def test_a_path_that_leads_to_no_scalar_has_a_reason(path: str, code: GateCode) -> None:
    """No wildcard, no slice, no counting from the end; the reason quotes nothing."""
    with pytest.raises(PathError, match=rf"^{code}$") as caught:
        resolve(DOCUMENT, path)
    assert caught.value.code is code


@given(st.text(max_size=40) | st.text('$.[]"0a\\é', max_size=20))
def test_any_text_is_a_path_or_has_a_reason(path: str) -> None:
    """Nothing else is ever raised."""
    with suppress(PathError):
        resolve(DOCUMENT, path)
