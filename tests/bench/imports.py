"""How long a worker takes to import what it is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.table import Row

_TIMES = 5
_PROGRAM = (
    "from time import perf_counter; start = perf_counter(); import {module}; "
    "print(perf_counter() - start)"
)


def measure(_logs: Path) -> Iterator[Row]:
    _seconds("worker.app")  # writes the byte code
    yield Row("import worker.app", median(_seconds("worker.app") for _ in range(_TIMES)), "s", 1)
    yield Row("import openai alone", median(_seconds("openai") for _ in range(_TIMES)), "s")


def _seconds(module: str) -> float:
    command = [sys.executable, "-c", _PROGRAM.format(module=module)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
