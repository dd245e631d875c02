"""Small hand-made conversations in OpenAI form."""

import json
from datetime import UTC, datetime
from typing import Any

from contracts.evidence import InvocationRecord, RunCommandResult
from worker.client.transcripts import Transcript, read_openai_messages

BEGAN_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONE = "\ud800"
Message = dict[str, Any]

SYSTEM: Message = {"role": "system", "content": "You look into incidents."}
QUESTION: Message = {"role": "user", "content": "Why is checkout slow?"}
ANSWER: Message = {"role": "assistant", "content": "The disk is full."}


def call(call_id: object, name: object = "run_bash_command", arguments: object = None) -> Message:
    if arguments is None:
        arguments = json.dumps({"command": "df -h"})
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def asks(*calls: object, **more: object) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(call_id: object, content: object = "/dev/sda1 100%", **more: object) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def part(text: object) -> Message:
    return {"type": "text", "text": text}


def read(*messages: object, **more: Any) -> Transcript:
    settings = {"run_id": "run-1", "session_id": "s-1", "began_at": BEGAN_AT, **more}
    return read_openai_messages(list(messages), **settings)


def read_one(the_call: Message, content: object, **more: Any) -> InvocationRecord:
    (record,) = read(QUESTION, asks(the_call), result(the_call["id"], content), **more).records
    return record


def stdout(record: InvocationRecord) -> str:
    assert record.agent_result is not None
    return RunCommandResult.model_validate_json(record.agent_result).stdout
