r"""``run_command``: what a shell or kubectl command wrote.

Self-authored is an output each of whose words already stands in the command:
``echo``, ``printf``, a here-document, ``python -c "print(...)"``, ``awk 'BEGIN...'``.
Words end at white space, quotes and shell separators, not at hyphens, so that
``systemctl is-active redis`` may answer ``active``. The command is compared with
and without its quotes, and with its escapes both kept and resolved.

The limits, said plainly:

- Words that a command computes (``base64 -d``, ``rev``, ``tr``, arithmetic, ``'a'+'b'``)
  are not recognised, nor is an ``echo`` next to one real line of output. The review
  sees the exact command for that reason.
- A real answer that repeats words of its question (``ls /etc/passwd``; ``redis-cli -n 0
  dbsize`` answering 0; ``test -f x && echo yes``) is refused too. Such a command can
  be asked so that its answer says more (``ls -l``, ``redis-cli -n 0 info keyspace``).
"""

import re
from collections.abc import Iterator

from contracts.base import is_blank
from contracts.evidence import EvidenceStatus, RunCommandRequest, RunCommandResult
from worker.guards.tools.projection import Observed, ToolProjection

_BOUNDARY = re.compile(r"[\s'\"`;|&()<>{}$=,]+")
_QUOTES = str.maketrans("", "", "'\"`")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|0?([0-7]{1,3})|(.))", re.DOTALL)
_SPACES = frozenset("abcefnrtv")
_EXIT_NOTHING_FOUND = frozenset({0, 1})
"""``grep`` and its kin exit with 1 when they find nothing."""


def repeats_command(command: str, output: str) -> bool:
    """Tell whether each word of an output stands in the command that wrote it."""
    words = {word for form in _forms(command) for word in _BOUNDARY.split(form)}
    return all(word in words for word in _BOUNDARY.split(output) if word)


def _forms(command: str) -> Iterator[str]:
    for text in (command, _ESCAPE.sub(_resolved, command)):
        yield text
        yield text.translate(_QUOTES)


def _resolved(escape: re.Match[str]) -> str:
    hexadecimal, unicode, octal, char = escape.groups()
    if char is None:
        return chr(int(octal, 8) if octal else int(hexadecimal or unicode, 16))
    if char == "\n":
        return ""
    return " " if char in _SPACES else char


def _status(result: RunCommandResult) -> EvidenceStatus | None:
    if not is_blank(result.stdout):
        return EvidenceStatus.EVIDENCE_FOUND
    if not is_blank(result.stderr) and result.exit_code != 0:
        return EvidenceStatus.EVIDENCE_FOUND
    return EvidenceStatus.NO_EVIDENCE if result.exit_code in _EXIT_NOTHING_FOUND else None


def _self_authored(request: RunCommandRequest, result: RunCommandResult) -> bool:
    return repeats_command(request.command, f"{result.stdout}\n{result.stderr}")


def _observed(_: RunCommandRequest, result: RunCommandResult) -> Observed:
    return Observed(exit_code=result.exit_code)


PROJECTION = ToolProjection(
    request=RunCommandRequest,
    result=RunCommandResult,
    source=lambda request: request.host,
    scope=("command",),
    asks=lambda request: not is_blank(request.command),
    status=_status,
    self_authored=_self_authored,
    observed=_observed,
    excerpt="stdout",
)
