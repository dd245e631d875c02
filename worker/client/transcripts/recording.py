"""One call and its result become an invocation record, whatever format they came in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from pydantic import JsonValue

from contracts.evidence import InvocationRecord, Lifecycle
from contracts.strict_json import StrictJsonError, parse
from worker.client.recorder_findings import Finding, command_output
from worker.client.recorder_record import ended
from worker.client.transcripts.results import failure_in, output_of
from worker.guards.tools import BUILT_IN, AnyProjection
from worker.guards.tools.projection import REPEATED
from worker.trace.lifecycle import Ended, ErrorCode, failed, readable_request
from worker.trace.masking import Masked, mask, mask_text

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
class ProjectedTool:
    """An agent's tool whose answers are JSON objects with the fields of a tool's result.

    It is recorded as ``tool_name``, by that tool's ``projection``.
    """

    tool_name: str
    projection: AnyProjection


@dataclass(frozen=True)
class HelperTool:
    """A tool that serves the agent itself, such as a task list: it looks at nothing."""


AgentTool = CommandTool | ProjectedTool | HelperTool

AGENT_TOOLS: Mapping[str, AgentTool] = MappingProxyType(
    {
        **{name: ProjectedTool(name, BUILT_IN[name]) for name in BUILT_IN if name != RUN_COMMAND},
        RUN_COMMAND: CommandTool(),
        "run_bash_command": CommandTool(),
        "bash": CommandTool(),
        "kubectl": CommandTool(program="kubectl"),
        "TodoWrite": HelperTool(),
    }
)
"""What the agents' tools are. Of any other tool nothing is known: its calls are ERROR records."""


@dataclass(frozen=True)
class Call:
    """A call as the model made it; ``request`` is None if it is no strict JSON object."""

    call_id: str
    tool_name: str
    request: dict[str, JsonValue] | None
    started_at: datetime


@dataclass(frozen=True)
class Result:
    """What came back; ``text`` is None if the transcript holds no content at all.

    ``failure`` is the reason where the format itself marks the result as an error;
    ``duration_ms`` is known only where the format tells times.
    """

    text: str | None
    completed_at: datetime
    failure: str | None = None
    duration_ms: int | None = None


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
    call: Call,
    result: Result | None,
    tool: CommandTool | ProjectedTool | None,
    *,
    run_id: str,
    session_id: str,
) -> InvocationRecord:
    """Make the record of one call; ``tool`` is None for a tool that nothing is known of.

    These end as ERROR, with the reason as their message: no result, a result
    without content, arguments that are no JSON object or lack the command, a result
    that is or reports a failure, an answer that is not what its tool promises, a tool that
    nothing is known of. A blank
    output is NO_EVIDENCE, any other EVIDENCE_FOUND. A transcript does not tell exit
    codes: what did not fail is written as 0. Bounds and masks are the recorder's.
    Raises pydantic.ValidationError for a run id outside the contract.
    """
    request, flaw = readable_request(_request(call, tool))
    masked = mask(request)
    begun = InvocationRecord(
        run_id=run_id,
        session_id=session_id,
        tool_call_id=call.call_id,
        tool_name=_name(call, tool),
        lifecycle=Lifecycle.PROJECTING,
        request=masked.request,
        started_at=call.started_at,
    )
    at = Ended(result.completed_at, result.duration_ms) if result else Ended()
    text = (result.text if result else None) or ""
    output = output_of(text, call.request, request.get("command"))
    error = _error(call, result, tool, output) or flaw
    if error is not None:
        return failed(begun, at, mask_text(masked.hide(error)), shown=masked.hide(output))
    return _told(begun, at, output, tool, masked)


def _told(
    begun: InvocationRecord,
    at: Ended,
    output: str,
    tool: CommandTool | ProjectedTool | None,
    masked: Masked,
) -> InvocationRecord:
    if isinstance(tool, CommandTool):
        return ended(begun, at, command_output(0, output), masked, BUILT_IN[RUN_COMMAND])
    if tool is None:
        return failed(begun, at, ErrorCode.TOOL_UNKNOWN, shown=masked.hide(output))
    try:
        content = parse(output)
    except StrictJsonError:
        content = None
    if not isinstance(content, dict):
        return failed(begun, at, ErrorCode.RESULT_NOT_JSON, shown=masked.hide(output))
    fields = {name: value for name, value in content.items() if name not in REPEATED}
    return ended(begun, at, Finding(fields, shown=output), masked, tool.projection)


def _escape(match: re.Match[str]) -> str:
    return match[0] if match["known"] else r"\\"


def _name(call: Call, tool: AgentTool | None) -> str:
    if isinstance(tool, ProjectedTool):
        return tool.tool_name
    return RUN_COMMAND if tool else call.tool_name


def _request(call: Call, tool: AgentTool | None) -> dict[str, JsonValue]:
    request = dict(call.request or {})
    command = request.get("command")
    if isinstance(tool, CommandTool) and tool.program and isinstance(command, str):
        words = command.split(maxsplit=1)
        if words[:1] != [tool.program]:
            request["command"] = f"{tool.program} {command}"
    return request


def _error(call: Call, result: Result | None, tool: AgentTool | None, output: str) -> str | None:
    if result is None:
        return ErrorCode.NO_RESULT
    if result.failure is not None:
        return result.failure
    if result.text is None:
        return ErrorCode.RESULT_WITHOUT_CONTENT
    if call.request is None:
        return ErrorCode.ARGUMENTS_NOT_A_JSON_OBJECT
    command = call.request.get("command")
    if isinstance(tool, CommandTool) and not (isinstance(command, str) and command.strip()):
        return ErrorCode.ARGUMENTS_WITHOUT_COMMAND
    return failure_in(output)
