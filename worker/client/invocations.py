"""Writing and reading invocation records: a READY or ERROR record never changes again."""

from collections.abc import Iterator
from typing import Any, Literal, get_args

import redis
from pydantic import ValidationError
from redis.backoff import NoBackoff
from redis.retry import Retry

from contracts.evidence import InvocationRecord
from contracts.strict_json import StrictJsonError, canonical, parse
from contracts.trace import SessionCounts
from worker.adapters.keys import Keys

# The session learns its runs here; how many rows they have is counted when somebody asks.
_WRITE = """
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old and cjson.decode(old).lifecycle ~= 'PROJECTING' then
  return old == ARGV[2] and 1 or 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
if not old then
  redis.call('HSET', KEYS[2], ARGV[4], 1)
  redis.call('EXPIRE', KEYS[2], ARGV[3])
end
return 1
"""

WEEK = 604_800

Uncited = Literal["model_steps", "helper_calls"]
"""What is counted and leaves no record."""

_RUN = "run"
_PAGE = 500


class Immutable(Exception):
    """The stored record is final and differs from the one that was to be written."""


def quick_client(redis_url: str, timeout: float) -> redis.Redis:
    """A Redis client that gives up after ``timeout`` seconds a step and tries nothing twice."""
    return redis.Redis.from_url(
        redis_url,
        socket_connect_timeout=timeout,
        socket_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
    )


class InvocationWriter:
    """Writes the records of tool calls where the evidence check looks for them."""

    def __init__(self, client: redis.Redis, *, prefix: str = "release:", keep: int = WEEK) -> None:
        self._client: Any = client
        self._keys = Keys(prefix)
        self._keep = keep
        self._script: Any = client.register_script(_WRITE)

    def write(self, record: InvocationRecord) -> None:
        """Write one record; raises Immutable, or redis.RedisError."""
        written = self._script(
            keys=[self._keys.invocations(record.run_id), self._keys.counts(record.session_id)],
            args=[
                record.tool_call_id,
                record.model_dump_json(),
                self._keep,
                f"{_RUN}:{record.run_id}",
            ],
        )
        if not written:
            raise Immutable

    def count(self, session_id: str, run_id: str, what: Uncited, by: int = 1) -> None:
        """Add to what leaves no record; raises redis.RedisError."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hincrby(self._keys.counts(session_id), f"{what}:{run_id}", by)
            pipe.expire(self._keys.counts(session_id), self._keep)
            pipe.execute()

    def set_count(self, session_id: str, run_id: str, what: Uncited, to: int) -> None:
        """Set a run's count, as an import may that knows all of it; raises redis.RedisError."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hset(self._keys.counts(session_id), f"{what}:{run_id}", to)
            pipe.expire(self._keys.counts(session_id), self._keep)
            pipe.execute()


class InvocationReader:
    """Reads what was recorded, for people and audits. The guards have a port of their own."""

    def __init__(self, client: redis.Redis, *, prefix: str = "release:") -> None:
        self._client: Any = client
        self._keys = Keys(prefix)

    def records(self, run_id: str) -> tuple[InvocationRecord, ...]:
        """A run's records, the earliest call first; one that cannot be read is left out."""
        found = tuple(self._readable(run_id))
        return tuple(sorted(found, key=lambda one: (one.started_at, one.tool_call_id)))

    def counts(self, session_id: str) -> SessionCounts:
        """A session's counts over all of its runs; raises redis.RedisError.

        Evidence calls are the rows that are stored, neither more nor less.
        """
        totals = dict.fromkeys(get_args(Uncited), 0)
        runs: set[str] = set()
        for field, value in self._client.hgetall(self._keys.counts(session_id)).items():
            what, _, run_id = field.decode(errors="replace").partition(":")
            runs.add(run_id)
            if what in totals:
                totals[what] += int(value)
        with self._client.pipeline(transaction=False) as pipe:
            for run_id in sorted(runs):
                pipe.hlen(self._keys.invocations(run_id))
            return SessionCounts(**totals, evidence_calls=sum(pipe.execute()))

    def _readable(self, run_id: str) -> Iterator[InvocationRecord]:
        pages = self._client.hscan_iter(self._keys.invocations(run_id), count=_PAGE)
        for stored in dict(pages).values():
            try:
                yield InvocationRecord.model_validate_json(canonical(parse(stored)))
            except (StrictJsonError, ValidationError):
                continue
