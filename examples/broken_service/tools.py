"""The agent's tools: ordinary functions that look at the shop, each recorded by a decorator.

Each decorator says two things about its function: what of its arguments is the request, and
which finding its result is. The functions themselves know nothing of the recorder.
"""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from contracts.evidence import Retrieval
from worker.client import (
    Document,
    Finding,
    LogLine,
    Recorder,
    Series,
    command_output,
    knowledge_documents,
    log_matches,
    metric_series,
)

_RUNBOOK = Path(__file__).with_name("runbook.md")
_COMMAND_SECONDS = 5.0


@dataclass(frozen=True)
class Lookup:
    """What the runbook says; ``repeated`` tells that it was said before and is not said again."""

    documents: list[Document]
    repeated: bool = False


@dataclass(frozen=True)
class Tools:
    """What the agent can do; each field is a plain function."""

    run_command: Callable[[str], "subprocess.CompletedProcess[str]"]
    query_logs: Callable[[str, str], list[LogLine]]
    query_metrics: Callable[[str], list[tuple[datetime, float]]]
    lookup_knowledge: Callable[[str], Lookup]


def tools_of(recorder: Recorder, folder: Path, metrics_url: str, since: datetime) -> Tools:
    """Build the tools for one shop; every call of one leaves a record."""
    asked: set[str] = set()

    def window() -> dict[str, Any]:
        return {"start": since, "end": datetime.now(UTC)}

    @recorder.tool(
        "run_command",
        request=lambda command: {"command": command, "host": "shop"},
        outcome=lambda done: command_output(done.returncode, done.stdout, done.stderr),
    )
    def run_command(command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )

    @recorder.tool(
        "query_logs",
        request=lambda source, query: {"source": source, "query": query, **window()},
        outcome=log_matches,
    )
    def query_logs(source: str, query: str) -> list[LogLine]:
        lines = (folder / f"{source}.log").read_text(encoding="utf-8").splitlines()
        found = []
        for line in lines:
            if query in line:
                timestamp, level, message = line.split(" ", 2)
                found.append(LogLine(timestamp, message, level))
        return found

    @recorder.tool(
        "query_metrics",
        request=lambda name: {"source": "checkout", "query": name, **window()},
        outcome=lambda points: metric_series([Series({"service": "checkout"}, points)]),
    )
    def query_metrics(name: str) -> list[tuple[datetime, float]]:
        with urlopen(f"{metrics_url}/metrics", timeout=_COMMAND_SECONDS) as answer:  # noqa: S310 - loopback
            shown = answer.read().decode()
        values = re.findall(rf"^{re.escape(name)} (\S+)$", shown, re.MULTILINE)
        return [(datetime.now(UTC), float(value)) for value in values]

    def told(found: Lookup) -> Finding:
        retrieval = Retrieval(
            layer="L0",
            l0_count=len(found.documents),
            relevance_level="HIGH" if found.documents else None,
            dedup_reason="shown in this run already" if found.repeated else None,
        )
        return knowledge_documents(found.documents, retrieval=retrieval)

    @recorder.tool(
        "lookup_knowledge",
        request=lambda query: {"query": query, "source": "runbooks"},
        outcome=told,
    )
    def lookup_knowledge(query: str) -> Lookup:
        if query in asked:
            return Lookup([], repeated=True)
        asked.add(query)
        sections = _RUNBOOK.read_text(encoding="utf-8").split("\n## ")[1:]
        parted = (section.partition("\n") for section in sections)
        return Lookup(
            [
                Document(_RUNBOOK.name, title, text.strip())
                for title, _, text in parted
                if query.lower() in title.lower()
            ]
        )

    return Tools(run_command, query_logs, query_metrics, lookup_knowledge)
