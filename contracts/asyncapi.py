"""The AsyncAPI 3 document: which message travels on which queue, and in which direction."""

from typing import Any

from contracts.channels import (
    CONTROL,
    DEAD,
    DRAFTS,
    EVENTS,
    REPLY_PREFIX,
    REQUESTS,
    RESULTS,
    SHADOW,
)
from contracts.envelope import MEDIA_TYPE, MESSAGES
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

_ENDINGS = (ReleaseSucceeded, ReleaseFallback, ReleaseAborted)
_JSON_SCHEMA = "application/schema+json;version=draft-2020-12"


def document() -> dict[str, Any]:
    """The whole document; payloads refer to the files in ``messages/`` beside it."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Release stage",
            "version": "1",
            "description": (
                "Drafts of diagnosis agents go in, one ending per run comes out. "
                "Every message is a CloudEvent 1.0 in structured JSON."
            ),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": MEDIA_TYPE,
        "channels": {
            "drafts": _queue(
                DRAFTS, "Drafts and claims to be judged.", DraftReady, ExecutorOutputReady
            ),
            "control": _queue(CONTROL, "Cancellations; never behind drafts.", CancelRun),
            "results": _queue(
                RESULTS, f"Endings, bound to the exchange {EVENTS}; at least once.", *_ENDINGS
            ),
            "reply": {
                **_queue(
                    f"{REPLY_PREFIX}{{name}}",
                    "The queue that a draft or its claims named in reply_to.",
                    *_ENDINGS,
                    DraftRejected,
                    EvidenceRequested,
                ),
                "parameters": {"name": {"description": "Lower case letters, digits, . _ and -"}},
            },
            "requests": _queue(
                REQUESTS, "Evidence asked for; only without a reply queue.", EvidenceRequested
            ),
            "shadow": _queue(
                SHADOW, "Endings of a stage that only watches; they go nowhere else.", *_ENDINGS
            ),
            "dead": {
                "address": DEAD,
                "description": "What could not be read or was refused, untouched.",
                "messages": {"Dead": {"$ref": "#/components/messages/Dead"}},
            },
        },
        "operations": {
            "judgeDraft": _operation("receive", "drafts"),
            "cancelRun": _operation("receive", "control"),
            "publishEnding": _operation("send", "results"),
            "publishShadow": _operation("send", "shadow"),
            "requestEvidence": _operation("send", "requests"),
            "answerSender": _operation("send", "reply"),
            "park": _operation("send", "dead"),
        },
        "components": {
            "messages": {
                **{message.__name__: _message(message) for message in MESSAGES},
                "Dead": {
                    "name": "Dead",
                    "summary": "The bytes as they came; a header holds the reason, a code.",
                    "contentType": "application/octet-stream",
                    "payload": {},
                },
            }
        },
    }


def _queue(address: str, description: str, *messages: type) -> dict[str, Any]:
    return {
        "address": address,
        "description": description,
        "messages": {
            message.__name__: {"$ref": f"#/components/messages/{message.__name__}"}
            for message in messages
        },
    }


def _operation(action: str, channel: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}


def _message(message: Any) -> dict[str, Any]:
    name = message.TYPE.removeprefix("release_stage.")
    return {
        "name": message.TYPE,
        "summary": message.__doc__.splitlines()[0],
        "contentType": MEDIA_TYPE,
        "payload": {
            "schemaFormat": _JSON_SCHEMA,
            "schema": {"$ref": f"./messages/{name}.json"},
        },
    }
