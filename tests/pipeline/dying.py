"""A process of the stage that dies at one chosen point, as if it were killed there.

``python -m tests.pipeline.dying POINT ...`` works on the stage that its environment
names, with the real use cases and the real Redis:

- ``admitted``: the message on standard input is admitted and its run written, the first
  step not enqueued;
- ``recorded RUN_ID STEP ATTEMPT``: a step's result is written, nothing handed on;
- ``released RUN_ID``: the decision is written, its message not sent.
"""

import os
import sys
from dataclasses import replace
from typing import NoReturn

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
        _die()


class _NoSender:
    def send(self, message: OutgoingMessage) -> None:
        _die()

    def park(self, raw: bytes, reason: str, origin: str) -> None:
        _die()


def main(point: str, *words: str) -> None:
    match point, words:
        case "admitted", ():
            admit(replace(stage(), dispatcher=_NoDispatcher()), sys.stdin.buffer.read(), "tests")
        case "recorded", (run_id, step, attempt):
            ref = StepRef(0, Step(step), int(attempt))
            USE_CASES[ref.step](stage(), run_id, ref)
            _die()
        case "released", (run_id,):
            publish(replace(stage(), sender=_NoSender()), run_id, StepRef(0, Step.PUBLISH, 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
