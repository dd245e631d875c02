"""The messages of the release stage, as data of CloudEvents (see ``envelope``)."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from contracts.base import Contract, OpenContract, ReplyTo, RunId, Timestamp
from contracts.draft import DiagnosisDraft
from contracts.evidence import ToolCallId
from contracts.fallback import SafeFallback
from contracts.snapshot import Snapshot

Count = Annotated[int, Field(ge=0)]


class StopReason(StrEnum):
    INFORMATION_SATURATION = "INFORMATION_SATURATION"
    BUDGET_HANDLED = "BUDGET_HANDLED"


class ControlledStop(OpenContract):
    """The agent ended its investigation in good order before it had a conclusion."""

    reason: StopReason


class ProgressSnapshot(OpenContract):
    """The tool calls that the agent completed, whether or not its draft cites them."""

    completed_tool_call_ids: Annotated[tuple[ToolCallId, ...], Field(max_length=1000)] = ()


class Budget(OpenContract):
    """What the run may still spend on guard models; an absent field is unlimited."""

    model_calls: Count | None = None
    input_bytes: Count | None = None
    output_bytes: Count | None = None
    tokens: Count | None = None


class DraftReady(OpenContract):
    """An agent's draft is ready to be judged.

    ``draft`` is any JSON value, or a string that holds JSON. It is read strictly
    by the worker, since an unreadable draft still gets a fallback.
    """

    TYPE: ClassVar[str] = "release_stage.DraftReady.v1"

    run_id: RunId
    session_id: str
    query: str
    draft: JsonValue
    progress: ProgressSnapshot = ProgressSnapshot()
    stop: ControlledStop | None = None
    budget: Budget = Budget()
    deadline: Timestamp | None = None
    locale: str | None = None
    reply_to: ReplyTo | None = None


class CancelRun(OpenContract):
    """End a run: nothing of it may be released from now on."""

    TYPE: ClassVar[str] = "release_stage.CancelRun.v1"

    run_id: RunId


class ReleaseSucceeded(Contract):
    """The draft passed both guards and is released unchanged.

    ``repaired`` tells that broken references, and nothing a reader sees, were mended.
    """

    TYPE: ClassVar[str] = "release_stage.ReleaseSucceeded.v1"

    run_id: RunId
    session_id: str
    round: Count
    draft: DiagnosisDraft
    snapshot: Snapshot
    repaired: bool = False


class ReleaseFallback(Contract):
    """The draft may not be released; its readers get fixed words instead."""

    TYPE: ClassVar[str] = "release_stage.ReleaseFallback.v1"

    run_id: RunId
    session_id: str
    round: Count
    fallback: SafeFallback


class AbortReason(StrEnum):
    CANCELLED = "CANCELLED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    PROCESSING_FAILED = "PROCESSING_FAILED"


class ReleaseAborted(Contract):
    """The run ended without a verdict. A lifecycle event, never a fallback."""

    TYPE: ClassVar[str] = "release_stage.ReleaseAborted.v1"

    run_id: RunId
    session_id: str
    round: Count
    reason: AbortReason


class DraftRejected(Contract):
    """A message was refused before a run began. ``reasons`` are codes and quote nothing."""

    TYPE: ClassVar[str] = "release_stage.DraftRejected.v1"

    run_id: RunId
    reasons: tuple[str, ...]
