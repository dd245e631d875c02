"""The chat-completions protocol as pure functions: a call to bytes, an answer's bytes to text.

The answer is read here and not by the SDK: for a 200 that is no chat completion
the SDK raises bare ``ValueError``, or returns a ``str``, ``None`` or an object
without choices.
"""

import json
import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from contracts.strict_json import StrictJsonError, read
from worker.ports import (
    ModelAnswer,
    ModelCall,
    ModelFailure,
    ModelOffSchema,
    ModelRateLimited,
    ModelRefused,
    ModelTransport,
    ModelUnparseable,
    Usage,
)

ResponseFormat = Literal["json_schema", "json_object", "none"]
TokenLimitField = Literal["max_tokens", "max_completion_tokens"]

LONGEST_RETRY_AFTER = 10.0
"""Seconds; a provider that asks for more gets its second attempt after this."""

_LONGEST_ESCAPE = 6
_WRAPPING_BYTES = 1 << 20
_LARGEST_COUNT = 2**53
_NO_WHOLE_ANSWER = ("length", "content_filter", "tool_calls", "function_call")


def request_body(
    call: ModelCall,
    *,
    model: str,
    response_format: ResponseFormat,
    temperature: float | None,
    token_limit_field: TokenLimitField,
) -> bytes:
    """The request in UTF-8 JSON: the same call gives the same bytes.

    Raises ModelRefused when the call's text cannot be written as UTF-8.
    """
    body: dict[str, object] = {
        "model": model,
        "messages": [
            {"role": "system", "content": call.system},
            {"role": "user", "content": call.user},
        ],
        token_limit_field: call.max_output_tokens,
    }
    if temperature is not None:
        body["temperature"] = temperature
    if response_format == "json_object":
        body["response_format"] = {"type": "json_object"}
    elif response_format == "json_schema":
        schema = {"name": call.answer_name, "schema": call.answer_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ModelRefused from None


def body_limit(call: ModelCall) -> int:
    """How many bytes of a response body are read, at most.

    The answer in its longest JSON escape, and 1 MiB for the wrapping and a model's
    spoken reasoning.
    """
    return call.max_output_bytes * _LONGEST_ESCAPE + _WRAPPING_BYTES


def failure_of_status(status: int, retry_after: str | None, now: datetime) -> ModelFailure | None:
    """What a status means; None for 2xx. A redirect is refused: the body is for one address only.

    ``retry_after`` is the header's text, seconds or an HTTP date.
    """
    if 200 <= status < 300:
        return None
    if status == 429:
        return ModelRateLimited(retry_after=_seconds(retry_after, now))
    if status == 408 or status >= 500:
        return ModelTransport()
    return ModelRefused()


def answer_of_body(body: bytes, max_output_bytes: int) -> ModelAnswer | ModelFailure:
    """Read the body of a 200.

    No chat completion at all is ModelUnparseable; one without a usable answer
    (refused, cut, empty, too long) is ModelOffSchema. Both keep the usage, where the
    body tells it.
    """
    try:
        completion = read(body)
    except StrictJsonError:
        return ModelUnparseable()
    if not isinstance(completion, dict):
        return ModelUnparseable()
    usage = _usage(completion.get("usage"))
    if completion.get("error") is not None or "choices" not in completion:
        return ModelUnparseable(usage)
    choices = completion["choices"]
    if choices is None or choices == []:
        return ModelOffSchema(usage)
    message = _message(choices)
    if message is None:
        return ModelUnparseable(usage)
    text = message.get("content")
    if (
        not isinstance(text, str)
        or choices[0].get("finish_reason") in _NO_WHOLE_ANSWER
        or message.get("refusal")
        or message.get("tool_calls")
        or message.get("function_call")
        or len(text.encode()) > max_output_bytes
    ):
        return ModelOffSchema(usage)
    return ModelAnswer(text, usage)


def _message(choices: Any) -> dict[str, Any] | None:
    first = choices[0] if isinstance(choices, list) else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: Any) -> int | None:
    """A token count; what no counter can have shown is as good as absent."""
    return value if type(value) is int and 0 <= value < _LARGEST_COUNT else None


def _seconds(retry_after: str | None, now: datetime) -> float | None:
    if retry_after is None:
        return None
    try:
        wait = float(retry_after)
    except ValueError:
        try:
            moment = parsedate_to_datetime(retry_after)
        except (ValueError, OverflowError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        wait = (moment - now).total_seconds()
    return None if math.isnan(wait) else min(max(wait, 0.0), LONGEST_RETRY_AFTER)
