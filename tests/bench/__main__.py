"""``make bench``: what a run costs, beside the numbers that the design wants to reach.

Starts a Redis, judges and workers of its own and stops them again. A missed number
is shown and never fails the bench: a busy machine is no broken build.
"""

import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.bench import cancelling, evidence, imports, low_load, rates, recording, recovery, store
from tests.bench.table import Row, heading, line

PARTS: tuple[Callable[[Path], Iterable[Row]], ...] = (
    imports.measure,
    evidence.measure,
    store.measure,
    low_load.measure,
    cancelling.measure,
    rates.measure,
    recovery.measure,
    recording.measure,
)


def main() -> int:
    """Measure all parts, one after the other, and print each figure as it is known."""
    print(heading())
    with tempfile.TemporaryDirectory(prefix="bench-") as logs:
        for part in PARTS:
            for row in part(Path(logs)):
                print(line(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
