"""What no record may do: be endless, contradict itself, or carry a link into a fallback."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from contracts.base import SourceName
from tests.pipeline.cases import command_record
from worker.guards.calls import MAX_RECORD_BYTES, VerifiedCall, read_call
from worker.guards.snapshot import MAX_SOURCES, verified_sources
from worker.guards.tools import BUILT_IN
from worker.guards.violations import ViolationCode


def stored(**changes: Any) -> bytes:
    record = command_record("run-1", "call-1", command="df -h", stdout="100% /var", **changes)
    return record.model_dump_json().encode()


def test_a_record_over_its_bound_is_not_read() -> None:
    """One byte more is refused, whatever it holds; spaces up to the bound are fine."""
    sound = stored()
    full = sound + b" " * (MAX_RECORD_BYTES - len(sound))
    assert isinstance(read_call("run-1", "call-1", full, BUILT_IN), VerifiedCall)
    over = read_call("run-1", "call-1", full + b" ", BUILT_IN)
    assert over is ViolationCode.RECORD_TOO_LARGE


@pytest.mark.parametrize(("success", "citable"), [(True, True), (None, True), (False, False)])
def test_a_call_that_did_not_succeed_is_not_citable(success: bool | None, citable: bool) -> None:
    """A READY record that says of itself that it failed contradicts itself."""
    found = read_call("run-1", "call-1", stored(success=success), BUILT_IN)
    assert isinstance(found, VerifiedCall) is citable
    assert citable or found is ViolationCode.STATUS_NOT_CITABLE


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("web-1", True),
        ("shop/orders:8080", True),
        ("pod@cluster.local", True),
        ("https://evil.example/fix", False),
        ("a//b", False),
        ("/etc", False),
        ("ends/", False),
        ("read this", False),
        ("x" * 128, True),
        ("x" * 129, False),
    ],
)
def test_a_source_is_a_name_and_no_link(name: str, valid: bool) -> None:
    """What may stand in a fallback leads nowhere."""
    adapter: TypeAdapter[str] = TypeAdapter(SourceName)
    if valid:
        assert adapter.validate_python(name) == name
    else:
        with pytest.raises(ValidationError):
            adapter.validate_python(name)


def test_a_fallback_names_a_bounded_number_of_sources() -> None:
    """The first ones stay."""
    calls = []
    for number in range(MAX_SOURCES + 1):
        record = command_record(
            "run-1",
            f"call-{number}",
            command="df -h",
            stdout="100% /var",
            request={"command": "df -h", "host": f"web-{number}"},
        )
        call = read_call("run-1", f"call-{number}", record.model_dump_json().encode(), BUILT_IN)
        assert isinstance(call, VerifiedCall)
        calls.append(call)
    sources = verified_sources(calls)
    assert len(sources) == MAX_SOURCES
    assert sources[0].source == "web-0"
