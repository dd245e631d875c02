"""What a provider can do wrong, and what each of it must come to."""

import gzip
import json

from tests.adapters.fault_server import Reply, completion, http, says
from worker.ports import (
    ModelFailure,
    ModelOffSchema,
    ModelRateLimited,
    ModelRefused,
    ModelTransport,
    ModelUnparseable,
    Usage,
)

SECRET = "provider-words-that-must-not-pass"
GOOD = json.dumps(completion()).encode()
NO_USAGE = Usage()
USAGE = Usage(11, 7)

FAULTS: dict[str, tuple[Reply, type[ModelFailure], Usage]] = {
    "reset": (Reply(b"", then="reset"), ModelTransport, NO_USAGE),
    "closed at once": (Reply(b"", then="close"), ModelTransport, NO_USAGE),
    "no HTTP": (Reply(b"220 smtp ready\r\n\r\n", then="close"), ModelTransport, NO_USAGE),
    "short read": (Reply(http(200, GOOD, length=9999), then="close"), ModelTransport, NO_USAGE),
    "reset in the body": (
        Reply(http(200, GOOD, length=9999), then="reset"),
        ModelTransport,
        NO_USAGE,
    ),
    "408": (Reply(http(408)), ModelTransport, NO_USAGE),
    "500": (Reply(http(500, SECRET.encode())), ModelTransport, NO_USAGE),
    "502 with HTML": (
        Reply(http(502, f"<html>{SECRET}".encode(), content_type="text/html")),
        ModelTransport,
        NO_USAGE,
    ),
    "500 without end": (
        Reply(http(500, length=1 << 40), then="flood", more=b"x" * 65536),
        ModelTransport,
        NO_USAGE,
    ),
    "429": (Reply(http(429, SECRET.encode())), ModelRateLimited, NO_USAGE),
    "400": (Reply(http(400, SECRET.encode())), ModelRefused, NO_USAGE),
    "401": (Reply(http(401, SECRET.encode())), ModelRefused, NO_USAGE),
    "403": (Reply(http(403)), ModelRefused, NO_USAGE),
    "404": (Reply(http(404)), ModelRefused, NO_USAGE),
    "413": (Reply(http(413)), ModelRefused, NO_USAGE),
    "422": (Reply(http(422)), ModelRefused, NO_USAGE),
    "redirect": (Reply(http(307, headers={"location": "/other"})), ModelRefused, NO_USAGE),
    "200 with HTML": (
        Reply(http(200, f"<html>{SECRET}".encode(), content_type="text/html")),
        ModelUnparseable,
        NO_USAGE,
    ),
    "200 empty": (Reply(http(200)), ModelUnparseable, NO_USAGE),
    "204": (Reply(http(204)), ModelUnparseable, NO_USAGE),
    "SSE": (
        Reply(http(200, b"data: " + GOOD + b"\n\n", content_type="text/event-stream")),
        ModelUnparseable,
        NO_USAGE,
    ),
    "null": (says(None), ModelUnparseable, NO_USAGE),
    "no UTF-8": (Reply(http(200, GOOD.replace(b"judge", b"\xff"))), ModelUnparseable, NO_USAGE),
    "UTF-16": (
        Reply(http(200, json.dumps(completion()).encode("utf-16"))),
        ModelUnparseable,
        NO_USAGE,
    ),
    "gzip, undeclared": (Reply(http(200, gzip.compress(GOOD))), ModelUnparseable, NO_USAGE),
    "gzip, declared, unasked": (
        Reply(http(200, gzip.compress(GOOD), headers={"content-encoding": "gzip"})),
        ModelUnparseable,
        NO_USAGE,
    ),
    "declared as gzip, is not": (
        Reply(http(200, GOOD, headers={"content-encoding": "gzip"})),
        ModelUnparseable,
        NO_USAGE,
    ),
    "two documents": (Reply(http(200, GOOD + GOOD)), ModelUnparseable, NO_USAGE),
    "error in a 200": (
        says({"error": {"message": SECRET}, "usage": {"prompt_tokens": 11}}),
        ModelUnparseable,
        Usage(11, None),
    ),
    "choices null": (says({**completion(), "choices": None}), ModelOffSchema, USAGE),
    "choices empty": (says({**completion(), "choices": []}), ModelOffSchema, USAGE),
    "refusal": (says(completion(None, refusal=SECRET)), ModelOffSchema, USAGE),
    "cut by length": (says(completion(finish_reason="length")), ModelOffSchema, USAGE),
    "filtered": (says(completion(finish_reason="content_filter")), ModelOffSchema, USAGE),
    "tool call": (says(completion(tool_calls=[{"id": "1"}])), ModelOffSchema, USAGE),
    "too long": (says(completion("x" * 1001)), ModelOffSchema, USAGE),
    "body without end": (
        Reply(http(200, b"{", length=1 << 40), then="flood", more=b" " * 65536),
        ModelOffSchema,
        NO_USAGE,
    ),
}
"""The reply, the failure's class, and the usage that it must keep."""
