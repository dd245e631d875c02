"""What every model must do, shown over the scripted fake and over the real adapter."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

import pytest

from tests.adapters.fault_server import HANG, FaultServer, Reply, completion, eventually, http, says
from tests.fakes.model import FakeModel, Hang
from worker.adapters.openai_model import OpenAIModel, OpenAISettings
from worker.ports import (
    Model,
    ModelAnswer,
    ModelCall,
    ModelCancelled,
    ModelFailure,
    ModelOffSchema,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelTransport,
    ModelUnparseable,
    Usage,
)

CALL = ModelCall(
    run_id="run-1",
    system="You judge.",
    user='{"evidence": "none"}',
    timeout=5.0,
    max_output_bytes=1000,
    max_output_tokens=100,
    answer_name="verdict",
    answer_schema={"type": "object"},
)
USAGE = Usage(11, 7)


class Stage(Protocol):
    """A model, and a provider behind it that can be told what comes next."""

    model: Model

    def answers(self, text: str) -> None: ...
    def fails(self, failure: type[ModelFailure]) -> None: ...
    def hangs(self) -> None: ...
    def cancel(self, run_id: str) -> None: ...
    def asked(self) -> int: ...


class Fake:
    def __init__(self) -> None:
        self.fake = FakeModel()
        self.model: Model = self.fake

    def answers(self, text: str) -> None:
        self.fake.then(ModelAnswer(text, USAGE))

    def fails(self, failure: type[ModelFailure]) -> None:
        if failure is ModelRateLimited:
            self.fake.then(ModelRateLimited(retry_after=3.0))
        else:
            self.fake.then(failure(USAGE if failure is ModelOffSchema else Usage()))

    def hangs(self) -> None:
        self.fake.then(Hang())

    def cancel(self, run_id: str) -> None:
        self.fake.cancel(run_id)

    def asked(self) -> int:
        return len(self.fake.calls)


FAULTS = {
    ModelTransport: Reply(http(500)),
    ModelRateLimited: Reply(http(429, headers={"retry-after": "3"})),
    ModelUnparseable: Reply(http(200, b"<html>", content_type="text/html")),
    ModelOffSchema: says(completion("cut", finish_reason="length")),
    ModelRefused: Reply(http(401)),
}


class Real:
    def __init__(self, server: FaultServer) -> None:
        self.server = server
        self.openai = OpenAIModel(OpenAISettings(server.url, "key", "judge"))
        self.model: Model = self.openai

    def answers(self, text: str) -> None:
        self.server.script(says(completion(text)))

    def fails(self, failure: type[ModelFailure]) -> None:
        self.server.script(FAULTS[failure])

    def hangs(self) -> None:
        self.server.script(HANG)

    def cancel(self, run_id: str) -> None:
        self.openai.cancel(run_id)

    def asked(self) -> int:
        return len(self.server.requests)


@pytest.fixture(params=["fake", "openai"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    if request.param == "fake":
        yield Fake()
        return
    with FaultServer() as server:
        real = Real(server)
        yield real
        real.openai.close()


def test_an_answer_comes_back_untouched_with_its_usage(stage: Stage) -> None:
    """The text of the one choice, spaces and all, and the provider's token counts."""
    text = ' {"verdict": "SUPPORTED"}\n\u4e2d '
    stage.answers(text)
    assert stage.model.ask(CALL) == ModelAnswer(text, USAGE)


@pytest.mark.parametrize("failure", FAULTS)
def test_a_failure_is_raised_as_its_class_and_the_next_call_is_served(
    stage: Stage, failure: type[ModelFailure]
) -> None:
    """One failure spoils nothing for the next call."""
    stage.fails(failure)
    stage.answers("good")
    with pytest.raises(failure) as raised:
        stage.model.ask(CALL)
    assert type(raised.value) is failure
    assert raised.value.usage == (USAGE if failure is ModelOffSchema else Usage())
    assert raised.value.retry_after == (3.0 if failure is ModelRateLimited else None)
    assert stage.model.ask(CALL).text == "good"
    assert stage.asked() == 2


def test_a_silent_provider_ends_at_the_total_time(stage: Stage) -> None:
    """A call never outlives its timeout."""
    stage.hangs()
    began = time.monotonic()
    with pytest.raises(ModelTimeout):
        stage.model.ask(replace(CALL, timeout=0.2))
    assert 0.15 < time.monotonic() - began < 1.0


def test_a_cancelled_run_ends_its_open_call(stage: Stage) -> None:
    """Cancelling one run ends its call and leaves another run's call alone."""
    stage.hangs()
    stage.hangs()
    with ThreadPoolExecutor(2) as threads:
        mine = threads.submit(stage.model.ask, CALL)
        other = threads.submit(stage.model.ask, replace(CALL, run_id="run-2", timeout=0.6))
        eventually(lambda: stage.asked() == 2)
        stage.cancel("run-1")
        assert isinstance(mine.exception(0.5), ModelCancelled)
        assert isinstance(other.exception(2), ModelTimeout)


def test_a_call_of_a_run_that_was_cancelled_before_is_not_made(stage: Stage) -> None:
    """A cancel that comes between the claim and the call is not lost."""
    stage.cancel("run-1")
    with pytest.raises(ModelCancelled):
        stage.model.ask(CALL)
    assert stage.asked() == 0


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
def test_an_answer_may_fill_its_limit_and_not_more(stage: Stage, size: int, fits: bool) -> None:
    """The limit counts the answer's bytes in UTF-8, not its characters or its escapes."""
    text = "\u4e2d" * 100 + "x" * (size - 300)
    stage.answers(text)
    if fits:
        assert stage.model.ask(CALL).text == text
    else:
        with pytest.raises(ModelOffSchema):
            stage.model.ask(CALL)


def test_many_threads_get_each_its_own_answer(stage: Stage) -> None:
    """One model serves all task threads at once."""
    texts = [json.dumps({"n": n}) for n in range(200)]
    for text in texts:
        stage.answers(text)
    start = threading.Barrier(20)

    def ask_ten(_: int) -> list[str]:
        start.wait(5)
        return [stage.model.ask(CALL).text for _ in range(10)]

    with ThreadPoolExecutor(20) as threads:
        answers = [text for ten in threads.map(ask_ten, range(20)) for text in ten]
    assert sorted(answers) == sorted(texts)
