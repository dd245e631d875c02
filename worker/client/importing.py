"""A transcript's file becomes a run's records: what ``release-stage import`` does."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contracts.evidence import Lifecycle
from contracts.messages import DraftReady, ProgressSnapshot
from worker.client.invocations import Immutable, InvocationWriter
from worker.client.transcripts import (
    AGENT_TOOLS,
    AgentTool,
    CommandTool,
    HelperTool,
    ProjectedTool,
    Transcript,
    read_anthropic_messages,
    read_langchain_messages,
    read_openai_messages,
    read_openai_responses,
    read_otel_spans,
)
from worker.guards.tools import AnyProjection

_MOST_PROGRESS = 1000
_WRAPPED = ("messages", "items", "input")
"""Fields under which a saved request or conversation holds its messages."""

_CONVERSATIONS: dict[str, Callable[..., Transcript]] = {
    "openai-chat": read_openai_messages,
    "openai-responses": read_openai_responses,
    "anthropic": read_anthropic_messages,
    "langchain": read_langchain_messages,
}
_SPANS = "otel"
FORMATS = (*_CONVERSATIONS, _SPANS)
KINDS = "NAME=KIND, with command, command:PROGRAM, helper, or a tool's name as the kind"


class WrongToolKind(ValueError):
    """A tool's kind is written in no known way; the message says how."""


class UnreadableFile(Exception):
    """The file cannot be read, or holds no JSON; the message names it and quotes nothing."""


@dataclass(frozen=True)
class Stored:
    """How many records were written, and how many differ from final ones that stand."""

    written: int
    refused: int


def tools_of(told: Iterable[str], known: Mapping[str, AnyProjection]) -> Mapping[str, AgentTool]:
    """The agent's tools, from ``NAME=KIND`` each, beside those that are known anyway.

    A kind is ``command``, ``command:PROGRAM``, ``helper``, or the name of a tool in
    ``known`` whose result the agent's tool answers with as JSON. Raises WrongToolKind.
    """
    tools: dict[str, AgentTool] = {
        name: ProjectedTool(name, projection) for name, projection in known.items()
    }
    tools |= AGENT_TOOLS
    for one in told:
        name, _, kind = one.partition("=")
        word, _, program = kind.partition(":")
        if not name or (program and word != "command"):
            raise WrongToolKind(KINDS)
        if word == "command":
            tools[name] = CommandTool(program or None)
        elif word == "helper":
            tools[name] = HelperTool()
        elif word in known:
            tools[name] = ProjectedTool(word, known[word])
        else:
            raise WrongToolKind(KINDS)
    return tools


def read_file(
    path: Path,
    format_: str,
    *,
    run_id: str,
    session_id: str,
    query: str = "",
    began_at: datetime | None = None,
    tools: Mapping[str, AgentTool] = AGENT_TOOLS,
) -> Transcript:
    """Read a file in one of FORMATS; spans may come as one JSON document or one a line.

    ``began_at`` is when the conversation began; without it the file's own time is taken,
    so that reading it again gives the same records. ``query`` is for spans without
    messages. Raises UnreadableFile, or TranscriptError where reading stopped.
    """
    data = _parsed(path)
    if format_ == _SPANS:
        return read_otel_spans(data, run_id=run_id, session_id=session_id, query=query, tools=tools)
    if isinstance(data, dict):
        data = next((data[name] for name in _WRAPPED if name in data), data)
    began = began_at or datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
    read = _CONVERSATIONS[format_]
    return read(data, run_id=run_id, session_id=session_id, began_at=began, tools=tools)


def store(transcript: Transcript, writer: InvocationWriter, run_id: str, session_id: str) -> Stored:
    """Write the records and set the counts; raises redis.RedisError."""
    refused = 0
    for record in transcript.records:
        try:
            writer.write(record)
        except Immutable:
            refused += 1
    writer.set_count(session_id, run_id, "model_steps", transcript.model_steps)
    writer.set_count(session_id, run_id, "helper_calls", transcript.helper_calls)
    return Stored(len(transcript.records) - refused, refused)


def draft_ready(
    transcript: Transcript, draft: str, *, run_id: str, session_id: str, query: str = ""
) -> DraftReady:
    """The message that submits a draft about a transcript.

    ``draft`` is the text of the draft as it was written: the worker reads it strictly.
    """
    completed = tuple(
        record.tool_call_id for record in transcript.records if record.lifecycle is Lifecycle.READY
    )
    return DraftReady(
        run_id=run_id,
        session_id=session_id,
        query=query or transcript.query,
        draft=draft,
        progress=ProgressSnapshot(completed_tool_call_ids=completed[-_MOST_PROGRESS:]),
    )


def read_text(path: Path) -> str:
    """A file's text; raises UnreadableFile."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{path} cannot be read: {type(error).__name__}") from None


def _parsed(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise UnreadableFile(f"{path} holds no JSON") from None
    if not lines:
        raise UnreadableFile(f"{path} is empty")
    return lines
