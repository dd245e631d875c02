"""Readers that turn what an agent already has into invocation records.

One module a format; what they share is the call, its result and the rules that
make a record of the two (``recording``, ``results``).
"""

from worker.client.transcripts.openai_messages import read_openai_messages
from worker.client.transcripts.recording import AGENT_TOOLS, AgentTool, CommandTool, HelperTool
from worker.client.transcripts.transcript import Refusal, Transcript, TranscriptError

__all__ = [
    "AGENT_TOOLS",
    "AgentTool",
    "CommandTool",
    "HelperTool",
    "Refusal",
    "Transcript",
    "TranscriptError",
    "read_openai_messages",
]
