"""Writing invocation records: a READY or ERROR record never changes again."""

from typing import Any

import redis

from contracts.evidence import InvocationRecord
from worker.adapters.keys import Keys

_WRITE = """
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old and cjson.decode(old).lifecycle ~= 'PROJECTING' then
  return old == ARGV[2] and 1 or 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""

WEEK = 604_800


class Immutable(Exception):
    """The stored record is final and differs from the one that was to be written."""


class InvocationWriter:
    """Writes the records of tool calls where the evidence check looks for them."""

    def __init__(self, client: redis.Redis, *, prefix: str = "release:", keep: int = WEEK) -> None:
        self._keys = Keys(prefix)
        self._keep = keep
        self._script: Any = client.register_script(_WRITE)

    def write(self, record: InvocationRecord) -> None:
        """Write one record; raises Immutable, or redis.RedisError."""
        written = self._script(
            keys=[self._keys.invocations(record.run_id)],
            args=[record.tool_call_id, record.model_dump_json(), self._keep],
        )
        if not written:
            raise Immutable
