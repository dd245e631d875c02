"""The messages of the release stage, as data of CloudEvents (see ``envelope``)."""

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from contracts.base import Contract, OpenContract, ReplyTo, RunId, Timestamp
from contracts.claims import AgentPrompts, ComposedAnswer
from contracts.draft import DiagnosisDraft
from contracts.evidence import ToolCallId
from contracts.fallback import COMPOSED, SafeFallback
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


class ExecutorOutputReady(OpenContract):
    """An agent's structured claims are ready to be verified.

    ``output`` is an ``executor_evidence_v2`` document, or a string that holds one; it is
    read strictly by the worker. Round 1 answers an ``EvidenceRequested``.
    """

    TYPE: ClassVar[str] = "release_stage.ExecutorOutputReady.v1"

    run_id: RunId
    session_id: str
    round: Annotated[int, Field(ge=0, le=1)] = 0
    query: str
    output: JsonValue
    prompts: AgentPrompts
    budget: Budget = Budget()
    deadline: Timestamp | None = None
    locale: str | None = None
    reply_to: ReplyTo | None = None


class CancelRun(OpenContract):
    """End a run: nothing of it may be released from now on."""

    TYPE: ClassVar[str] = "release_stage.CancelRun.v1"

    run_id: RunId


class ReleaseSucceeded(Contract):
    """The draft passed both guards and is released unchanged; or the claims hold.

    A draft comes with its ``snapshot``; ``repaired`` tells that broken references, and
    nothing a reader sees, were mended. Claims come as a composed ``answer`` instead.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["draft", "snapshot"]}, {"required": ["answer"]}],
        }
    )

    TYPE: ClassVar[str] = "release_stage.ReleaseSucceeded.v1"

    run_id: RunId
    session_id: str
    round: Count
    draft: DiagnosisDraft | None = None
    snapshot: Snapshot | None = None
    repaired: bool = False
    answer: ComposedAnswer | None = None

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        """Hold either a draft with its snapshot or an answer; the other is not even null."""
        released = self.model_fields_set - {"run_id", "session_id", "round"}
        if self.draft is not None and self.snapshot is not None and "answer" not in released:
            return self
        if self.answer is not None and released == {"answer"}:
            return self
        raise ValueError("a release holds a draft with its snapshot, or an answer")


class ReleaseFallback(Contract):
    """The draft may not be released; its readers get fixed words instead.

    ``answer`` comes with LOW_CONFIDENCE and CLAIMS_REJECTED, and with nothing else.
    """

    TYPE: ClassVar[str] = "release_stage.ReleaseFallback.v1"

    run_id: RunId
    session_id: str
    round: Count
    fallback: SafeFallback
    answer: ComposedAnswer | None = None

    @model_validator(mode="after")
    def _answers_where_composed(self) -> Self:
        if (self.answer is not None) != (self.fallback.type in COMPOSED):
            raise ValueError("an answer comes with LOW_CONFIDENCE and CLAIMS_REJECTED alone")
        return self


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


class RequestedEvidence(Contract):
    """One critical gap; ``missing`` is what the agent itself said of it."""

    claim_id: str
    tool_name: str
    missing: str


class EvidenceRequested(Contract):
    """Some claims lack evidence that could still be found; asked for at most once a run.

    ``round`` is the round that the answer must name. No answer is needed: the run goes on
    without one when its wait is over.
    """

    TYPE: ClassVar[str] = "release_stage.EvidenceRequested.v1"

    run_id: RunId
    session_id: str
    round: Count
    gaps: Annotated[tuple[RequestedEvidence, ...], Field(min_length=1)]
