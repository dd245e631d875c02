"""Invocation records: what an agent's tools were asked and what they found.

A record moves from PROJECTING to READY or ERROR and is then immutable. Its
``agent_result`` is the text that the agent saw: the JSON of one projection
below. The raw response of the tool is kept elsewhere and is never read by a
guard.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from contracts.base import Contract, OpenContract, RunId, SourceName, Timestamp

ToolCallId = Annotated[str, Field(min_length=1, max_length=256)]


class Lifecycle(StrEnum):
    PROJECTING = "PROJECTING"
    READY = "READY"
    ERROR = "ERROR"


class EvidenceStatus(StrEnum):
    EVIDENCE_FOUND = "EVIDENCE_FOUND"
    NO_EVIDENCE = "NO_EVIDENCE"
    ERROR = "ERROR"


class OutputState(StrEnum):
    PREVIEW = "PREVIEW"
    NO_OUTPUT = "NO_OUTPUT"
    """The call ended and showed nothing: said outright, so that it is no forgotten field."""


class Retrieval(OpenContract):
    """How a knowledge base was searched: which layer answered, and how well.

    ``l0_count`` and ``l1_count`` count the hits of the two layers; ``dedup_reason`` tells
    why the session was not shown the same again. ``details`` are bounded and for audit.
    """

    layer: Annotated[str, Field(max_length=64)] | None = None
    l0_count: int = Field(default=0, ge=0)
    l1_count: int = Field(default=0, ge=0)
    relevance_level: Annotated[str, Field(max_length=64)] | None = None
    dedup_reason: Annotated[str, Field(max_length=500)] | None = None
    details: dict[str, JsonValue] = {}


class InvocationRecord(OpenContract):
    """One tool call of one run.

    ``request`` is the call's arguments as sent (a JSON object); durations are in
    milliseconds. ``success`` tells that the call completed; what it found is
    ``evidence_status``, so that a completed call without usable evidence is neither a hit
    nor a failure. ``truncated`` marks a result that was cut, ``preview_truncated`` a
    preview that was; ``deduplicated`` a call that was answered with "seen before" instead
    of a look. The guards read neither preview nor retrieval.
    """

    run_id: RunId
    session_id: str
    tool_call_id: ToolCallId
    tool_name: str
    lifecycle: Lifecycle
    evidence_status: EvidenceStatus | None = None
    request: dict[str, JsonValue] = {}
    agent_result: str | None = None
    started_at: Timestamp
    completed_at: Timestamp | None = None
    duration_ms: int | None = Field(default=None, ge=0)
    success: bool | None = None
    error_message: str | None = None
    truncated: bool = False
    deduplicated: bool = False
    output_state: OutputState | None = None
    output_preview: str | None = None
    preview_truncated: bool = False
    retrieval: Retrieval | None = None


class TimeWindow(Contract):
    start: Timestamp
    end: Timestamp


# --- requests: the arguments that set the scope of a call ---------------------


class LookupKnowledgeRequest(OpenContract):
    query: str
    source: SourceName = "knowledge"


class QueryLogsRequest(OpenContract):
    source: SourceName
    query: str
    start: Timestamp
    end: Timestamp
    level: str | None = None


class QueryMetricsRequest(OpenContract):
    source: SourceName
    query: str
    start: Timestamp
    end: Timestamp


class QueryMysqlRequest(OpenContract):
    data_source: SourceName
    sql: str
    params: tuple[JsonValue, ...] = ()


class RunCommandRequest(OpenContract):
    """A shell or kubectl command; ``host`` names where it ran."""

    command: str
    host: SourceName = "shell"


# --- projections: what each call found ----------------------------------------


class Projection(Contract):
    """Fields that every projection repeats, so that a swapped result is noticed."""

    tool_call_id: ToolCallId
    evidence_status: Literal[EvidenceStatus.EVIDENCE_FOUND, EvidenceStatus.NO_EVIDENCE]


class KnowledgeDocument(Contract):
    document_id: str
    title: str
    excerpt: str
    updated_at: Timestamp | None = None


class LookupKnowledgeResult(Projection):
    tool_name: Literal["lookup_knowledge"]
    documents: tuple[KnowledgeDocument, ...]


class LogEvent(Contract):
    timestamp: str
    """As the log wrote it; logs disagree about formats."""
    message: str
    level: str | None = None


class LogPattern(Contract):
    pattern: str
    count: int = Field(ge=1)


class QueryLogsResult(Projection):
    tool_name: Literal["query_logs"]
    total_matches: int = Field(ge=0)
    patterns: tuple[LogPattern, ...] = ()
    events: tuple[LogEvent, ...] = ()


class MetricPoint(Contract):
    timestamp: Timestamp
    value: Annotated[float, Field(strict=False)]


class MetricSeries(Contract):
    labels: dict[str, str]
    points: tuple[MetricPoint, ...]
    unit: str | None = None


class QueryMetricsResult(Projection):
    tool_name: Literal["query_metrics"]
    series: tuple[MetricSeries, ...]


class QueryMysqlResult(Projection):
    """``row_count`` counts all rows of the answer; ``rows`` may hold the first of them."""

    tool_name: Literal["query_mysql"]
    columns: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]
    row_count: int = Field(ge=0)


class RunCommandResult(Projection):
    tool_name: Literal["run_command"]
    exit_code: int
    stdout: str
    stderr: str = ""
