"""``make sweep``: every ending, on both brokers, with a process killed at every boundary.

``python -m tests.sweep [--broker redis|rabbitmq] [--case NAME] [--lanes N]`` prints one line
for each ending and broker; exits 1 when a promise did not hold or a point was not reached.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.sweep.cases import ENDINGS as DRAFT_ENDINGS
from tests.sweep.cases import Case
from tests.sweep.claims import ENDINGS as CLAIM_ENDINGS
from tests.sweep.lane import Lane, lane
from tests.sweep.sweep import Broken, Swept, sweep
from worker.offline.judge import JudgeServer
from worker.offline.rabbitmq_server import RabbitServer

BROKERS = ("redis", "rabbitmq")
ENDINGS = (*DRAFT_ENDINGS, *CLAIM_ENDINGS)


@contextmanager
def lanes_on(broker: str, count: int) -> Iterator[list[Lane]]:
    """Lanes side by side on this kind of broker."""
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sweep-")))
        judge = stack.enter_context(JudgeServer())
        rabbit = stack.enter_context(RabbitServer()) if broker == "rabbitmq" else None
        yield [
            stack.enter_context(
                lane(name, judge, logs, None if rabbit is None else virtual_host(rabbit, name))
            )
            for name in (f"lane{number}" for number in range(count))
        ]


def virtual_host(rabbit: RabbitServer, name: str) -> str:
    """Make a virtual host, which has queues of its own; returns its URL."""
    rabbit.control("add_vhost", name)
    rabbit.control("set_permissions", "--vhost", name, "guest", ".*", ".*", ".*")
    return f"{rabbit.url.rstrip('/')}/{name}"


def line(broker: str, case: Case, swept: Swept | None, flaw: str) -> str:
    points = len(swept.points) if swept else 0
    crashed = len(swept.crashed) if swept else 0
    endings = ", ".join(f"{n} {name}" for name, n in sorted(swept.endings.items())) if swept else ""
    return (
        f"{broker:<9} {case.name:<26} {case.ending:<27} {points:>6} {crashed:>7}  "
        f"{flaw or 'ok':<6} {endings}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Sweep what was asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("--broker", choices=BROKERS, action="append")
    parser.add_argument("--case", choices=[case.name for case in ENDINGS], action="append")
    parser.add_argument("--lanes", type=int, default=4)
    chosen = parser.parse_args(arguments)
    head = (
        f"{'broker':<9} {'case':<26} {'ending':<27} {'points':>6} {'crashed':>7}  {'':<6} endings"
    )
    print(head, flush=True)
    failed = 0
    for broker in chosen.broker or BROKERS:
        with lanes_on(broker, chosen.lanes) as lanes:
            for case in ENDINGS:
                if chosen.case and case.name not in chosen.case:
                    continue
                swept, flaw = None, ""
                try:
                    swept = sweep(case, lanes)
                except Broken as broken:
                    flaw = "BROKEN"
                    print(broken, file=sys.stderr)
                else:
                    if swept.missed and not case.timed:
                        flaw = "MISSED"
                        print("\n".join(swept.missed), file=sys.stderr)
                failed += bool(flaw)
                print(line(broker, case, swept, flaw), flush=True)
    print(f"sweep: failed={failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
