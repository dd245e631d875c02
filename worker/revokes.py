"""A revoke of any of a run's tasks cancels the run, whoever revoked it and however.

Celery tells of a revoke in three ways, and each is caught here, in the worker's
main process: a signal for a task that was still waiting or was terminated, nothing
at all for one that is running (a timer compares), and nothing for one that has ended
meanwhile (its acknowledgement compares).
"""

import logging
from collections.abc import Callable
from typing import Any

from celery import Celery, bootsteps
from celery.signals import task_revoked
from celery.worker import state
from celery.worker.request import Request

from worker.ports import StoreUnavailable
from worker.run.steps import Step
from worker.stage.cancel import cancel
from worker.stage.engine import Stage

log = logging.getLogger("release_stage")

LOOK = 0.2
"""Seconds between two looks at the running tasks."""
PATIENCE_LOOKS = 5
"""Every so many looks, processes that ignore a closed call are looked for."""
PATIENCE = 5.0
"""Seconds that a closed call has to come back by itself."""

_STEPS = frozenset(f"release.{step}" for step in Step)


class StepRequest(Request):
    """A step's delivery. One that was revoked while it ran is noticed when it is settled."""

    def acknowledge(self) -> None:
        super().acknowledge()
        if self.id in state.revoked:
            heed(self.task.stage, self.task.name, self.kwargs)


def install(app: Celery, stage: Callable[[], Stage]) -> None:
    """Make every worker of this app heed revokes."""

    def on_revoked(sender: Any, request: Any, terminated: bool, expired: bool, **_: Any) -> None:
        if expired or (terminated and request.id not in state.revoked):
            # Time ran out, or the worker ended its own child: nobody asked for a cancel.
            return
        heed(stage, sender.name, request.kwargs)

    class Revokes(bootsteps.StartStopStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, parent: Any, **options: Any) -> None:
            super().__init__(parent, **options)
            self.looks = 0
            self.entry: Any = None

        def start(self, parent: Any) -> None:
            self.entry = parent.timer.call_repeatedly(LOOK, self.look, (parent,))

        def stop(self, parent: Any) -> None:
            if self.entry is not None:
                self.entry.cancel()

        def look(self, parent: Any) -> None:
            running = [one for one in list(state.active_requests) if one.task.name in _STEPS]
            for request in running:
                if request.id in state.revoked:
                    heed(stage, request.task.name, request.kwargs)
            self.looks += 1
            if running and self.looks % PATIENCE_LOOKS == 0:
                _end_the_deaf(stage, running, parent.pool)

    task_revoked.connect(on_revoked, weak=False)
    app.steps["consumer"].add(Revokes)


def heed(stage: Callable[[], Stage], task_name: str, kwargs: dict[str, Any]) -> None:
    """Cancel the run of a revoked task; of an ended run this changes nothing."""
    run_id = kwargs.get("run_id") if task_name in _STEPS else None
    if not isinstance(run_id, str):
        return
    try:
        cancel(stage(), run_id)
    except StoreUnavailable as error:
        log.warning("revoke not heeded run_id=%s error=%s", run_id, error)


def _end_the_deaf(stage: Callable[[], Stage], running: list[Request], pool: Any) -> None:
    """End the process of what still runs though its run was closed a while ago: it is stuck.

    SIGKILL, since Python hears no other signal while it is inside a C library.
    """
    try:
        closed = stage().records.closed(PATIENCE)
    except StoreUnavailable:
        return
    for request in running:
        if request.kwargs.get("run_id") in closed:
            log.warning("terminating a stuck step task_id=%s", request.id)
            try:
                request.terminate(pool, signal="KILL")
            except NotImplementedError:
                log.warning("this pool cannot end a stuck step; its hard limit or restart will")
