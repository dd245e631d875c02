"""Reading what came in: any bytes are received or refused, and nothing of them is quoted."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.strict_json import canonical, read
from tests.pipeline.cases import disk_draft, event
from worker.stage.submission import Refused, read_draft, read_submission, receive

LIMIT = 1_048_576
MARK = "heliotrope"


def refusal_of(raw: bytes) -> Refused | None:
    """Why a message is refused; None when it is received. Any other error fails the test."""
    try:
        receive(raw, LIMIT)
    except Refused as refusal:
        return refusal
    return None


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


@given(st.binary(max_size=200))
def test_any_bytes_are_received_or_refused(raw: bytes) -> None:
    """Nothing else is ever raised: another error would be a crash of the consumer."""
    refusal = refusal_of(raw)
    assert refusal is None or refusal.reasons


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
_envelope_fields = st.sampled_from(
    ["specversion", "id", "source", "type", "subject", "time", "dataschema", "data"]
)
_data_fields = st.sampled_from(
    ["run_id", "session_id", "query", "progress", "stop", "budget", "deadline", "reply_to"]
)


@given(_envelope_fields, _data_fields, _json, st.booleans())
def test_any_value_in_any_field_is_received_or_refused_without_a_quote(
    field: str, data_field: str, value: Any, inside: bool
) -> None:
    """Reasons are codes and names of our own fields, whatever stands in them."""
    message = event("run-1", MARK)
    if inside:
        message["data"][data_field] = [value, MARK]
    else:
        message[field] = [value, MARK]
    refusal = refusal_of(encoded(message))
    if refusal is not None:
        assert MARK not in str(refusal)
        assert all(reason.isascii() for reason in refusal.reasons)


@given(_json)
def test_any_draft_in_a_sound_envelope_is_admitted_and_read(draft: Any) -> None:
    """The draft's own faults are for the check, where they have an ending."""
    raw = encoded(event("run-1", draft))
    assert receive(raw, LIMIT).data.run_id == "run-1"
    assert read_submission(raw).query


@given(_json)
def test_a_draft_as_text_is_the_same_as_a_draft(draft: Any) -> None:
    """An agent may send its draft as JSON inside a string."""
    whole = None if isinstance(draft, str) else read_draft(read(json.dumps(draft)))
    assert read_draft(json.dumps(draft)) == whole


def test_a_sound_draft_as_text_is_read() -> None:
    """As text or as an object, it is the same draft."""
    assert read_draft(json.dumps(disk_draft())) == read_draft(disk_draft())
    assert read_draft(disk_draft()) is not None


def test_a_sound_draft_is_read_as_it_is() -> None:
    """Query, progress and stop come with it; repeated ids of progress count once."""
    calls = {"completed_tool_call_ids": ["b", "a", "b"]}
    data = {"progress": calls, "stop": {"reason": "BUDGET_HANDLED"}}
    submission = read_submission(encoded(event("run-1", disk_draft(), data=data)))
    assert submission.draft is not None
    assert submission.draft.model_dump(mode="json", exclude_unset=True) == disk_draft()
    assert submission.progress == ("b", "a")
    assert submission.stopped


def test_equal_data_has_one_hash_and_other_data_another() -> None:
    """The envelope and the order of keys do not count; a draft without one form counts raw."""
    first, again = event("run-1", disk_draft()), event("run-1", disk_draft())
    again["data"] = dict(reversed(again["data"].items()))
    assert receive(encoded(first), LIMIT).sha256 == receive(encoded(again), LIMIT).sha256
    other = event("run-1", {**disk_draft(), "limitations": []})
    assert receive(encoded(first), LIMIT).sha256 != receive(encoded(other), LIMIT).sha256
    broken = encoded(event("run-1", "HERE")).replace(b'"HERE"', b'{"a": 1, "a": 2}')
    assert receive(broken, LIMIT).sha256 == receive(broken, LIMIT).sha256
    assert receive(broken, LIMIT).sha256 != receive(broken.replace(b"2", b"3", 1), LIMIT).sha256


def test_a_message_at_its_limit_is_taken_and_one_byte_more_is_not() -> None:
    """The limit counts the bytes that came."""
    raw = canonical(event("run-1", "x"))
    assert receive(raw, len(raw)).envelope.subject == "run-1"
    with pytest.raises(Refused, match="MESSAGE_TOO_LARGE"):
        receive(raw, len(raw) - 1)


def test_what_can_be_read_of_a_refused_message_is_told() -> None:
    """Run id and reply queue serve for the answer; one outside its pattern serves for nothing."""
    good = refusal_of(encoded(event("run-1", None, type="x", data={"reply_to": "release.reply.a"})))
    assert good is not None
    assert (good.run_id, good.reply_to) == ("run-1", "release.reply.a")
    bad = refusal_of(encoded(event("run 1", None, type="x", data={"reply_to": "release:run"})))
    assert bad is not None
    assert (bad.run_id, bad.reply_to) == (None, None)
