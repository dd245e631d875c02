"""Runs the tools for real and keeps each call as an invocation record.

Every answer is an exact projection of ``contracts.evidence`` as JSON text. A
look that finds nothing is NO_EVIDENCE; a look that fails is ERROR and has no
answer.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from contracts.base import isoformat
from contracts.evidence import (
    EvidenceStatus,
    InvocationRecord,
    KnowledgeDocument,
    Lifecycle,
    LogEvent,
    LogPattern,
    LookupKnowledgeResult,
    MetricPoint,
    MetricSeries,
    Projection,
    QueryLogsResult,
    QueryMetricsResult,
    QueryMysqlResult,
    RunCommandResult,
)
from worker.offline.incidents.recording import knowledge, logs, mysql
from worker.offline.incidents.recording.scene import ROOT, Scene, environment, now

RECORDED_RUN = "recorded-run"
RECORDED_SESSION = "recorded-session"
"""Placeholders: the loader puts fresh ids in their place."""

_Citable = Literal[EvidenceStatus.EVIDENCE_FOUND, EvidenceStatus.NO_EVIDENCE]

_EVENTS = 6
_ROWS = 20


@dataclass(frozen=True)
class Answer:
    """What a look gave; ``cut`` tells that the agent saw only part of it."""

    result: Projection
    cut: bool = False


class Recorder:
    """One agent's tools, in one scene; ``calls`` are its records in order."""

    def __init__(self, scene: Scene, sources: dict[str, logs.LogFile] | None = None) -> None:
        self.calls: list[InvocationRecord] = []
        self._scene = scene
        self._sources = sources or {}
        self._asked: set[str] = set()

    def run_command(
        self, call: str, command: str, *, timeout_s: float = 15, keep: int = 3000
    ) -> None:
        """Run a shell command on the scene's host; keep the first ``keep`` characters."""

        def look() -> Answer:
            try:
                done = subprocess.run(
                    ["bash", "-c", command],
                    env=environment(),
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=timeout_s,
                )
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"command timed out after {timeout_s:g} s") from None
            stdout, stderr = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
            result = RunCommandResult(
                tool_name="run_command",
                tool_call_id=call,
                evidence_status=_found(bool(stdout.strip() or stderr.strip())),
                exit_code=done.returncode,
                stdout=stdout[:keep],
                stderr=stderr[:keep],
            )
            return Answer(result, cut=len(stdout) > keep or len(stderr) > keep)

        self._call(call, "run_command", {"command": command, "host": self._scene.host}, look)

    def query_logs(
        self,
        call: str,
        source: str,
        query: str,
        start: datetime,
        *,
        level: str | None = None,
        scan: int = 1_000_000,
    ) -> None:
        """Search one log from ``start`` until now, at most its last ``scan`` bytes."""
        end = now()

        def look() -> Answer:
            if source not in self._sources:
                raise RuntimeError(f"no log source is called {source}")
            log = self._sources[source]
            found = logs.search(log, query, start, end, level, scan)
            result = QueryLogsResult(
                tool_name="query_logs",
                tool_call_id=call,
                evidence_status=_found(bool(found)),
                total_matches=len(found),
                patterns=tuple(LogPattern(pattern=p, count=n) for p, n in logs.patterns(found)),
                events=tuple(
                    LogEvent(timestamp=e.timestamp, message=e.message, level=e.level)
                    for e in found[:_EVENTS]
                ),
            )
            return Answer(result, cut=len(found) > _EVENTS or log.path.stat().st_size > scan)

        request: dict[str, JsonValue] = {
            "source": source,
            "query": query,
            "start": isoformat(start),
            "end": isoformat(end),
        }
        self._call(call, "query_logs", request | ({"level": level} if level else {}), look)

    def query_metrics(self, call: str, query: str, start: datetime) -> None:
        """Read a number's samples from ``start`` until now; an unknown name finds nothing."""
        end = now()

        def look() -> Answer:
            gauge = self._scene.gauges.get(query)
            points = tuple(
                MetricPoint(timestamp=sample.at, value=sample.value)
                for sample in (gauge.samples if gauge else ())
                if start <= sample.at <= end
            )
            series: tuple[MetricSeries, ...] = ()
            if gauge and points:
                series = (MetricSeries(labels=gauge.labels, points=points, unit=gauge.unit),)
            result = QueryMetricsResult(
                tool_name="query_metrics",
                tool_call_id=call,
                evidence_status=_found(bool(series)),
                series=series,
            )
            return Answer(result)

        request: dict[str, JsonValue] = {
            "source": "metrics",
            "query": query,
            "start": isoformat(start),
            "end": isoformat(end),
        }
        self._call(call, "query_metrics", request, look)

    def query_mysql(self, call: str, data_source: str, sql: str, *client: str) -> None:
        """Ask the MySQL server of the scene through its own command line client."""

        def look() -> Answer:
            rows = mysql.select(sql, *client)
            result = QueryMysqlResult(
                tool_name="query_mysql",
                tool_call_id=call,
                evidence_status=_found(bool(rows)),
                columns=tuple(rows[0]) if rows else (),
                rows=tuple(tuple(row.values()) for row in rows[:_ROWS]),
                row_count=len(rows),
            )
            return Answer(result, cut=len(rows) > _ROWS)

        request: dict[str, JsonValue] = {"data_source": data_source, "sql": sql, "params": []}
        self._call(call, "query_mysql", request, look)

    def lookup_knowledge(self, call: str, query: str) -> None:
        """Search the runbooks. The same question a second time is answered without a look."""
        seen = query in self._asked
        self._asked.add(query)

        def look() -> Answer:
            sections = [] if seen else knowledge.search(query)
            result = LookupKnowledgeResult(
                tool_name="lookup_knowledge",
                tool_call_id=call,
                evidence_status=_found(bool(sections)),
                documents=tuple(
                    KnowledgeDocument(document_id=s.document_id, title=s.title, excerpt=s.text)
                    for s in sections
                ),
            )
            return Answer(result)

        request: dict[str, JsonValue] = {"query": query, "source": "runbooks"}
        self._call(call, "lookup_knowledge", request, look, deduplicated=seen)

    def still_running(self, call: str, command: str) -> None:
        """Keep the record of a command that has not ended when the recording ends."""
        request: dict[str, JsonValue] = {"command": command, "host": self._scene.host}
        started = now()
        process = subprocess.Popen(
            ["bash", "-c", command], env=environment(), stdout=subprocess.DEVNULL
        )
        self.calls.append(_record(call, "run_command", request, started, Lifecycle.PROJECTING))
        process.kill()
        process.wait()

    def save(self, recipe: str) -> None:
        """Write ``records.json`` beside a recipe (its ``__file__``)."""
        text = json.dumps(
            [call.model_dump(mode="json", exclude_unset=True) for call in self.calls],
            indent=1,
            ensure_ascii=False,
        )
        (Path(recipe).parent / "records.json").write_text(text + "\n", encoding="utf-8")

    def _call(
        self,
        call: str,
        tool: str,
        request: dict[str, JsonValue],
        look: Callable[[], Answer],
        *,
        deduplicated: bool = False,
    ) -> None:
        started = now()
        try:
            answer = look()
        except (OSError, RuntimeError) as error:
            record = _record(call, tool, request, started, Lifecycle.ERROR)
            update: dict[str, object] = {
                "evidence_status": EvidenceStatus.ERROR,
                "success": False,
                "error_message": str(error),
            }
        else:
            record = _record(call, tool, request, started, Lifecycle.READY)
            update = {
                "evidence_status": answer.result.evidence_status,
                "success": True,
                "agent_result": answer.result.model_dump_json(),
                "truncated": answer.cut,
                "deduplicated": deduplicated,
            }
        ended = now()
        update |= {
            "completed_at": ended,
            "duration_ms": round((ended - started).total_seconds() * 1000),
        }
        self.calls.append(record.model_copy(update=update))


def _record(
    call: str, tool: str, request: dict[str, JsonValue], started: datetime, lifecycle: Lifecycle
) -> InvocationRecord:
    return InvocationRecord(
        run_id=RECORDED_RUN,
        session_id=RECORDED_SESSION,
        tool_call_id=call,
        tool_name=tool,
        lifecycle=lifecycle,
        request=request,
        started_at=started,
    )


def _found(found: bool) -> _Citable:
    return EvidenceStatus.EVIDENCE_FOUND if found else EvidenceStatus.NO_EVIDENCE
