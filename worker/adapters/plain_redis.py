"""A CloudEvent pushed straight onto a Redis list, as a producer without kombu would.

Kombu expects its own envelope on the list. It takes anything else off the list and
breaks its connection over it, so the message would vanish. Here each item is put
into a fresh envelope on its way in, whatever it is, and admission decides about it.
"""

import base64
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from kombu.transport import redis as transport


def accept_plain(channel: Any) -> None:
    """Make a channel of plain queues take bare items too; does nothing on other transports."""
    _on_arrival(channel, _plain)


def keep_whole(channel: Any) -> None:
    """Make a channel of tasks hand on whatever comes; does nothing on other transports.

    Kombu would leave its loop over an item that it did not write, and the worker would
    end. So such an item comes as a message that is no task.
    """
    _on_arrival(channel, lambda queue, item: item if _is_whole(item) else envelope(queue, item))


def _on_arrival(channel: Any, wrapped: Callable[[bytes, bytes], bytes]) -> None:
    def arrived(reply: Any, **_: Any) -> tuple[bytes, bytes] | None:
        return (reply[0], wrapped(*reply)) if reply else None

    if isinstance(channel, transport.Channel):
        channel.client.set_response_callback("BRPOP", arrived)


def _plain(queue: bytes, item: bytes) -> bytes:
    body = body_of(item)
    return envelope(queue, item if body is None else body)


def body_of(item: bytes) -> bytes | None:
    """The message inside kombu's envelope; None when the item is no such envelope."""
    return _opened(item)[1]


def _is_whole(item: bytes) -> bool:
    """Tell whether kombu can take this envelope and acknowledge its message."""
    found, body = _opened(item)
    try:
        place = found["properties"]["delivery_info"]
        names = (found["properties"]["delivery_tag"], place["exchange"], place["routing_key"])
    except (KeyError, TypeError):
        return False
    return (
        body is not None
        and isinstance(found.get("headers"), dict)
        and all(isinstance(name, str) for name in names)
    )


def _opened(item: bytes) -> tuple[Any, bytes | None]:
    try:
        found = json.loads(item)
        body = found["body"]
        if found["properties"].get("body_encoding") == "base64":
            return found, base64.b64decode(body, validate=True)
        return found, str(body).encode() if isinstance(body, str) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, None


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
