"""Which parameters are secrets: the written rule, line by line."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.trace.masking import MASK, is_secret_name, mask, mask_text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("DB_PASSWORD", True),
        ("userPassword", True),
        ("api_key", True),
        ("x-api-key", True),
        ("apiKey", True),
        ("aws_secret_access_key", True),
        ("Authorization", True),
        ("set-cookie", True),
        ("db_pass", True),
        ("pass", True),
        ("sshPrivateKey", True),
        ("credentials", True),
        ("max_tokens", False),
        ("JWT_TOKEN_EXPIRY", False),
        ("bypass", False),
        ("secrets_found", False),
        ("primary_key", False),
        ("key", False),
        ("query", False),
    ],
)
def test_a_name_is_a_secret_by_its_end(name: str, secret: bool) -> None:
    """Case and separators do not count."""
    assert is_secret_name(name) is secret


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("curl -H 'Authorization: Bearer abc.def'", "curl -H 'Authorization: Bearer ***'"),
        ("curl -u bob:pw http://h/", "curl -u bob:*** http://h/"),
        ("curl --user bob:pw http://h/", "curl --user bob:*** http://h/"),
        ("psql postgres://app:p@ss@db:5432/x", "psql postgres://app:***@db:5432/x"),
        ("redis-cli -u redis://:pw@h", "redis-cli -u redis://:***@h"),
        ("PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"),
        ("x --token abc --verbose", "x --token *** --verbose"),
        ("x --token=abc", "x --token=***"),
        ("mysql -uroot -pfoo -e 'x'", "mysql -uroot -p*** -e 'x'"),
        ("curl 'http://h/?a=1&api_key=abc&b=2'", "curl 'http://h/?a=1&api_key=***&b=2'"),
        ('{"password": "a b", "n": 1}', '{"password": "***", "n": 1}'),
        ("curl -H 'Cookie: a=b; c=d'", "curl -H 'Cookie: ***'"),
        ("WHERE token = 'abc def'", "WHERE token = '***'"),
        ("kubectl get secret -n prod", "kubectl get secret -n prod"),
        ("kubectl get pods -p 5", "kubectl get pods -p 5"),
        ("grep JWT_TOKEN_EXPIRY=60 env", "grep JWT_TOKEN_EXPIRY=60 env"),
        ("http://h:8080/x@y", "http://h:8080/x@y"),
        ("12:30:01 user@host", "12:30:01 user@host"),
    ],
)
def test_a_text_is_masked_where_it_names_a_secret(text: str, masked: str) -> None:
    """The rest of the text stays exactly as it was, and masking twice is masking once."""
    assert mask_text(text) == masked
    assert mask_text(masked) == masked


def test_a_secret_is_masked_at_any_depth() -> None:
    """Objects and lists inside the parameters are looked through."""
    found = mask(
        {"auth": {"token": {"a": "one-secret", "b": [12345]}}, "args": ["--password=two"], "n": 1}
    )
    assert found.request == {"auth": {"token": MASK}, "args": ["--password=***"], "n": 1}
    assert found.secrets == {"one-secret", "12345", "two"}
    assert found.hide("one-secret, x12345x, 12345 and two, twofold") == (
        "***, x12345x, *** and ***, twofold"
    )
    assert found.hide_in({"two": ["two", 2, None]}) == {"two": ["***", 2, None]}


@given(st.text(max_size=60), st.text("abcdef012345", min_size=8, max_size=20))
def test_an_assigned_secret_never_stays(before: str, secret: str) -> None:
    """Whatever stands before it, a long value after ``password=`` is gone."""
    masked = mask({"command": f"{before} password={secret}"})
    assert secret not in str(masked.request["command"]) or secret in before
    assert mask(masked.request).request == masked.request


@pytest.mark.parametrize(
    "unit",
    ["a", "mysql ", "password", "token= ", "http://", "a:b@", "cookie:", "-u a:", "--token "],
)
def test_masking_takes_linear_time(unit: str) -> None:
    """A huge hostile parameter is masked in a moment."""
    began = time.perf_counter()
    mask_text(unit * (65_536 // len(unit)))
    assert time.perf_counter() - began < 3
