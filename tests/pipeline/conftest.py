"""Stages of real processes, shared by the tests that do not break them."""

from collections.abc import Iterator

import pytest

from tests.pipeline.harness import LocalStage, local_stage


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
