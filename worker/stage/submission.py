"""Reading what came in: the envelope at admission, the draft at the check.

The raw bytes are the truth. Admission stores them and looks at the draft no
closer than to hash it; the check parses it strictly from the same bytes, since
a lenient parse hides what a strict one refuses.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from contracts.base import ReplyTo, RunId
from contracts.claims import AgentPrompts, ExecutorOutput
from contracts.draft import DiagnosisDraft
from contracts.envelope import Envelope, Incoming, type_parts
from contracts.messages import CancelRun, DraftReady, ExecutorOutputReady
from contracts.strict_json import Flaw, StrictJsonError, canonical, flaws, parse, read
from worker.claims.output import read_output

_RUN_ID: TypeAdapter[str] = TypeAdapter(RunId)
_REPLY_TO: TypeAdapter[str] = TypeAdapter(ReplyTo)
_KNOWN: dict[str, type[Incoming]] = {
    "DraftReady": DraftReady,
    "ExecutorOutputReady": ExecutorOutputReady,
    "CancelRun": CancelRun,
}
_RAW_FIELDS = {DraftReady.TYPE: "draft", ExecutorOutputReady.TYPE: "output"}
"""The field that an agent's model wrote. It is read strictly later, by the step that judges it."""
_VERSION = 1


class Refused(Exception):
    """A message that cannot be admitted. ``reasons`` are codes and field names, never content.

    ``run_id`` and ``reply_to`` are what could be read of them, for an answer.
    """

    def __init__(
        self, *reasons: str, run_id: str | None = None, reply_to: str | None = None
    ) -> None:
        super().__init__(",".join(reasons))
        self.reasons = reasons
        self.run_id = run_id
        self.reply_to = reply_to


@dataclass(frozen=True)
class Received:
    """A message whose envelope and fields are sound. A broken raw field reads as null."""

    envelope: Envelope
    data: Incoming
    sha256: str


def receive(raw: bytes, limit: int) -> Received:
    """Read a message for admission; raises Refused."""
    if len(raw) > limit:
        raise Refused("MESSAGE_TOO_LARGE")
    try:
        document = read(raw)
    except StrictJsonError as error:
        raise Refused(error.code) from None
    if isinstance(document, Flaw):
        raise Refused(document.code)
    if not isinstance(document, dict):
        raise Refused("NOT_AN_ENVELOPE")
    data = document.get("data")
    type_ = document.get("type")
    field = _RAW_FIELDS.get(type_, "") if isinstance(type_, str) else ""
    broken = isinstance(data, dict) and any(flaws(data.get(field)))
    if isinstance(data, dict) and broken:
        document["data"] = {**data, field: None}
    run_id = _valid(_RUN_ID, document.get("subject"))
    reply_to = _valid(_REPLY_TO, data.get("reply_to")) if isinstance(data, dict) else None
    try:
        for flaw in flaws(document):
            raise Refused(flaw.code)
        envelope = _envelope(document)
        if envelope.data.get("run_id") != envelope.subject:
            raise Refused("SUBJECT_MISMATCH")
        body = canonical(envelope.data)
        message = _message(envelope, body)
    except Refused as refused:
        raise Refused(*refused.reasons, run_id=run_id, reply_to=reply_to) from None
    digest = hashlib.sha256(raw if broken else body).hexdigest()
    return Received(envelope, message, digest)


def _envelope(document: dict[str, Any]) -> Envelope:
    try:
        return Envelope.model_validate_json(canonical(document))
    except ValidationError as error:
        raise Refused(*_reasons("envelope", error)) from None


def _message(envelope: Envelope, body: bytes) -> Incoming:
    parts = type_parts(envelope.type)
    if parts is None or parts[0] not in _KNOWN:
        raise Refused("UNKNOWN_TYPE")
    if parts[1] != _VERSION:
        raise Refused("UNKNOWN_VERSION")
    try:
        return _KNOWN[parts[0]].model_validate_json(body)
    except ValidationError as error:
        raise Refused(*_reasons("data", error)) from None


def _reasons(part: str, error: ValidationError) -> list[str]:
    """Which known fields are wrong. Locations name our own fields, so they hold no content."""
    names = {str(problem["loc"][0]) for problem in error.errors(include_input=False)}
    return [f"INVALID_{part.upper()}:{name}" for name in sorted(names)]


def _valid(adapter: TypeAdapter[str], value: object) -> str | None:
    try:
        return adapter.validate_python(value, strict=True)
    except ValidationError:
        return None


@dataclass(frozen=True)
class Submission:
    """An admitted DraftReady, with its draft read strictly; None when it is unreadable."""

    query: str
    draft: DiagnosisDraft | None
    stopped: bool
    progress: tuple[str, ...]
    """Completed tool call ids, unique, in order."""


def read_submission(raw: bytes) -> Submission:
    """Read an admitted message again, this time with its draft."""
    data = read(raw)["data"]
    value = data.get("draft")
    message = DraftReady.model_validate_json(canonical({**data, "draft": None}))
    return Submission(
        query=message.query,
        draft=read_draft(value),
        stopped=message.stop is not None,
        progress=tuple(dict.fromkeys(message.progress.completed_tool_call_ids)),
    )


def read_draft(value: Any) -> DiagnosisDraft | None:
    """Read a draft, or a string that holds one, strictly. None when it is not a draft."""
    try:
        if isinstance(value, str):
            value = parse(value)
        if isinstance(value, Flaw) or any(flaws(value)):
            return None
        return DiagnosisDraft.model_validate_json(canonical(value))
    except (StrictJsonError, ValidationError):
        return None


@dataclass(frozen=True)
class ClaimsSubmission:
    """An admitted ExecutorOutputReady; ``output`` is None when it is INVALID_OUTPUT."""

    query: str
    output: ExecutorOutput | None
    prompts: AgentPrompts


def read_claims(raw: bytes) -> ClaimsSubmission:
    """Read an admitted message again, this time with the agent's output."""
    data = read(raw)["data"]
    message = ExecutorOutputReady.model_validate_json(canonical({**data, "output": None}))
    return ClaimsSubmission(
        query=message.query, output=read_output(data.get("output")), prompts=message.prompts
    )
