"""Rules for the text of a tool result: what the tool printed, and whether it failed.

A transcript hands on one text a call and no error flag, so both are read from
the text. Where a rule is in doubt it chooses failure: a call that is wrongly
held for failed cannot be cited, one that is wrongly held for good could be.
"""

import re
import shlex
from typing import Any

from contracts.base import is_blank
from contracts.strict_json import StrictJsonError, parse

_HEADER = re.compile(
    r"\AParams used for the tool call: (?P<params>\{.*\})\."
    r" The tool call output follows on the next line\.(?:\n|\Z)"
)

_FAILED = re.compile(
    r"""
    \s*(?:
        [Tt]ool\ call\ rejected\b               # the agent's tool layer would not run it
      | The\ tool\ call\ result\ is\ too\ large # ... ran it and threw the output away
      | [Ee]rror\ executing\ tool\b
      | [Cc]ommand\ timed\ out\b
      | [Ee]rror:\                              # most tool layers, and kubectl's own errors
      | Error\ from\ server\b
      | Unable\ to\ connect\ to\ the\ server\b
      | (?:\S*/)?(?:ba|da|k|z)?sh:\             # the shell itself: no such command, no permission
    )
    """,
    re.VERBOSE,
)

_LONGEST_REASON = 200


def output_of(text: str, sent: object, command: object) -> str:
    """Take from a result's text the lines that only repeat the request.

    Two lines are known: the header that HolmesGPT writes, if the parameters in it
    are those that were ``sent``, and then the command itself, as a shell would read
    it. An output is left as it is otherwise.
    """
    header = _HEADER.match(text)
    if header and _json(header["params"]) == sent:
        text = text[header.end() :]
    line, _, rest = text.partition("\n")
    return rest if isinstance(command, str) and _same_command(line, command) else text


def failure_in(output: str) -> str | None:
    """The reason of a failure, at most 200 characters, or None.

    A failure is an output that opens with words known from tool layers, shells and
    kubectl (a log line that opens with a time does not), or a JSON object that
    holds an ``error``, or a true ``is_error`` or ``isError``.
    """
    if _FAILED.match(output):
        return next(line for line in output.splitlines() if not is_blank(line))[:_LONGEST_REASON]
    value = _json(output) if output.lstrip().startswith("{") else None
    if isinstance(value, dict) and (
        value.get("error") or value.get("is_error") is True or value.get("isError") is True
    ):
        return "The tool answered with an error object."
    return None


def failure_of(text: str | None) -> str:
    """The reason of a result that its format marks as a failure: its first line, bounded."""
    lines = (text or "").splitlines()
    told = next((line for line in lines if not is_blank(line)), "The tool failed and said nothing.")
    return told[:_LONGEST_REASON]


def _json(text: str) -> Any:
    try:
        return parse(text)
    except StrictJsonError:
        return None


def _same_command(line: str, command: str) -> bool:
    if line.strip() == command.strip():
        return bool(command.strip())
    try:
        words = shlex.split(command)
        return bool(words) and shlex.split(line) == words
    except ValueError:
        return False
