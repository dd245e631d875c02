"""A store of invocation records in memory, with the faults that a real one has."""

from collections import Counter
from threading import Event, Lock

from contracts.evidence import InvocationRecord, Lifecycle
from worker.client import Immutable
from worker.client.invocations import Uncited


class FakeRecordStore:
    """Implements ``RecordStore``; ``written`` holds every state that a record went through.

    ``fault`` is raised by each write; ``stuck`` makes writes wait until it is set.
    """

    def __init__(self) -> None:
        self.written: list[InvocationRecord] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.fault: Exception | None = None
        self.stuck: Event | None = None
        self.tries = 0
        self.trying = Event()
        self._records: dict[tuple[str, str], InvocationRecord] = {}
        self._lock = Lock()

    @property
    def records(self) -> list[InvocationRecord]:
        return list(self._records.values())

    def one(self) -> InvocationRecord:
        (record,) = self.records
        return record

    def write(self, record: InvocationRecord) -> None:
        self._meet_faults()
        with self._lock:
            key = record.run_id, record.tool_call_id
            old = self._records.get(key)
            if old is not None and old.lifecycle is not Lifecycle.PROJECTING:
                if old != record:
                    raise Immutable
                return
            # What is stored is what can be read back.
            self._records[key] = InvocationRecord.model_validate_json(record.model_dump_json())
            self.written.append(record)

    def count(self, session_id: str, run_id: str, what: Uncited, by: int = 1) -> None:
        self._meet_faults()
        self.counts[session_id, what] += by

    def _meet_faults(self) -> None:
        self.tries += 1
        self.trying.set()
        if self.stuck is not None:
            self.stuck.wait(30)
        if self.fault is not None:
            raise self.fault
