"""A lease in Redis: one holder at a time, given up by not renewing it."""

from typing import Any

import redis

_HOLD = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
"""


class RedisLease:
    """Held by ``holder`` for ``seconds`` after each call of :meth:`hold` that returned True."""

    def __init__(self, client: redis.Redis, key: str, holder: str, seconds: float) -> None:
        self._key = key
        self._holder = holder
        self._milliseconds = int(seconds * 1000)
        self._hold: Any = client.register_script(_HOLD)
        self._release: Any = client.register_script(_RELEASE)

    def hold(self) -> bool:
        """Take or renew the lease; raises redis.RedisError when the store is away."""
        return bool(self._hold(keys=[self._key], args=[self._holder, self._milliseconds]))

    def release(self) -> None:
        self._release(keys=[self._key], args=[self._holder])
