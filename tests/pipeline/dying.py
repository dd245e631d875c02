"""A process of the stage that dies at one chosen point, as if it were killed there.

``python -m tests.pipeline.dying POINT [STEP.ATTEMPT ...]`` admits the message on standard
input and carries out the named steps, on the stage that its environment names, with the
real use cases and the real Redis. It enqueues nothing, and dies

- ``recorded``: after the last of them was recorded (or the run was opened), before the
  next step was enqueued;
- ``released``: in the publishing step behind them, after the decision was written,
  before its message was sent.
"""

import os
import sys
from dataclasses import replace
from typing import NoReturn

from contracts.envelope import Envelope
from worker.app import stage
from worker.ports import OutgoingMessage
from worker.run.state import Run
from worker.run.steps import Step, StepRef
from worker.stage.admit import admit
from worker.stage.publish import publish
from worker.tasks import USE_CASES

DIED = 137
"""The exit code of a process that was killed."""


def _die() -> NoReturn:
    os._exit(DIED)


class _NoDispatcher:
    def dispatch(self, run: Run, step: StepRef) -> None:
        """Enqueue nothing."""

    def waiting(self) -> int:
        """Nothing waits for one that dies."""
        return 0


class _NoSender:
    def send(self, message: OutgoingMessage) -> None:
        _die()

    def park(self, raw: bytes, reason: str, origin: str) -> None:
        _die()


def main(point: str, *steps: str) -> None:
    """Live until ``point``."""
    house = replace(stage(), dispatcher=_NoDispatcher(), sender=_NoSender())
    raw = sys.stdin.buffer.read()
    admit(house, raw, "tests")
    run_id = Envelope.model_validate_json(raw).subject
    for step in steps:
        name, attempt = step.split(".")
        ref = StepRef(0, Step(name), int(attempt))
        USE_CASES[ref.step](house, run_id, ref)
    if point == "released":
        publish(house, run_id, StepRef(0, Step.PUBLISH, 1))
    else:
        _die()


if __name__ == "__main__":
    main(*sys.argv[1:])
