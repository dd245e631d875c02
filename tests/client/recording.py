"""Recorders over the fake store, and requests of each tool."""

import json
from typing import Any

from contracts.evidence import InvocationRecord
from tests.fakes.record_store import FakeRecordStore
from worker.client import Recorder
from worker.client.recorder_store import Courier
from worker.guards.calls import VerifiedCall, read_call
from worker.guards.tools import BUILT_IN
from worker.guards.violations import ViolationCode

RUN, SESSION = "run-1", "session-1"
COMMAND = {"command": "systemctl status checkout", "host": "web-1"}
WINDOW = {"start": "2026-01-01T12:00:00Z", "end": "2026-01-01T13:00:00Z"}
REQUESTS: dict[str, dict[str, Any]] = {
    "run_command": COMMAND,
    "query_logs": {"source": "gateway", "query": "timeout", **WINDOW},
    "query_metrics": {"source": "prometheus", "query": "up", **WINDOW},
    "query_mysql": {"data_source": "orders", "sql": "SELECT id FROM orders"},
    "lookup_knowledge": {"query": "checkout timeouts", "source": "runbooks"},
}


def recorder_of(store: FakeRecordStore, **options: Any) -> Recorder:
    courier = options.pop("courier", None) or Courier(bound=5)
    given = {"run_id": RUN, "session_id": SESSION, **options}
    return Recorder(store, courier=courier, **given)


def verified(record: InvocationRecord) -> VerifiedCall | ViolationCode:
    """What the evidence check makes of a record as it is stored."""
    stored = record.model_dump_json().encode()
    return read_call(record.run_id, record.tool_call_id, stored, BUILT_IN)


def result_of(record: InvocationRecord) -> dict[str, Any]:
    assert record.agent_result is not None
    found: dict[str, Any] = json.loads(record.agent_result)
    return found
