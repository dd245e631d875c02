"""One call and its result become an invocation record, whatever format they came in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from pydantic import JsonValue

from contracts.base import is_blank
from contracts.evidence import EvidenceStatus, InvocationRecord, Lifecycle, RunCommandResult
from contracts.strict_json import StrictJsonError, canonical, parse
from worker.client.transcripts.results import failure_in, output_of

RUN_COMMAND = "run_command"

_ESCAPE = re.compile(r"\\(?P<known>[\"\\/bfnrtu])?")


@dataclass(frozen=True)
class CommandTool:
    """An agent's tool that runs the text in its argument ``command``.

    ``program`` is the program that the tool puts in front of it, if any: the
    recorded command is the one that ran.
    """

    program: str | None = None


@dataclass(frozen=True)
class HelperTool:
    """A tool that serves the agent itself, such as a task list: it looks at nothing."""


AgentTool = CommandTool | HelperTool

AGENT_TOOLS: Mapping[str, AgentTool] = MappingProxyType(
    {
        "run_bash_command": CommandTool(),
        "kubectl": CommandTool(program="kubectl"),
        "TodoWrite": HelperTool(),
    }
)
"""What the agents' tools are. A tool that is not here is recorded under its own name."""


@dataclass(frozen=True)
class Call:
    """A call as the model made it; ``request`` is None if it is no strict JSON object."""

    call_id: str
    tool_name: str
    request: dict[str, JsonValue] | None
    started_at: datetime


@dataclass(frozen=True)
class Result:
    """What came back; ``text`` is None if the transcript holds no content at all."""

    text: str | None
    completed_at: datetime


def read_arguments(text: str) -> dict[str, JsonValue] | None:
    r"""Parse a call's arguments; None if they are no strict JSON object.

    An empty text is a call without arguments. One slip is mended, since models make
    it in shell patterns and agents' tool layers run the command all the same: a
    backslash before a character that JSON knows no escape for (``\|``) is itself.
    """
    if not text.strip():
        return {}
    for reading in (text, _ESCAPE.sub(_escape, text)):
        try:
            value = parse(reading)
        except StrictJsonError:
            continue
        return value if isinstance(value, dict) else None
    return None


def record(
    call: Call, result: Result | None, tool: CommandTool | None, *, run_id: str, session_id: str
) -> InvocationRecord:
    """Make the record of one call; ``tool`` is None for a tool that nothing is known of.

    These end as ERROR, with the reason as their message: no result, a result
    without content, arguments that are no JSON object or lack the command, a result
    that reports a failure. A blank output is NO_EVIDENCE, any other EVIDENCE_FOUND. A
    transcript does not tell exit codes: what did not fail is written as 0.
    Raises pydantic.ValidationError for a run id outside the contract.
    """
    request = _request(call, tool)
    text = (result.text if result else None) or ""
    output = output_of(text, call.request, request.get("command"))
    error = _error(call, result, tool, output)
    status = EvidenceStatus.NO_EVIDENCE if is_blank(output) else EvidenceStatus.EVIDENCE_FOUND
    return InvocationRecord(
        run_id=run_id,
        session_id=session_id,
        tool_call_id=call.call_id,
        tool_name=RUN_COMMAND if tool else call.tool_name,
        lifecycle=Lifecycle.ERROR if error else Lifecycle.READY,
        evidence_status=EvidenceStatus.ERROR if error else status,
        request=request,
        agent_result=None if error else _agent_result(call, tool, output, status),
        started_at=call.started_at,
        completed_at=result.completed_at if result else None,
        success=error is None,
        error_message=error,
    )


def _escape(match: re.Match[str]) -> str:
    return match[0] if match["known"] else r"\\"


def _request(call: Call, tool: CommandTool | None) -> dict[str, JsonValue]:
    request = dict(call.request or {})
    command = request.get("command")
    if tool and tool.program and isinstance(command, str):
        words = command.split(maxsplit=1)
        if words[:1] != [tool.program]:
            request["command"] = f"{tool.program} {command}"
    return request


def _error(call: Call, result: Result | None, tool: CommandTool | None, output: str) -> str | None:
    if result is None:
        return "NO_RESULT"
    if result.text is None:
        return "RESULT_WITHOUT_CONTENT"
    if call.request is None:
        return "ARGUMENTS_NOT_A_JSON_OBJECT"
    command = call.request.get("command")
    if tool and not (isinstance(command, str) and command.strip()):
        return "ARGUMENTS_WITHOUT_COMMAND"
    return failure_in(output)


def _agent_result(call: Call, tool: CommandTool | None, output: str, status: EvidenceStatus) -> str:
    if tool is None:
        return output
    projection = RunCommandResult.model_validate(
        {
            "tool_call_id": call.call_id,
            "evidence_status": status,
            "tool_name": RUN_COMMAND,
            "exit_code": 0,
            "stdout": output,
        }
    )
    return canonical(projection.model_dump(mode="json")).decode()
