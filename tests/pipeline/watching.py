"""What an operator's tools can see of a stage: worker events, task messages, inspection."""

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import redis
from celery import Celery

_BODY = re.compile(r'body\\*": \\*"([A-Za-z0-9+/=]+)')
_END = "the-watch-is-over"


class Watch:
    """Keeps, as text, everything that was seen."""

    def __init__(self, broker_url: str, redis_url: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.tasks: list[str] = []
        self.inspected: list[str] = []
        self._app = Celery("watch", broker=broker_url, set_as_current=False)
        self._redis: Any = redis.Redis.from_url(redis_url)
        self._over = Event()
        self._ready = Event()

    def inspect(self) -> None:
        """Ask the workers for their tasks, as Flower does."""
        view = self._app.control.inspect(timeout=1.0)
        for question in (view.active, view.reserved, view.scheduled, view.revoked, view.stats):
            self.inspected.append(repr(question()))

    def receive_events(self) -> None:
        with self._app.connection_for_read() as connection:
            receiver = self._app.events.Receiver(connection, handlers={"*": self.events.append})
            while not self._over.is_set():
                try:
                    receiver.capture(limit=None, timeout=0.5, wakeup=False)
                except TimeoutError:
                    continue

    def read_tasks(self) -> None:
        """Keep each message to the queue of the steps, its body decoded."""
        with self._redis.monitor() as monitor:
            self._ready.set()
            for command in monitor.listen():
                text = command["command"]
                if _END in text:
                    return
                if text.upper().startswith(("LPUSH RELEASE.TASKS", "RPUSH RELEASE.TASKS")):
                    bodies = [base64.b64decode(body).decode() for body in _BODY.findall(text)]
                    self.tasks.append(" ".join([text, *bodies]))

    def begin(self) -> list[Thread]:
        watchers: list[Callable[[], None]] = [self.receive_events, self.read_tasks]
        threads = [Thread(target=watcher, daemon=True) for watcher in watchers]
        for thread in threads:
            thread.start()
        assert self._ready.wait(10)
        return threads

    def end(self, threads: list[Thread]) -> None:
        self._over.set()
        self._redis.echo(_END)
        for thread in threads:
            thread.join(10)
        self._redis.close()
        self._app.close()


@contextmanager
def watching(broker_url: str, redis_url: str) -> Iterator[Watch]:
    """Watch a stage until the block ends."""
    watch = Watch(broker_url, redis_url)
    threads = watch.begin()
    try:
        yield watch
    finally:
        watch.end(threads)
