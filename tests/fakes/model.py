"""A model that follows a script: the port ``Model`` without a network."""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from worker.ports import (
    ModelAnswer,
    ModelCall,
    ModelCancelled,
    ModelFailure,
    ModelOffSchema,
    ModelTimeout,
    Usage,
)


@dataclass(frozen=True)
class Hang:
    """The provider takes the call and stays silent: it ends by time or by cancel."""


Step = str | ModelAnswer | ModelFailure | Hang


class FakeModel:
    """Plays one step a call, whichever thread asks, and keeps the calls in ``calls``.

    A ``str`` is an answer without usage; a failure is raised. A call beyond the
    script is an error of the test.
    """

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.calls: list[ModelCall] = []
        self._steps = deque(steps)
        self._changed = threading.Condition()
        self._cancelled: set[str] = set()

    def then(self, *steps: Step) -> None:
        """Lengthen the script."""
        with self._changed:
            self._steps.extend(steps)

    def ask(self, call: ModelCall) -> ModelAnswer:
        """As the port says."""
        with self._changed:
            if call.run_id in self._cancelled:
                raise ModelCancelled
            self.calls.append(call)
            assert self._steps, "the script has no step for this call"
            step = self._steps.popleft()
            if isinstance(step, Hang):
                self._changed.wait_for(lambda: call.run_id in self._cancelled, call.timeout)
                raise ModelCancelled if call.run_id in self._cancelled else ModelTimeout
        if isinstance(step, ModelFailure):
            raise step
        answer = ModelAnswer(step, Usage()) if isinstance(step, str) else step
        if len(answer.text.encode()) > call.max_output_bytes:
            raise ModelOffSchema(answer.usage)
        return answer

    def cancel(self, run_id: str) -> None:
        """End the run's hanging calls, and refuse its later ones."""
        with self._changed:
            self._cancelled.add(run_id)
            self._changed.notify_all()
