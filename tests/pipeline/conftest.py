"""Stages of real processes, shared by the tests that do not break them."""

from collections.abc import Iterator

import pytest
from kombu import Connection

from tests.pipeline.harness import LocalStage, local_stage
from worker.adapters.queues import broker_of
from worker.offline.rabbitmq_server import RabbitServer

BROKERS = ("redis", "rabbitmq")


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    """A whole stage: a worker with two processes, and a relay."""
    with local_stage(tmp_path_factory.mktemp("stage")) as running:
        running.worker("shared", concurrency=2)
        running.relay("relay")
        yield running


@pytest.fixture(scope="session")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    """A stage without a relay: what goes on there goes on by a message alone."""
    with local_stage(tmp_path_factory.mktemp("quiet")) as running:
        running.worker("quiet", concurrency=2)
        yield running


@pytest.fixture
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    """Redis and judge only; the test starts the processes that it wants."""
    with local_stage(tmp_path_factory.mktemp("bare")) as running:
        yield running


@pytest.fixture(scope="session")
def rabbit() -> Iterator[RabbitServer]:
    """One RabbitMQ for the session, since its start takes seconds."""
    with RabbitServer() as server:
        yield server


def empty(server: RabbitServer) -> str:
    """Remove what an earlier stage left on the shared server; returns its address."""
    broker = broker_of(server.url)
    with Connection(server.url) as connection:
        for queue in (broker.tasks, broker.drafts, broker.control, broker.results, broker.dead):
            queue(connection.default_channel).delete()
    return server.url


def _broker_url(request: pytest.FixtureRequest) -> str:
    """Empty for Redis; for RabbitMQ the shared server, without what an earlier stage left."""
    if request.param == "redis":
        return ""
    server: RabbitServer = request.getfixturevalue("rabbit")
    return empty(server)


@pytest.fixture(scope="module", params=BROKERS)
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStage]:
    """A whole stage on each broker in turn, for tests that do not break it."""
    folder = tmp_path_factory.mktemp(request.param)
    with local_stage(folder, broker_url=_broker_url(request)) as running:
        running.worker(request.param, concurrency=2)
        running.relay("relay")
        yield running


@pytest.fixture(params=BROKERS)
def breakable(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStage]:
    """A durable Redis, a judge, and each broker in turn; the test starts and breaks the rest."""
    folder = tmp_path_factory.mktemp(request.param)
    with local_stage(folder, durable=True, broker_url=_broker_url(request)) as running:
        yield running


@pytest.fixture
def on_rabbit(
    rabbit: RabbitServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStage]:
    """As ``breakable``, for what only RabbitMQ can do."""
    folder = tmp_path_factory.mktemp("rabbitmq")
    with local_stage(folder, durable=True, broker_url=empty(rabbit)) as running:
        yield running
