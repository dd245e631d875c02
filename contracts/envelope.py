"""CloudEvents 1.0 in structured JSON mode: the wrapping of every message.

See https://github.com/cloudevents/spec (JSON event format). Extension
attributes are accepted and dropped; ``traceparent`` is the one that is kept.
"""

import re
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, JsonValue

from contracts.base import OpenContract, RunId, Timestamp, isoformat
from contracts.messages import (
    CancelRun,
    DraftReady,
    DraftRejected,
    EvidenceRequested,
    ExecutorOutputReady,
    ReleaseAborted,
    ReleaseFallback,
    ReleaseSucceeded,
)
from contracts.strict_json import canonical

SOURCE = "/release-stage"
MEDIA_TYPE = "application/cloudevents+json"

Incoming = DraftReady | ExecutorOutputReady | CancelRun
Outgoing = ReleaseSucceeded | ReleaseFallback | ReleaseAborted | DraftRejected | EvidenceRequested
MESSAGES: tuple[type[Incoming | Outgoing], ...] = (
    DraftReady,
    ExecutorOutputReady,
    CancelRun,
    ReleaseSucceeded,
    ReleaseFallback,
    ReleaseAborted,
    DraftRejected,
    EvidenceRequested,
)

_TYPE = re.compile(r"^release_stage\.(?P<name>[A-Za-z]+)\.v(?P<version>[1-9][0-9]{0,5})$")


class Envelope(OpenContract):
    """The attributes around a message's ``data``; ``subject`` is the run id."""

    specversion: Literal["1.0"]
    id: str = Field(min_length=1, max_length=256)
    source: str = Field(min_length=1, max_length=1024)
    type: str
    subject: RunId
    time: Timestamp
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: str | None = None
    traceparent: str | None = None
    data: dict[str, JsonValue]


def type_parts(type_: str) -> tuple[str, int] | None:
    """Split ``release_stage.DraftReady.v1`` into name and version; None for a foreign type."""
    match = _TYPE.fullmatch(type_)
    return (match["name"], int(match["version"])) if match else None


def schema_uri(type_: str) -> str:
    """The URI under which a message type's JSON Schema is known."""
    return f"urn:release-stage:schema:{type_.removeprefix('release_stage.')}"


def wrap(
    message: Incoming | Outgoing,
    *,
    message_id: str,
    time: datetime,
    source: str = SOURCE,
    traceparent: str | None = None,
) -> bytes:
    """Write one message as a CloudEvent, in canonical JSON.

    Fields that were never set are left out, so that what came in goes out as it was.
    """
    envelope: dict[str, Any] = {
        "specversion": "1.0",
        "id": message_id,
        "source": source,
        "type": message.TYPE,
        "subject": message.run_id,
        "time": isoformat(time),
        "datacontenttype": "application/json",
        "dataschema": schema_uri(message.TYPE),
        "data": message.model_dump(mode="json", exclude_unset=True),
    }
    if traceparent is not None:
        envelope["traceparent"] = traceparent
    return canonical(envelope)
