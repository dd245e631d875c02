"""The fire: kills children, workers, relays, store and broker at random, by their ids."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from threading import Event, Thread

import psutil

from tests.chaos.house import House, Supervised

DECK = {
    "child": 8,
    "worker": 4,
    "worker with its children": 2,
    "relay": 4,
    "redis": 3,
    "rabbitmq": 2,
    "freeze": 2,
}
"""How many cards of each fault are in the deck that is dealt, shuffled, over and over."""
FIRST_CARDS = ("child", "redis", "worker", "relay")
"""Even a short fire has these."""
LONGEST_OUTAGE = 1.5
"""Seconds that a killed server is away, beside its start."""
LOOK = 0.1
LONGEST_FREEZE = 9.0
"""Seconds that a worker stands still: longer than a lease."""


class Fire(Thread):
    """Deals faults until it is put out; then everything is up again, or it raised.

    ``progress`` counts the runs submitted so far. Between two faults there are at least
    ``runs`` of them and about ``pause`` seconds, so that a slow machine is not only burnt.
    """

    def __init__(
        self, house: House, seed: int, pause: float, runs: int, progress: Callable[[], int]
    ) -> None:
        super().__init__(name="fire")
        self._runs = runs
        self._progress = progress
        self.faults: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._house = house
        self._random = Random(f"fire {seed}")
        self._pause = pause
        self._out = Event()
        self._cards: list[str] = []
        self._frozen: list[tuple[float, Supervised]] = []

    def run(self) -> None:
        try:
            self._burn()
        except BaseException as error:  # noqa: BLE001 - raised again where the fire is put out
            self.error = error

    def put_out(self) -> None:
        """Deal no more; raises what a server's restart raised."""
        self._out.set()
        self.join()
        for _, worker in self._frozen:
            worker.signal(signal.SIGCONT)
        if self.error is not None:
            raise self.error

    def _burn(self) -> None:
        self._cards = list(reversed(FIRST_CARDS))
        if self._house.rabbit is not None:
            self._cards.insert(1, "rabbitmq")
        seen = 0
        while not self._out.wait(self._random.uniform(0.4, 1.6) * self._pause):
            while self._progress() < seen + self._runs and not self._out.wait(LOOK):
                self._thaw()
            if self._out.is_set():
                return
            seen = self._progress()
            self._thaw()
            if not self._cards:
                self._cards = [name for name, count in DECK.items() for _ in range(count)]
                self._random.shuffle(self._cards)
            fault = self._cards.pop()
            if self._deal(fault):
                self.faults[fault] += 1

    def _deal(self, fault: str) -> bool:
        house = self._house
        match fault:
            case "child":
                return self._kill_child(self._random.choice(house.workers))
            case "worker":
                return _kill(self._random.choice(house.workers).pid)
            case "worker with its children":
                self._random.choice(house.workers).signal(signal.SIGKILL)
                return True
            case "relay":
                return _kill(self._random.choice(house.relays).pid)
            case "redis":
                house.store.kill()
                self._outage()
                house.store.start()
                return True
            case "rabbitmq" if house.rabbit is not None:
                house.rabbit.kill()
                self._outage()
                house.rabbit.start()
                return True
            case "freeze" if not self._frozen:
                worker = self._random.choice(house.workers)
                worker.signal(signal.SIGSTOP)
                until = time.monotonic() + self._random.uniform(1.0, LONGEST_FREEZE)
                self._frozen.append((until, worker))
                return True
        return False

    def _outage(self) -> None:
        self._out.wait(self._random.uniform(0.0, LONGEST_OUTAGE))

    def _kill_child(self, worker: Supervised) -> bool:
        with suppress(psutil.Error):
            children = psutil.Process(worker.pid).children()
            if children:
                return _kill(self._random.choice(children).pid)
        return False

    def _thaw(self) -> None:
        now = time.monotonic()
        for until, worker in list(self._frozen):
            if now >= until:
                worker.signal(signal.SIGCONT)
                self._frozen.remove((until, worker))


def _kill(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
