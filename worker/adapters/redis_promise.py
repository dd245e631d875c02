"""What a Redis can keep of the promise, asked before anything relies on it.

A store that evicts can drop a record, and with it an ending, without a trace; a store
without full persistence can lose what it acknowledged when it crashes.
"""

from collections.abc import Iterator
from typing import Any

import redis

SAFE_POLICY = "noeviction"


class UnsafeStore(Exception):
    """This Redis would silently break the promise of one ending per run."""


def examine(client: redis.Redis) -> tuple[str, ...]:
    """Look at the server's settings; returns a sentence for each part that it cannot keep.

    Raises UnsafeStore for a Redis that evicts, and redis.RedisError when it is away.
    """
    asked: Any = client
    policy = asked.info("memory").get("maxmemory_policy", "unknown")
    if policy != SAFE_POLICY:
        raise UnsafeStore(
            f"Redis has maxmemory-policy {policy} and may evict records of runs; "
            f"set maxmemory-policy {SAFE_POLICY}"
        )
    return tuple(_shortfalls(asked))


def _shortfalls(client: Any) -> Iterator[str]:
    if not client.info("persistence").get("aof_enabled"):
        yield (
            "Redis keeps no append-only file: runs, outbox and inbox are lost if it crashes; "
            "set appendonly yes and appendfsync always for the full promise"
        )
        return
    try:
        fsync = client.config_get("appendfsync").get("appendfsync")
    except redis.ResponseError:
        yield "Redis does not say how it syncs its append-only file; appendfsync must be always"
        return
    if fsync != "always":
        yield (
            f"Redis has appendfsync {fsync}: what it acknowledged in the last moments before a "
            "crash of its host can be lost; set appendfsync always for the full promise"
        )
