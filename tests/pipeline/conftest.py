"""One stage of real processes, shared by the tests that do not break it."""

from collections.abc import Iterator

import pytest

from tests.pipeline.harness import LocalStage, local_stage


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    with local_stage(tmp_path_factory.mktemp("stage")) as running:
        running.worker("shared", concurrency=2)
        running.relay("relay")
        yield running
