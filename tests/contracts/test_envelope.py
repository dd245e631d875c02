"""The CloudEvent around every message."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from pydantic import ValidationError

from contracts.envelope import MESSAGES, Envelope, Incoming, Outgoing, type_parts, wrap
from contracts.messages import CancelRun, DraftReady
from tests.contracts.messages_of_all_kinds import messages

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.scenario("message-contracts", "Any message, written and read")
@given(messages)
def test_a_message_survives_its_envelope(message: Incoming | Outgoing) -> None:
    """What is wrapped is read back as the same message, of the same type and run."""
    envelope = Envelope.model_validate_json(wrap(message, message_id="m-1", time=MOMENT))
    again = type(message).model_validate_json(json.dumps(envelope.data))
    assert again == message
    assert (envelope.type, envelope.subject) == (message.TYPE, message.run_id)
    assert envelope.time == MOMENT


@pytest.mark.scenario("message-contracts", "What was never said")
def test_what_was_not_set_is_not_written() -> None:
    """A message goes out with the fields that came in, so that its hash stands."""
    message = DraftReady(run_id="r", session_id="s", query="q", draft=None)
    data = json.loads(wrap(message, message_id="m-1", time=MOMENT))["data"]
    assert data == {"run_id": "r", "session_id": "s", "query": "q", "draft": None}


@pytest.mark.scenario("message-contracts", "The trace")
def test_the_trace_is_carried() -> None:
    """``traceparent`` travels with a message; other extensions are read and dropped."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    wrapped = json.loads(
        wrap(CancelRun(run_id="r"), message_id="m-1", time=MOMENT, traceparent=trace)
    )
    envelope = Envelope.model_validate_json(json.dumps({**wrapped, "partitionkey": "k"}))
    assert envelope.traceparent == trace
    assert "partitionkey" not in envelope.model_dump()


@pytest.mark.scenario("message-contracts", "A broken envelope")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"specversion": "0.3"}, id="another version of CloudEvents"),
        pytest.param({"id": ""}, id="no id"),
        pytest.param({"subject": "{r}"}, id="a run id with braces"),
        pytest.param({"time": "yesterday"}, id="a time that is none"),
        pytest.param({"time": "2026-01-02T03:04:05"}, id="a time without an offset"),
        pytest.param({"datacontenttype": "text/plain"}, id="another kind of data"),
        pytest.param({"data": "text"}, id="data that is no object"),
    ],
)
def test_a_broken_envelope_does_not_parse(change: dict[str, object]) -> None:
    """Each attribute that the stage relies on is checked."""
    wrapped = json.loads(wrap(CancelRun(run_id="r"), message_id="m-1", time=MOMENT))
    with pytest.raises(ValidationError):
        Envelope.model_validate_json(json.dumps({**wrapped, **change}))


@pytest.mark.parametrize(
    ("type_", "parts"),
    [
        ("release_stage.DraftReady.v1", ("DraftReady", 1)),
        ("release_stage.DraftReady.v12", ("DraftReady", 12)),
        ("release_stage.DraftReady", None),
        ("release_stage.DraftReady.v1\n", None),
        pytest.param(f"release_stage.DraftReady.v{'9' * 5000}", None, id="endless version"),
        ("other.DraftReady.v1", None),
        ("", None),
    ],
)
def test_a_type_has_a_name_and_a_version(type_: str, parts: tuple[str, int] | None) -> None:
    """A foreign type is told apart from an unknown version of one of ours."""
    assert type_parts(type_) == parts


@pytest.mark.scenario("message-contracts", "Any message, written and read")
def test_every_message_has_its_own_type() -> None:
    """A type names one model, by the model's own name."""
    assert [type_parts(message.TYPE) for message in MESSAGES] == [
        (message.__name__, 1) for message in MESSAGES
    ]
