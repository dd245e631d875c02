"""The Celery doors: decode, call one use case, hand on. No branch of the domain lives here."""

import time
from collections.abc import Callable
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded
from celery import Celery, Task
from celery.canvas import Signature
from celery.exceptions import Ignore, Reject
from celery.worker.request import Request
from kombu.utils import json as kombu_json

from contracts.strict_json import canonical
from worker.adapters.queues import TASKS, broker_of, failures
from worker.ports import SendFailed, StoreUnavailable
from worker.run.path import after, hand_on
from worker.run.policy import Policy
from worker.run.state import Run
from worker.run.steps import MODEL_STEPS, Step, StepRef, errback_id, task_id
from worker.stage.admit import admit
from worker.stage.call import timed_out
from worker.stage.check import check
from worker.stage.compose import compose
from worker.stage.engine import Report, Stage
from worker.stage.gate import gate
from worker.stage.publish import publish
from worker.stage.recover import lost
from worker.stage.repair import repair
from worker.stage.review import review
from worker.stage.verify import verify

SUBMIT = "release.submit"
PAUSE = 1.0
"""Seconds before a submitted message is given back when the store or the broker is away."""
ATTEMPT_LOST = "release.attempt_lost"

USE_CASES: dict[Step, Callable[[Stage, str, StepRef], Report]] = {
    Step.CHECK_EVIDENCE: check,
    Step.REPAIR_EVIDENCE: repair,
    Step.REVIEW_SEMANTICS: review,
    Step.GATE_CLAIMS: gate,
    Step.VERIFY_CLAIMS: verify,
    Step.COMPOSE_ANSWER: compose,
    Step.PUBLISH: publish,
}


class StepFailed(Exception):
    """A step broke. Its text is a code, so that no traceback can carry content."""


