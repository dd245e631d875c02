"""What a call was about: calls of one tool on one topic are told together.

A topic is the system that was looked at, narrowed where one system answers about many
things: a metric's name, a table, a program with its first word (``kubectl logs``). It is
made from the request alone and is no evidence.
"""

import re
import shlex
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from worker.trace.bounds import cut

MOST_TOPIC = 120
UNKNOWN = "unknown"

_METRIC = re.compile(r"[A-Za-z_:][\w:]*(?=\s*(?:\{|\[|$|[^\w(:]))")
_TABLE = re.compile(r"\b(?:FROM|UPDATE|INTO|JOIN)\s+[`\"]?([\w.$]+)", re.IGNORECASE)
_SHELL_WORDS = frozenset({"sudo", "env", "time", "nohup", "bash", "sh", "-c"})
_AGGREGATION_WORDS = frozenset({"by", "without", "on", "ignoring", "offset", "and", "or", "unless"})

Request = Mapping[str, JsonValue]


def topic_of(tool_name: str, request: Request) -> str:
    """The topic of a call, at most MOST_TOPIC bytes; ``unknown`` where nothing tells it."""
    told = _TOPICS.get(tool_name, _named)(request)
    return cut(" ".join(told.split()), MOST_TOPIC)[0] or UNKNOWN


def _text(request: Request, *names: str) -> str:
    """The first of these fields that is a text."""
    for name in names:
        value = request.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _named(request: Request) -> str:
    return _text(request, "source", "data_source", "host", "service", "namespace")


def _knowledge(request: Request) -> str:
    return _text(request, "source") or "knowledge"


def _metrics(request: Request) -> str:
    query = _text(request, "query")[:2000]
    names = [name for name in _METRIC.findall(query) if name not in _AGGREGATION_WORDS]
    return f"{_text(request, 'source')} {names[0] if names else ''}"


def _mysql(request: Request) -> str:
    table = _TABLE.search(_text(request, "sql")[:10_000])
    return f"{_text(request, 'data_source')} {table[1] if table else ''}"


def _command(request: Request) -> str:
    command = _text(request, "command")[:2000]
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    told = [word for word in words if word not in _SHELL_WORDS and "=" not in word][:2]
    plain = [word for word in told[1:] if re.fullmatch(r"[\w./-]+", word) and word[0] != "-"]
    return " ".join((_text(request, "host"), *told[:1], *plain))


_TOPICS: Mapping[str, Callable[[Request], str]] = {
    "lookup_knowledge": _knowledge,
    "query_metrics": _metrics,
    "query_mysql": _mysql,
    "run_command": _command,
}
