"""pytest-celery's clusters over a local stage: two workers, its Redis as broker, no backend."""

import os
import sys
from collections.abc import Iterator

import pytest
from pytest_celery import CeleryBrokerCluster, CeleryTestBroker, CeleryWorkerCluster

from tests.nodes.containers import HOST, BrokerContainer, LocalProcess, LocalRedis, WorkerNode
from tests.pipeline.harness import LocalStage, local_stage
from worker.offline.processes import Process

WORKERS = ("first", "second")


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    """A Redis that survives its own restart, a judge and a relay."""
    with local_stage(tmp_path_factory.mktemp("nodes"), durable=True) as running:
        running.relay()
        yield running


@pytest.fixture
def celery_broker_cluster(stage: LocalStage) -> CeleryBrokerCluster:
    return CeleryBrokerCluster(CeleryTestBroker(BrokerContainer(LocalRedis(stage.redis_server))))


@pytest.fixture
def celery_backend_cluster() -> None:
    """The stage has no result backend: its endings are messages."""


@pytest.fixture
def celery_worker_cluster(
    stage: LocalStage, celery_broker_cluster: CeleryBrokerCluster
) -> Iterator[CeleryWorkerCluster]:
    nodes = [WorkerNode(_worker(stage, name)) for name in WORKERS]
    cluster = CeleryWorkerCluster(*nodes)
    cluster.ready()
    yield cluster
    for node in nodes:
        node.teardown()


def _worker(stage: LocalStage, name: str) -> LocalProcess:
    """A worker as ``processes.start_worker`` starts it, but that nobody waits for it here."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "worker.app", "worker"),
        *("--loglevel", "INFO", "--concurrency", "2", "--hostname", f"{name}@{HOST}"),
    ]
    environment = {**os.environ, **stage.environment}

    def launch(log: str) -> Process:
        return Process(log, command, environment, stage.logs)

    return LocalProcess(name, stage.environment, launch)
