"""A CloudEvent pushed straight onto a Redis list, as a producer without kombu would.

Kombu expects its own envelope on the list. It takes anything else off the list and
breaks its connection over it, so the message would vanish. Here each item is put
into a fresh envelope on its way in, whatever it is, and admission decides about it.
"""

import base64
import json
from typing import Any
from uuid import uuid4

from kombu.transport import redis as transport


def accept_plain(channel: Any) -> None:
    """Make a consuming channel take bare items too; does nothing on other transports."""
    if isinstance(channel, transport.Channel):
        channel.client.set_response_callback("BRPOP", _reply)


def _reply(reply: Any, **_: Any) -> tuple[bytes, bytes] | None:
    if not reply:
        return None
    queue, item = reply
    body = body_of(item)
    return queue, envelope(queue, item if body is None else body)


def body_of(item: bytes) -> bytes | None:
    """The message inside kombu's envelope; None when the item is no such envelope."""
    try:
        found = json.loads(item)
        body = found["body"]
        if found["properties"].get("body_encoding") == "base64":
            return base64.b64decode(body, validate=True)
        return str(body).encode() if isinstance(body, str) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def envelope(queue: bytes, body: bytes) -> bytes:
    """Write the envelope that kombu would have written around these bytes."""
    return json.dumps(
        {
            "body": base64.b64encode(body).decode(),
            "content-type": "application/octet-stream",
            "content-encoding": "binary",
            "headers": {},
            "properties": {
                "body_encoding": "base64",
                "delivery_mode": 2,
                "delivery_tag": str(uuid4()),
                "delivery_info": {"exchange": "", "routing_key": queue.decode()},
            },
        }
    ).encode()
