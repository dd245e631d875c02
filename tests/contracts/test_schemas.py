"""The committed schemas say what the models say, and accept what the models write."""

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from contracts import schema
from contracts.envelope import MESSAGES, Incoming, Outgoing, schema_uri, wrap
from contracts.messages import DraftReady
from tests.contracts.messages_of_all_kinds import drafts, messages

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DOCUMENTS = {path: json.loads(text) for path, text in schema.documents().items()}
SCHEMAS = {path: found for path, found in DOCUMENTS.items() if path != "asyncapi.json"}
VALIDATORS = {path: Draft202012Validator(found) for path, found in SCHEMAS.items()}


def name(message: Incoming | Outgoing | type[Incoming | Outgoing]) -> str:
    return message.TYPE.removeprefix("release_stage.")


@pytest.mark.parametrize("path", SCHEMAS)
def test_each_schema_is_a_schema(path: str) -> None:
    """Every file is valid JSON Schema 2020-12 and has its own address."""
    Draft202012Validator.check_schema(SCHEMAS[path])
    assert [found["$id"] for found in SCHEMAS.values()].count(SCHEMAS[path]["$id"]) == 1


@pytest.mark.scenario("message-contracts", "A schema and its model agree")
@given(messages)
@settings(deadline=None)
def test_what_the_models_write_fits_the_schemas(message: Incoming | Outgoing) -> None:
    """A wrapped message fits its own message schema and no other, its data the data schema."""
    event = json.loads(wrap(message, message_id="m-1", time=MOMENT))
    fits = [
        path
        for path, validator in VALIDATORS.items()
        if path.startswith("messages/") and validator.is_valid(event)
    ]
    assert fits == [f"messages/{name(message)}.json"]
    VALIDATORS[f"data/{name(message)}.json"].validate(event["data"])
    assert SCHEMAS[f"data/{name(message)}.json"]["$id"] == event["dataschema"]


@given(drafts)
@settings(deadline=None)
def test_drafts_fit_their_schema(draft: Any) -> None:
    """Any draft that parses fits the schema that agents are given."""
    VALIDATORS["records/DiagnosisDraft.json"].validate(draft.model_dump(mode="json"))


@pytest.mark.scenario("message-contracts", "A schema and its model agree")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"run_id": "{r}"}, id="run id outside its alphabet"),
        pytest.param({"run_id": 7}, id="run id of another type"),
        pytest.param({"query": None}, id="null for a text"),
        pytest.param({"budget": {"tokens": -1}}, id="negative budget"),
        pytest.param({"stop": {"reason": "TIRED"}}, id="unknown reason"),
        pytest.param({"reply_to": "release.results"}, id="reply queue outside its pattern"),
        pytest.param({"progress": {"completed_tool_call_ids": [""]}}, id="empty call id"),
    ],
)
def test_schema_and_model_refuse_alike(change: dict[str, Any]) -> None:
    """What the schema refuses the model refuses too, so that a sender can check beforehand."""
    data = {"run_id": "r", "session_id": "s", "query": "q", "draft": None}
    validator = VALIDATORS["data/DraftReady.v1.json"]
    validator.validate(data)
    DraftReady.model_validate_json(json.dumps(data))
    assert not validator.is_valid(data | change)
    with pytest.raises(ValueError, match="validation error"):
        DraftReady.model_validate_json(json.dumps(data | change))


@pytest.mark.scenario("message-contracts", "Every message has a channel")
def test_asyncapi_refers_to_what_exists() -> None:
    """Every reference of the AsyncAPI document leads to a part of it or to a schema file."""
    document = DOCUMENTS["asyncapi.json"]
    inside, beside = set(), set()
    for reference in _references(document):
        if reference.startswith("#/"):
            inside.add(reference)
            found = document
            for step in reference.removeprefix("#/").split("/"):
                found = found[step]
        else:
            beside.add(reference.removeprefix("./"))
    assert inside
    assert beside == {f"messages/{name(message)}.json" for message in MESSAGES}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in _references(item)]
    return []


@pytest.mark.scenario("message-contracts", "Every message has a channel")
def test_every_message_travels_somewhere() -> None:
    """No message is without a channel."""
    channels = DOCUMENTS["asyncapi.json"]["channels"].values()
    travelling = {message for channel in channels for message in channel["messages"]}
    assert travelling == {message.__name__ for message in MESSAGES} | {"Dead"}


def test_data_schemas_have_the_address_that_envelopes_name() -> None:
    """``dataschema`` of an envelope names a schema that exists."""
    for message in MESSAGES:
        assert SCHEMAS[f"data/{name(message)}.json"]["$id"] == schema_uri(message.TYPE)


@pytest.mark.scenario("message-contracts", "A schema that was forgotten")
def test_drift_is_found_and_mended(tmp_path: Path) -> None:
    """A missing, a changed and a superfluous file are each named; writing brings them home."""
    schema.write(tmp_path)
    assert schema.drift(tmp_path) == []
    changed = deepcopy(SCHEMAS["data/CancelRun.v1.json"]) | {"title": "Other"}
    (tmp_path / "data/CancelRun.v1.json").write_text(json.dumps(changed))
    (tmp_path / "asyncapi.json").unlink()
    (tmp_path / "data/Gone.v1.json").write_text("{}")
    assert schema.drift(tmp_path) == [
        "asyncapi.json",
        "data/CancelRun.v1.json",
        "data/Gone.v1.json",
    ]
    schema.write(tmp_path)
    assert schema.drift(tmp_path) == []


def test_the_committed_schemas_have_not_drifted() -> None:
    """The folder in the repository is what the models say today."""
    assert schema.drift() == []
