"""Named points at which a process of a swept stage passes, and may be killed.

Every process reports each point to Redis before it goes on, so that a run without a
crash lists the points that there are. A point that was armed for a run kills the
process that reaches it, once: it is disarmed in the same script.
"""

import os
import signal
from collections.abc import Callable
from typing import Any

_PASS = """
local count = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
local point = ARGV[1] .. ' #' .. count
redis.call('RPUSH', KEYS[2], point)
return redis.call('SREM', KEYS[3], point)
"""

Told = tuple[str, str] | None
"""A run id and what is about to be done for it; None for what belongs to no run."""


class Points:
    """The points of all runs in one Redis. ``role`` says which process passes them."""

    def __init__(self, client: Any, role: str = "test") -> None:
        self.role = role
        self._client = client
        self._pass = client.register_script(_PASS)

    def arm(self, run_id: str, *points: str) -> None:
        self._client.sadd(_armed(run_id), *points)

    def is_armed(self, run_id: str, point: str) -> bool:
        """Whether no process has died at the point yet."""
        return bool(self._client.sismember(_armed(run_id), point))

    def passed(self, run_id: str) -> list[str]:
        """The points of a run, in order: ``role before what #count`` and the same with after."""
        return [point.decode() for point in self._client.lrange(_passed(run_id), 0, -1)]

    def at(self, side: str, told: Told) -> None:
        """Pass a point, or die at it."""
        if told is None:
            return
        run_id, what = told
        keys = [f"tests:count:{run_id}", _passed(run_id), _armed(run_id)]
        if self._pass(keys=keys, args=[f"{self.role} {side} {what}"]):
            os.kill(os.getpid(), signal.SIGKILL)


def around(
    at: Callable[[str, Told], None], owner: Any, method: str, tell: Callable[..., Told]
) -> None:
    """Put a point before and one after every call of a method of an object or a class."""
    real = getattr(owner, method)

    def passing(*args: Any, **kwargs: Any) -> Any:
        told = tell(*args, **kwargs)
        at("before", told)
        result = real(*args, **kwargs)
        at("after", told)
        return result

    setattr(owner, method, passing)


def _passed(run_id: str) -> str:
    return f"tests:passed:{run_id}"


def _armed(run_id: str) -> str:
    return f"tests:armed:{run_id}"
