"""Cancelled runs as they are published on a Redis channel."""

from collections.abc import AsyncIterator
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

_QUIET_SECONDS = 5.0


async def redis_cancellations(url: str, channel: str, closed_runs: str) -> AsyncIterator[str]:
    """Yield the run ids published on ``channel``, for as long as the connection lives.

    First come the ids in the sorted set ``closed_runs``: what was published while nobody
    listened is found there.

    Raises redis.exceptions.RedisError when it breaks, and also when the server stops
    answering without closing. It does not connect again by itself: whoever iterates
    must know that messages may have been missed, and starts it anew.
    """
    async with Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as redis, redis.pubsub() as pubsub:
        await pubsub.subscribe(channel)
        closed: Any = await redis.zrange(closed_runs, 0, -1)
        for run_id in closed:
            yield run_id.decode("utf-8", "replace")
        asked = False
        while True:
            message = await pubsub.get_message(timeout=_QUIET_SECONDS)
            if message is None:
                if asked:
                    raise RedisConnectionError("the server is silent")
                await pubsub.ping()
                asked = True
                continue
            asked = False
            if message["type"] == "message":
                yield message["data"].decode("utf-8", "replace")
