"""Readers that turn what an agent already has into invocation records.

One module a format; what they share is the conversation (``conversation``), and the
rules that make a record of a call and its result (``recording``, ``results``).
"""

from worker.client.transcripts.anthropic_messages import read_anthropic_messages
from worker.client.transcripts.langchain_messages import read_langchain_messages
from worker.client.transcripts.openai_messages import read_openai_messages
from worker.client.transcripts.openai_responses import read_openai_responses
from worker.client.transcripts.otel_spans import read_otel_spans
from worker.client.transcripts.recording import (
    AGENT_TOOLS,
    AgentTool,
    CommandTool,
    HelperTool,
    ProjectedTool,
)
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError

__all__ = [
    "AGENT_TOOLS",
    "AgentTool",
    "CommandTool",
    "HelperTool",
    "ProjectedTool",
    "Refusal",
    "Transcript",
    "TranscriptError",
    "read_anthropic_messages",
    "read_langchain_messages",
    "read_openai_messages",
    "read_openai_responses",
    "read_otel_spans",
]
