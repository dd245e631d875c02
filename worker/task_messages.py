"""What Celery may be given from the task queue: messages of the stage's own tasks, and no others.

Celery trusts its queue. A header that is missing or of another type breaks the loop of the
worker's main process; the loop connects again, is given the same message again, and so never
comes to any other. So each message is read here first, and what is not exactly a message that
this stage or a producer of ``release.submit`` would write is kept as a dead letter.
"""

from typing import Annotated, Any, Literal

from kombu import compression
from kombu.message import Message
from pydantic import Field, JsonValue, StringConstraints, TypeAdapter

from contracts.base import Contract, OpenContract, RunId
from worker.run.steps import Step
from worker.tasks import ATTEMPT_LOST, SUBMIT, step_name

_TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
"""An id that may stand in logs and events: no word of a draft fits in."""
_Seconds = Annotated[float, Field(gt=0, le=10_000_000, strict=False)]
_Absent = Literal[None, "", 0]

_HEADERS = ("lang", "task", "id", "root_id", "parent_id", "retries", "timelimit", "origin")
"""What Celery gets to see of a message's headers."""
_STEPS = frozenset(step_name(step) for step in Step)
_OWN = _STEPS | {ATTEMPT_LOST, SUBMIT}


class _Headers(OpenContract):
    task: str
    id: _TaskId
    root_id: _TaskId | None = None
    parent_id: _TaskId | None = None
    retries: Literal[0] | None = None
    timelimit: Annotated[list[_Seconds | None], Field(min_length=2, max_length=2)] | None = None
    # Celery would hold such a message in its memory, or drop it in silence.
    eta: _Absent = None
    expires: _Absent = None


class _Place(Contract):
    run_id: RunId
    round: Annotated[int, Field(ge=0, le=1)]
    attempt: Annotated[int, Field(ge=1, le=9)]


class _Loss(_Place):
    step: Annotated[Step, Field(strict=False)]
    grant: Annotated[int, Field(ge=1, le=9)]


class _Following(Contract):
    """A task that Celery sends when this one is through, or lost."""

    task: str
    args: Annotated[list[JsonValue], Field(max_length=0)]
    kwargs: dict[str, JsonValue]
    options: "_Options"
    subtask_type: None = None
    immutable: bool


class _Options(Contract):
    task_id: _TaskId
    queue: Literal["release.tasks"]
    soft_time_limit: _Seconds | None = None
    time_limit: _Seconds | None = None
    link_error: Annotated[list[_Following], Field(max_length=1)] = []


class _Embedded(Contract):
    callbacks: Annotated[list[JsonValue], Field(max_length=0)] | None = None
    errbacks: Annotated[list[_Following], Field(max_length=1)] | None = None
    chain: Annotated[list[_Following], Field(max_length=9)] | None = None
    chord: None = None


_EMBEDDED: TypeAdapter[_Embedded | None] = TypeAdapter(_Embedded | None)
_SAFE: TypeAdapter[_Headers] = TypeAdapter(_Headers)


def is_task(message: Message) -> bool:
    """Tell whether a message is a task of ours; leaves it only the headers that matter.

    The text that events and logs show of a step's arguments is written here, from the
    arguments that were checked, and not taken from the message.
    """
    try:
        headers = _SAFE.validate_python(message.headers)
        args, kwargs, embedded = message.payload
        _check(headers.task, args, kwargs)
        _check_following(_EMBEDDED.validate_python(embedded or None))
    except Exception:  # noqa: BLE001 - decoding runs whatever codec the message names
        return False
    shown = ("()", repr(kwargs)) if headers.task != SUBMIT else ("", "")
    kept = {name: message.headers[name] for name in _HEADERS if name in message.headers}
    message.headers = {**kept, "argsrepr": shown[0], "kwargsrepr": shown[1]}
    return True


def refuse_compression() -> None:
    """Make this process read no compressed message: a small one may hold gigabytes.

    Such a message is then one that cannot be decoded. Nothing in the stage writes any.
    """
    for name in compression.encoders():
        encode, content_type = compression.get_encoder(name)
        compression.register(encode, _refuse, content_type)


def _refuse(_: bytes) -> bytes:
    raise ValueError("compressed messages are not read")


def _check(task: str, args: Any, kwargs: Any) -> None:
    """Raise ValueError for arguments that this task does not take."""
    if task not in _OWN or not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError(task)
    if task == ATTEMPT_LOST:
        _Loss.model_validate(kwargs)
        if len(args) > 1 or not all(isinstance(arg, str) for arg in args):
            raise ValueError(task)
    elif task != SUBMIT:
        _Place.model_validate(kwargs)
        if args:
            raise ValueError(task)


def _check_following(embedded: _Embedded | None) -> None:
    following = [] if embedded is None else [*(embedded.chain or ()), *(embedded.errbacks or ())]
    while following:
        one = following.pop()
        if one.task == SUBMIT:
            raise ValueError(one.task)
        _check(one.task, one.args, one.kwargs)
        following += one.options.link_error