class SilentRequest(Request):
    """A request whose arguments nobody is shown: not in events, not in logs, not by inspect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._argsrepr = self._kwargsrepr = "<a message>"

    def info(self, safe: bool = False) -> dict[str, Any]:
        return super().info(safe=True)


class SilentTask(Task):
    Request = "worker.tasks:SilentRequest"


class StepTask(Task):
    Request = "worker.revokes:StepRequest"
    stage: Callable[[], Stage]


def step_name(step: Step) -> str:
    """The Celery task name of a step."""
    return f"release.{step}"


class CeleryDispatcher:
    """Implements ``Dispatcher``: a step and the straight path behind it, as one chain."""

    def __init__(self, app: Celery, policy: Policy) -> None:
        self._app = app
        self._policy = policy

    def dispatch(self, run: Run, step: StepRef) -> None:
        members = [self._signature(run, ref) for ref in (step, *after(step))]
        options = broker_of(self._app.conf.broker_url).publish_options
        with self._app.producer_or_acquire() as producer:
            broken = failures(producer.connection)
            try:
                # What `chain` sends, without its deep copies of every member.
                members[0].apply_async(chain=members[:0:-1] or None, producer=producer, **options)
            except broken as error:
                # Its confirmation may still come, and must not be taken for another's.
                producer.connection.close()
                raise SendFailed(type(error).__name__) from None

    def waiting(self) -> int:
        with self._app.connection_for_write() as connection:
            try:
                queue = broker_of(self._app.conf.broker_url).tasks(connection.channel())
                return int(queue.queue_declare().message_count)
            except failures(connection) as error:
                raise SendFailed(type(error).__name__) from None

    def _signature(self, run: Run, ref: StepRef) -> Signature:
        names = {"run_id": run.run_id, "round": ref.round, "attempt": ref.attempt}
        grant = run.attempt(ref).grants + 1
        errback = self._app.signature(
            ATTEMPT_LOST,
            kwargs={**names, "step": ref.step.value, "grant": grant},
            task_id=errback_id(run.run_id, ref, grant),
            queue=TASKS,
        )
        return self._app.signature(
            step_name(ref.step),
            kwargs=names,
            immutable=True,
            task_id=task_id(run.run_id, ref),
            soft_time_limit=self._policy.soft_limit(ref.step),
            time_limit=self._policy.hard_limit(ref.step),
            link_error=[errback],
            queue=TASKS,
        )


def register(app: Celery, stage: Callable[[], Stage]) -> None:
    """Register the tasks. ``stage`` gives this process's stage when a task first needs it.

    They are this app's alone: Celery would give a shared task to every app of the process.
    """
    for step in Step:
        _register_step(app, stage, step)

    @app.task(name=ATTEMPT_LOST, bind=True, shared=False)
    def attempt_lost(
        task: Task,
        failed_task_id: str,
        *,
        run_id: str,
        step: str,
        round: int,
        attempt: int,
        grant: int,
    ) -> str:
        """Called by Celery when a step failed, was killed, or lost its process."""
        ref = StepRef(round, Step(step), attempt)
        return _through(task, stage, run_id, lambda house: lost(house, run_id, ref, grant))

    # Its message is all that there is of a draft: it comes again when its process dies.
    @app.task(name=SUBMIT, base=SilentTask, shared=False, reject_on_worker_lost=True)
    def submit(*args: object, **kwargs: object) -> str:
        """Admit a message that came as a task: an envelope, as an object or as JSON text.

        Whatever else it is called with is refused and kept, as a stranger's message would be.
        """
        alone = len(args) == 1 and not kwargs
        message = args[0] if alone else {"args": args, "kwargs": kwargs}
        try:
            return _admit_or_keep(stage(), _raw(message))
        except (StoreUnavailable, SendFailed):
            time.sleep(PAUSE)  # given back at once, it would come again at once
            raise Reject(requeue=True) from None
        except Exception as error:  # noqa: BLE001 - only the name of its class may go on
            raise StepFailed(type(error).__name__) from None


def _admit_or_keep(house: Stage, raw: bytes) -> str:
    """Admit a message; one that admission breaks on is kept, since its task is done then."""
    try:
        return admit(house, raw, SUBMIT)
    except (StoreUnavailable, SendFailed):
        raise
    except Exception as error:
        house.sender.park(raw, type(error).__name__, SUBMIT)
        raise


def _raw(message: object) -> bytes:
    """The bytes of a submitted message, so that admission judges what Celery read leniently."""
    if isinstance(message, str):
        return message.encode("utf-8", "surrogatepass")
    try:
        return canonical(message)
    except (ValueError, TypeError):
        # NaN, a lone surrogate, or what kombu made of an object with a "__type__": written as
        # it came, to be refused or read strictly.
        return str(kombu_json.dumps(message)).encode()


def _register_step(app: Celery, stage: Callable[[], Stage], step: Step) -> None:
    use_case = USE_CASES[step]

    def door(task: Task, *, run_id: str, round: int, attempt: int) -> str:
        ref = StepRef(round, step, attempt)

        def carry_out(house: Stage) -> Report:
            try:
                return use_case(house, run_id, ref)
            except SoftTimeLimitExceeded:
                if step not in MODEL_STEPS:
                    raise
                return timed_out(house, run_id, ref)

        return _through(task, stage, run_id, carry_out)

    app.task(
        name=step_name(step),
        bind=True,
        shared=False,
        base=StepTask,
        stage=staticmethod(stage),
    )(door)


def _through(
    task: Task, stage: Callable[[], Stage], run_id: str, carry_out: Callable[[Stage], Report]
) -> str:
    try:
        house = stage()
        report = carry_out(house)
        if not report.idle:
            _hand_on(task, house, report)
    except Exception as error:  # noqa: BLE001 - its text may hold content, its class's name not
        raise StepFailed(type(error).__name__) from None
    if report.idle:
        raise Ignore
    return report.code


def _hand_on(task: Task, house: Stage, report: Report) -> None:
    """Leave the next step to the chain if it is the chain's next; otherwise send it."""
    step = None if report.run is None else hand_on(report.run, house.policy)
    behind = task.request.chain
    named = None if step is None or report.run is None else task_id(report.run.run_id, step)
    if behind and named and behind[-1]["options"].get("task_id") == named:
        return
    task.request.chain = None
    if step is not None and report.run is not None:
        house.dispatcher.dispatch(report.run, step)
