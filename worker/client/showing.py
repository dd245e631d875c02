"""What a run's calls came to, as plain JSON data for a person."""

from typing import Any

from worker.client.invocations import InvocationReader
from worker.trace.summary import summarise


def shown_trace(reader: InvocationReader, run_id: str) -> dict[str, Any] | None:
    """The trace summary of a run and the counts of its session; None without any record.

    Raises redis.RedisError.
    """
    records = reader.records(run_id)
    if not records:
        return None
    return {
        "entries": [entry.model_dump(mode="json") for entry in summarise(records)],
        "session_counts": reader.counts(records[0].session_id).model_dump(),
    }
