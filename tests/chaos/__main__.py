"""``make chaos``: thousands of runs while everything that can die is killed at random.

``python -m tests.chaos [--broker redis|rabbitmq] [--runs N] [--seconds S] [--seed N]`` prints
what it found and one line of verdict; exits 1 when any promise was broken. A seed repeats the
same drafts, faults and cancels; the moments at which they meet are the machine's own.
"""

import argparse
import random
import sys

from tests.chaos.chaos import Options, chaos, logs_folder


def main(arguments: list[str] | None = None) -> int:
    """Burn once; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=300.0, help="time to submit the runs in")
    parser.add_argument("--seed", type=int, help="by default a new one")
    parser.add_argument("--pause", type=float, default=2.0, help="mean seconds between two faults")
    chosen = parser.parse_args(arguments)
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    logs = logs_folder()
    print(f"broker {chosen.broker}, seed {seed}, logs in {logs}", flush=True)
    outcome = chaos(
        Options(
            chosen.broker,
            chosen.runs,
            chosen.seconds,
            seed,
            chosen.pause,
            logs=logs,
            tell=lambda line: print(line, flush=True),
        )
    )
    print(outcome.report())
    return 0 if outcome.kept else 1


if __name__ == "__main__":
    sys.exit(main())
