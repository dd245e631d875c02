"""One chaos: set the house on fire under load, let everything settle, and judge."""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis
from kombu import Connection, Queue

from tests.chaos.agents import Agents
from tests.chaos.evidence import EvidenceAgents
from tests.chaos.fire import Fire
from tests.chaos.house import House, Kind, house_on
from tests.chaos.plan import Plan, plans
from tests.chaos.producers import Producer
from tests.chaos.verdict import Facts, Message, Verdict, judge
from worker.claims import verifier
from worker.guards import repair, review
from worker.run.state import Run

SETTLE = 90.0
"""Seconds without any progress after which what is left counts as lost."""
TELL = 10.0
_RUN_ID = re.compile(rb"chaos-\d+-\d{6}")


@dataclass(frozen=True)
class Options:
    """``pause`` is the mean time between two faults, in seconds."""

    broker: Kind
    runs: int
    seconds: float
    seed: int
    pause: float
    logs: Path
    workers: int = 2
    tell: Callable[[str], None] = lambda _: None
    """Called with a line of progress now and then."""


@dataclass
class Outcome:
    verdict: Verdict
    faults: Counter[str]
    restarts: int
    retries: int
    cancels: Counter[str]
    calls: int
    asked: int
    answered: int
    left: dict[str, int]
    dead: Counter[str] = field(default_factory=Counter)

    @property
    def kept(self) -> bool:
        """Tell whether every promise was kept."""
        return not self.verdict.problems and not self.left and bool(self.verdict.runs)

    def report(self) -> str:
        """All that was found, one thing a line, and the verdict last."""
        return "\n".join(
            (
                *self.verdict.problems[:50],
                *(f"left over: {name} {count}" for name, count in self.left.items()),
                f"faults: {_listed(self.faults)}; processes started again: {self.restarts}",
                f"cancels: {_listed(self.cancels)}; tries while away: {self.retries}",
                f"evidence: asked for by {self.asked}, answered to {self.answered}",
                f"endings: {_listed(self.verdict.endings)}",
                f"model calls: {self.calls}; repeats among results: {self.verdict.repeats}",
                f"dead letters: {_listed(self.dead) or 'none'}",
                str(self.verdict),
            )
        )


def chaos(options: Options) -> Outcome:
    """Burn and judge. What a run's end needs is in the report; logs are in ``options.logs``."""
    with house_on(options.broker, options.logs) as house:
        planned = list(plans(options.seed, options.runs, plain=house.broker.is_rabbitmq))
        house.start(options.workers, relays=2)
        producer = Producer(house)
        agents = Agents(house, producer, planned, options.seconds)
        evidence = EvidenceAgents(house, producer, planned)
        runs = max(1, round(options.runs * options.pause / options.seconds / 2))
        fire = Fire(
            house, options.seed, options.pause, runs, progress=lambda: len(agents.submitted)
        )
        agents.start()
        evidence.start()
        fire.start()
        try:
            while not agents.join(TELL):
                options.tell(f"{len(agents.submitted)} submitted, {fire.faults.total()} faults")
        finally:
            fire.put_out()
        left = settle(house)
        evidence.stop()
        found = facts(house, agents, planned)
        return Outcome(
            verdict=judge(found),
            faults=fire.faults,
            restarts=sum(one.starts - 1 for one in (*house.workers, *house.relays)),
            retries=producer.retries,
            cancels=Counter(str(plan.cancel) for plan in planned if plan.cancel),
            calls=len(house.judge.requests),
            asked=len(evidence.asked),
            answered=len(evidence.answered),
            left=left,
            dead=Counter(_dead(house)),
        )


def settle(house: House) -> dict[str, int]:
    """Wait until nothing is on its way; returns what still is after a while without progress."""
    left: dict[str, int] = {}
    changed = time.monotonic()
    while time.monotonic() - changed < SETTLE:
        before = left
        with suppress(redis.RedisError):
            left = house.left()
        if not left:
            break
        if left != before:
            changed = time.monotonic()
        time.sleep(0.1)
    return left


def facts(house: House, agents: Agents, planned: Iterable[Plan]) -> list[Facts]:
    """Read record, results queue and the judge's log for every submitted run."""
    messages: dict[str, list[Message]] = {}
    for headers, id_, body in _drained(house, house.broker.results):
        messages.setdefault(headers["run_id"], []).append(Message(id_, body))
    asked: Counter[tuple[str, str, bool]] = Counter()
    for request in house.judge.requests:
        found = _RUN_ID.search(request.body)
        if found is not None:
            system = request.json["messages"][0]["content"]
            again = system == verifier.SYSTEM and "retry_context" in request.question
            asked[found[0].decode(), system, again] += 1
    return [
        Facts(
            run_id=plan.run_id,
            allowed=plan.endings,
            run=_run(house, plan.run_id),
            messages=tuple(messages.get(plan.run_id, ())),
            reviews=max(
                asked[plan.run_id, review.SYSTEM, False],
                *(asked[plan.run_id, verifier.SYSTEM, again] for again in (False, True)),
            ),
            repairs=asked[plan.run_id, repair.SYSTEM, False],
            acknowledged=plan.run_id in agents.acknowledged,
        )
        for plan in planned
        if plan.run_id in agents.submitted
    ]


def _run(house: House, run_id: str) -> Run | None:
    state = house.redis.hget(house.keys.run(run_id), "state")
    return None if state is None else Run.model_validate_json(state)


def _dead(house: House) -> list[str]:
    return [
        headers.get("reason", "DELIVERED_TOO_OFTEN")
        for headers, _, _ in _drained(house, house.broker.dead)
    ]


def _drained(house: House, queue: Queue) -> list[tuple[dict[str, str], str, bytes]]:
    """Take all messages off a queue: headers, id and body of each."""
    found = []
    with Connection(house.broker_url) as connection:
        source = connection.SimpleQueue(queue)
        with suppress(source.Empty):
            while True:
                message = source.get(block=False)
                body = message.body
                raw = body if isinstance(body, bytes) else body.encode()
                found.append((message.headers, message.properties.get("message_id", ""), raw))
                message.ack()
        source.close()
    return found


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def logs_folder() -> Path:
    """A folder for the logs of a chaos; it stays, for the one who looks into a failure."""
    return Path(tempfile.mkdtemp(prefix="chaos-"))
