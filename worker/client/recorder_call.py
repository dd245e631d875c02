"""One call of a tool while it is made, and the ledger that its records go to."""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from contracts.evidence import InvocationRecord, Lifecycle
from worker.client.invocations import Immutable, Uncited
from worker.client.recorder_findings import Outcome
from worker.client.recorder_record import CallRecord
from worker.client.recorder_store import Courier, RecordStore
from worker.trace.lifecycle import ErrorCode

log = logging.getLogger("release_stage.recorder")


class Ledger:
    """Writes a run's records by a courier, and knows which completed calls are stored."""

    def __init__(self, store: RecordStore, courier: Courier) -> None:
        self.completed: dict[str, None] = {}
        self._store = store
        self._courier = courier

    def write(self, record: InvocationRecord) -> bool:
        """Write a record; tells whether it is stored. Never raises for the store."""
        try:
            done = self._courier.deliver(lambda: self._store.write(record))
        except Immutable:
            return _refused()
        return self._noted(record, done)

    async def write_async(self, record: InvocationRecord) -> bool:
        try:
            done = await self._courier.deliver_async(lambda: self._store.write(record))
        except Immutable:
            return _refused()
        return self._noted(record, done)

    def count(self, session_id: str, run_id: str, what: Uncited, by: int) -> None:
        self._courier.deliver(lambda: self._store.count(session_id, run_id, what, by))

    def _noted(self, record: InvocationRecord, done: bool) -> bool:
        if done and record.lifecycle is Lifecycle.READY:
            self.completed[record.tool_call_id] = None
        return done


def _refused() -> bool:
    """A final record of this id stands already: that call is what the id cites."""
    log.warning("RECORDER_CALL_ID_REUSED")
    return False


class RecordedCall:
    """One call on its way. ``tool_call_id`` is what a draft cites.

    ``recorded`` tells afterwards whether its final record is stored.
    """

    def __init__(self, ledger: Ledger, begin: Callable[[], CallRecord], tool_call_id: str) -> None:
        self.tool_call_id = tool_call_id
        self.recorded = False
        self._ledger = ledger
        self._begin_record = begin
        self._outcome: Outcome | ErrorCode = ErrorCode.NOTHING_REPORTED
        self._record: CallRecord | None = None

    def ended(self, outcome: Outcome) -> None:
        """Tell what the call came to; the last word counts. A call that tells nothing failed."""
        self._outcome = outcome

    def returned(self, result: Any, outcome: Callable[[Any], Outcome]) -> None:
        """The same, from what the tool returned; an ``outcome`` that raises is an ERROR record."""
        try:
            self._outcome = outcome(result)
        except Exception:  # noqa: BLE001 - the tool's result must not be lost over its record
            self._outcome = ErrorCode.PROJECTION_FAILED

    def __enter__(self) -> Self:
        begun = self._begin()
        if begun is not None:
            self._ledger.write(begun)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        final = self._end(error)
        if final is not None:
            self.recorded = self._ledger.write(final)

    async def __aenter__(self) -> Self:
        begun = self._begin()
        if begun is not None:
            await self._ledger.write_async(begun)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        final = self._end(error)
        if final is not None:
            self.recorded = await self._ledger.write_async(final)

    def _begin(self) -> InvocationRecord | None:
        try:
            self._record = self._begin_record()
        except Exception as error:  # noqa: BLE001 - an unrecordable call is made all the same
            log.warning("RECORDER_CANNOT_RECORD %s", type(error).__name__)
            return None
        return self._record.begun

    def _end(self, error: BaseException | None) -> InvocationRecord | None:
        if self._record is None:
            return None
        try:
            if error is not None:
                return self._record.raised(error)
            return self._record.ended(self._outcome)
        except Exception as flaw:  # noqa: BLE001 - as above
            log.warning("RECORDER_CANNOT_RECORD %s", type(flaw).__name__)
            return None
