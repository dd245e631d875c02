"""What the judge received: every request in full, with when it came and how it ended."""

import base64
import hashlib
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition
from typing import Any, TextIO

from worker.offline.judge_answers import user_text

KEPT = 20_000
"""Requests kept in memory, the newest; the file has all."""


@dataclass
class Received:
    """One request.

    Times are seconds since the epoch. ``answered_at`` is when the whole answer was
    handed to the socket; ``closed_at`` is when the client closed the connection
    before that. Both are None while the request is open, and after a fault that
    ended the connection from this side. ``headers`` have lower-case names and no
    authorization.
    """

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    arrived_at: float = field(default_factory=time.time)
    behaviour: str = "rules"
    status: int | None = None
    answered_at: float | None = None
    closed_at: float | None = None
    ended: bool = False

    @property
    def json(self) -> Any:
        """The body as JSON; raises ValueError."""
        return json.loads(self.body)

    @property
    def question(self) -> Any:
        """The JSON object in the last user message; raises ValueError."""
        return json.loads(user_text(self.body))

    def as_dict(self) -> dict[str, Any]:
        """The request for the log: ``body`` as text, or ``body_base64`` if it is not UTF-8."""
        record: dict[str, Any] = {
            name: value for name, value in vars(self).items() if name != "body"
        }
        record["body_sha256"] = hashlib.sha256(self.body).hexdigest()
        try:
            record["body"] = self.body.decode()
        except UnicodeDecodeError:
            record["body_base64"] = base64.b64encode(self.body).decode()
        return record


class RequestLog:
    """The requests in the order of their arrival. Safe from any thread."""

    def __init__(self, file: Path | None) -> None:
        self._changed = Condition()
        self._received: deque[Received] = deque(maxlen=KEPT)
        self._count = 0
        self._file: TextIO | None = None if file is None else file.open("a", encoding="utf-8")

    def arrived(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Received:
        with self._changed:
            self._count += 1
            received = Received(self._count, method, path, headers, body)
            self._received.append(received)
            self._changed.notify_all()
            return received

    def ended(self, received: Received) -> None:
        """Note that nothing more happens to a request, and write its line to the file."""
        with self._changed:
            received.ended = True
            if self._file is not None:
                self._file.write(json.dumps(received.as_dict()) + "\n")
                self._file.flush()
            self._changed.notify_all()

    def all(self) -> list[Received]:
        with self._changed:
            return list(self._received)

    def clear(self) -> None:
        with self._changed:
            self._received.clear()

    def wait(self, holds: Callable[[list[Received]], bool], timeout: float) -> list[Received]:
        """Wait until ``holds`` is true of the requests so far and return them.

        Raises TimeoutError after ``timeout`` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: holds(list(self._received)), timeout):
                raise TimeoutError(f"not so within {timeout} s; {self._count} requests came")
            return list(self._received)

    def close(self) -> None:
        with self._changed:
            if self._file is not None:
                self._file.close()
                self._file = None
