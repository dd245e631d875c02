"""A Celery app of three tasks that do nothing, under the stage's own settings."""

from typing import Any

from celery import Celery, chain

from worker.app import celery_settings

app = Celery("bare", set_as_current=False)
app.add_defaults(
    # Celery's own consumer: the stage's would keep messages for a stage that is not here.
    lambda: {**celery_settings(), "worker_consumer": "celery.worker.consumer:Consumer"}
)

NAMES = ("bare.first", "bare.second", "bare.third")


def _nothing(*, run_id: str, round: int, attempt: int) -> str:  # noqa: A002 - as the steps have it
    return run_id


for _name in NAMES:
    app.task(name=_name)(_nothing)


def bare_chain(sender: Any, run_id: str) -> None:
    """Send three no-ops as one chain through ``sender``, an app with the same settings."""
    arguments = {"run_id": run_id, "round": 0, "attempt": 1}
    members = (sender.signature(name, kwargs=arguments, immutable=True) for name in NAMES)
    chain(*members).apply_async()
