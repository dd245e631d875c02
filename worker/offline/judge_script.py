"""The judge's script: which fault or answer which request gets.

A script is a list of behaviours. A request takes the first one that has uses
left and whose ``match`` stands in the request's body; without one it is answered
by the rules. The same behaviours are written in Python (the functions below, with
``on``, ``repeat`` and ``always``) and in JSON (the fields of Behaviour).
"""

import base64
from collections.abc import Iterable
from threading import Lock
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

HTML = "<!doctype html><html><body><h1>Bad gateway</h1></body></html>"


class Behaviour(BaseModel):
    """What happens to a request, from waiting to closing.

    ``delay`` and ``trickle`` are seconds: before the answer, and between the bytes of
    its body. The body is ``body`` (text) or ``body_base64``, else a completion with
    ``content``, or ``verdict`` and ``reason``, or what the rules say; ``message`` and
    ``completion`` are merged over it. A status of 400 and above has an error object
    for its body unless one is given. ``end`` other than KEEP stops after the head and
    ``send_bytes`` bytes of the body, or before any byte if that is null.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    match: str | None = None
    times: int | None = Field(default=1, ge=1)
    name: str = "scripted"
    delay: float = Field(default=0.0, ge=0)
    status: int = Field(default=200, ge=200, le=599)
    headers: dict[str, str] = {}
    body: str | None = None
    body_base64: str | None = None
    content: str | None = None
    verdict: Literal["SUPPORTED", "UNSUPPORTED"] | None = None
    reason: str = "Chosen by the script."
    finish_reason: str = "stop"
    usage: bool = True
    message: dict[str, Any] = {}
    completion: dict[str, Any] = {}
    trickle: float | None = Field(default=None, gt=0)
    end: Literal["KEEP", "CLOSE", "RESET", "HANG"] = "KEEP"
    send_bytes: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        given = (self.body, self.body_base64, self.content, self.verdict)
        if sum(one is not None for one in given) > 1:
            raise ValueError("only one of body, body_base64, content and verdict")
        if self.body_base64 is not None:
            base64.b64decode(self.body_base64, validate=True)
        return self

    def on(self, marker: str) -> Self:
        """The same, for requests that hold ``marker`` in their body only."""
        return self.model_copy(update={"match": marker})

    def repeat(self, times: int) -> Self:
        """The same, for so many requests."""
        return self.model_copy(update={"times": times})

    def always(self) -> Self:
        """The same, for every request from now on."""
        return self.model_copy(update={"times": None})

    def after(self, seconds: float) -> Self:
        """The same, once so many seconds have passed."""
        return self.model_copy(update={"delay": seconds})

    def raw_body(self) -> bytes | None:
        """The body as given, None where a completion or an error object is to be made."""
        if self.body_base64 is not None:
            return base64.b64decode(self.body_base64)
        return None if self.body is None else self.body.encode("utf-8", "surrogatepass")


RULES = Behaviour(name="rules", times=None)
_BEHAVIOURS = TypeAdapter(list[Behaviour])


def rules() -> Behaviour:
    """The answer by the rules; of use with ``after``, or before a fault."""
    return Behaviour(name="rules")


def verdict(name: Literal["SUPPORTED", "UNSUPPORTED"], reason: str | None = None) -> Behaviour:
    """A chosen verdict, whatever was asked."""
    if reason is None:
        return Behaviour(name=f"verdict {name}", verdict=name)
    return Behaviour(name=f"verdict {name}", verdict=name, reason=reason)


def content(text: str) -> Behaviour:
    """A sound completion whose message is this text."""
    return Behaviour(name="content", content=text)


def status(code: int, *, retry_after: float | None = None, body: str | None = None) -> Behaviour:
    """An HTTP status with an error object, or with the given body."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Behaviour(name=f"status {code}", status=code, headers=headers, body=body)


def html(code: int = 200) -> Behaviour:
    """A page where JSON is expected, as a proxy in between would send it."""
    headers = {"content-type": "text/html; charset=utf-8"}
    return Behaviour(name=f"html {code}", status=code, headers=headers, body=HTML)


def raw(body: bytes, content_type: str = "application/json") -> Behaviour:
    """These bytes with status 200: empty, malformed, mislabelled, or anything else."""
    text = base64.b64encode(body).decode()
    return Behaviour(name="raw", body_base64=text, headers={"content-type": content_type})


def error_object() -> Behaviour:
    """An error object with status 200."""
    body = '{"error":{"message":"scripted","type":"server_error","param":null,"code":null}}'
    return Behaviour(name="error object", body=body)


def refusal(text: str = "I cannot help with that.") -> Behaviour:
    """A completion whose message refuses instead of answering."""
    return Behaviour(name="refusal", message={"content": None, "refusal": text})


def choices(value: list[Any] | None) -> Behaviour:
    """A completion with these choices, such as an empty list or null."""
    return Behaviour(name="choices", completion={"choices": value})


def cut_by_length(text: str | None = None) -> Behaviour:
    """A completion that ended at the token limit; without a text, the rules' whole answer."""
    return Behaviour(name="cut by length", content=text, finish_reason="length")


def no_usage() -> Behaviour:
    """The rules' answer without the usage object."""
    return Behaviour(name="no usage", usage=False)


def trickle(seconds: float) -> Behaviour:
    """The rules' answer, one byte of the body each so many seconds."""
    return Behaviour(name="trickle", trickle=seconds)


def reset(send_bytes: int | None = None) -> Behaviour:
    """Reset the connection (RST), before the answer or inside its body."""
    return Behaviour(name="reset", end="RESET", send_bytes=send_bytes)


def close(send_bytes: int | None = None) -> Behaviour:
    """Close the connection without an answer, or in the middle of its body."""
    return Behaviour(name="close", end="CLOSE", send_bytes=send_bytes)


def hang(send_bytes: int | None = None) -> Behaviour:
    """Say nothing, or no more, until the client closes the connection."""
    return Behaviour(name="hang", end="HANG", send_bytes=send_bytes)


class Script:
    """The behaviours that are left. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: list[tuple[Behaviour, bytes | None, int | None]] = []

    def replace(self, behaviours: Iterable[Behaviour]) -> None:
        """Forget the script and take this one; an empty one leaves the rules alone."""
        with self._lock:
            self._left = []
        self.extend(behaviours)

    def extend(self, behaviours: Iterable[Behaviour]) -> None:
        """Add behaviours after those that are left."""
        new = [(one, one.match.encode() if one.match else None, one.times) for one in behaviours]
        with self._lock:
            self._left += new

    def take(self, body: bytes) -> Behaviour:
        """The behaviour for a request, used once by it."""
        with self._lock:
            for index, (behaviour, marker, times) in enumerate(self._left):
                if marker is None or marker in body:
                    if times == 1:
                        del self._left[index]
                    elif times is not None:
                        self._left[index] = (behaviour, marker, times - 1)
                    return behaviour
        return RULES


def read_script(data: bytes) -> list[Behaviour]:
    """Read a JSON list of behaviours; raises pydantic's ValidationError."""
    return _BEHAVIOURS.validate_json(data)


def write_script(behaviours: Iterable[Behaviour]) -> bytes:
    """Write behaviours as JSON, for a judge in another process."""
    return _BEHAVIOURS.dump_json(list(behaviours), exclude_defaults=True)
