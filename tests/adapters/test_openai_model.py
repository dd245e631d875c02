"""The model boundary against a server that misbehaves, over real sockets."""

import json
import logging
import os
import signal
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from tests.adapters.fault_server import (
    HANG,
    FaultServer,
    Reply,
    completion,
    eventually,
    http,
    says,
)
from tests.adapters.provider_faults import FAULTS, GOOD, SECRET
from worker.adapters.openai_model import OpenAIModel, OpenAISettings
from worker.ports import (
    ModelCall,
    ModelCancelled,
    ModelFailure,
    ModelTimeout,
    ModelTransport,
)

KEY = "sk-key-that-must-not-pass"
CALL = ModelCall(
    run_id="run-1",
    system="You judge.",
    user='{"evidence": "draft-words-that-must-not-pass \u4e2d"}',
    timeout=5.0,
    max_output_bytes=1000,
    max_output_tokens=100,
    answer_name="verdict",
    answer_schema={"type": "object", "properties": {"reason": {"type": "string"}}},
)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def model(server: FaultServer) -> Iterator[OpenAIModel]:
    made = OpenAIModel(OpenAISettings(server.url, KEY, "judge"))
    yield made
    made.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_class_and_leaves_the_model_usable(
    server: FaultServer, model: OpenAIModel, fault: str
) -> None:
    """Every fault is one request, one class, the usage that was told, and no foreign word."""
    reply, failure, usage = FAULTS[fault]
    server.script(reply)
    with pytest.raises(ModelFailure) as raised:
        model.ask(CALL)
    assert type(raised.value) is failure
    assert raised.value.usage == usage
    assert raised.value.__context__ is None
    assert len(server.requests) == 1
    told = "".join(traceback.format_exception(raised.value))
    assert SECRET not in told
    assert KEY not in told
    assert model.ask(CALL).text == "{}"


def test_an_unreachable_provider_is_a_transport_failure() -> None:
    """Nobody listens at the address."""
    with FaultServer() as gone:
        url = gone.url
    model = OpenAIModel(OpenAISettings(url, KEY, "judge"))
    try:
        with pytest.raises(ModelTransport):
            model.ask(CALL)
    finally:
        model.close()


@pytest.mark.scenario("model-boundary", "An answer that trickles")
@pytest.mark.parametrize(
    "reply",
    [
        HANG,
        Reply(http(200, GOOD), pace=0.05),
        Reply(http(200, GOOD)[:30], then="hang"),
        Reply(http(200, GOOD, length=9999), then="hang"),
    ],
    ids=["silent", "trickles from its first byte", "silent in the head", "silent in the body"],
)
def test_the_deadline_is_total(server: FaultServer, model: OpenAIModel, reply: Reply) -> None:
    """However busy the connection looks, the call ends in time and its socket closes."""
    server.script(reply)
    began = time.monotonic()
    with pytest.raises(ModelTimeout):
        model.ask(replace(CALL, timeout=0.4))
    assert 0.35 < time.monotonic() - began < 0.9
    eventually(lambda: len(server.left_at) == 1)
    assert model.ask(CALL).text == "{}"


@pytest.mark.scenario("model-boundary", "Cancelled while the model thinks")
def test_a_cancel_closes_the_sockets_of_its_run_at_once(
    server: FaultServer, model: OpenAIModel
) -> None:
    """Two open calls of one run close within a tenth of a second; a third run's goes on."""
    server.script(HANG, Reply(http(200, GOOD), pace=0.05), says(completion("slow"), delay=0.5))
    with ThreadPoolExecutor(3) as threads:
        calls = []
        for run_id in ("run-1", "run-1", "run-2"):
            calls.append(threads.submit(model.ask, replace(CALL, run_id=run_id)))
            eventually(lambda: len(server.requests) == len(calls))
        cancelled_at = time.monotonic()
        model.cancel("run-1")
        assert isinstance(calls[0].exception(2), ModelCancelled)
        assert isinstance(calls[1].exception(2), ModelCancelled)
        eventually(lambda: len(server.left_at) == 2)
        assert max(server.left_at) - cancelled_at < 0.1
        assert calls[2].result(2).text == "slow"


class SoftLimit(Exception):
    """As Celery's SoftTimeLimitExceeded: an ordinary exception, raised by a signal."""


@pytest.mark.parametrize("after", [0.0005, 0.002, 0.005, 0.2])
def test_an_interrupted_caller_closes_its_call(
    server: FaultServer, model: OpenAIModel, after: float
) -> None:
    """What a signal raises in the waiting thread passes through; no call stays behind."""
    model.ask(CALL)
    server.otherwise = HANG

    def interrupt(_: int, frame: FrameType | None) -> None:
        raise SoftLimit

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(SoftLimit):  # noqa: PT012 - it may come before the call or within it
            signal.setitimer(signal.ITIMER_REAL, after)
            model.ask(CALL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    eventually(lambda: not model._calls._here()._open)
    eventually(lambda: len(server.left_at) == len(server.requests) - 1)
    server.otherwise = says(completion("next"))
    assert model.ask(CALL).text == "next"


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_asks_on_a_loop_of_its_own(server: FaultServer, model: OpenAIModel) -> None:
    """A model made and used before the fork works on both sides of it."""
    model.ask(CALL)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if model.ask(CALL).text == "{}" else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 10
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    assert model.ask(CALL).text == "{}"


@pytest.mark.scenario("model-boundary", "Failure first, verdict second")
def test_two_attempts_send_the_same_bytes(server: FaultServer, model: OpenAIModel) -> None:
    """The body holds the two messages and the settings, and nothing that changes."""
    for _ in range(2):
        model.ask(CALL)
    first, second = (request.body for request in server.requests)
    assert first == second
    assert json.loads(first) == {
        "model": "judge",
        "messages": [
            {"role": "system", "content": CALL.system},
            {"role": "user", "content": CALL.user},
        ],
        "temperature": 0.0,
        "max_tokens": 100,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": CALL.answer_schema, "strict": True},
        },
    }


def test_the_request_goes_to_chat_completions_with_the_key(
    server: FaultServer, model: OpenAIModel
) -> None:
    """Path, key and encoding as servers expect them."""
    model.ask(CALL)
    head = server.requests[0].head.decode().lower()
    assert head.startswith("post /v1/chat/completions http/1.1")
    assert f"authorization: bearer {KEY}" in head
    assert "content-type: application/json" in head
    assert "accept-encoding: identity" in head


def test_no_cookie_ties_two_calls_together(server: FaultServer, model: OpenAIModel) -> None:
    """A cookie that one answer sets is not sent with the next call."""
    server.script(Reply(http(200, GOOD, headers={"set-cookie": "who=run-1"})))
    model.ask(CALL)
    model.ask(CALL)
    assert b"cookie" not in server.requests[1].head.lower()


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge beside the worker is reached directly."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    model = OpenAIModel(OpenAISettings(server.url, KEY, "judge"))
    try:
        assert model.ask(CALL).text == "{}"
    finally:
        model.close()


def test_a_proxy_of_the_environment_is_asked_for_other_hosts(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider outside is reached through the proxy that the machine names."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    model = OpenAIModel(OpenAISettings("http://judge.invalid/v1", KEY, "judge"))
    try:
        assert model.ask(CALL).text == "{}"
    finally:
        model.close()
    assert server.requests[0].head.startswith(b"POST http://judge.invalid/v1/chat/completions")


def test_logs_hold_no_address_no_key_and_no_text(
    server: FaultServer, model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    """Even with logging at DEBUG a good call and a broken one leave no word."""
    caplog.set_level(logging.DEBUG)
    server.script(says(completion(SECRET)), Reply(http(500, SECRET.encode())))
    model.ask(CALL)
    with pytest.raises(ModelTransport):
        model.ask(CALL)
    logged = " ".join(f"{r.getMessage()} {r.__dict__}" for r in caplog.records)
    for word in (SECRET, KEY, str(server.port), "draft-words"):
        assert word not in logged


@pytest.mark.parametrize("status", [401, 404, 503])
def test_a_status_that_refuses_is_told_to_those_who_run_the_worker(
    status: int, server: FaultServer, model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong key or address ends every run alike, so the log must say which it was."""
    server.script(Reply(http(status, SECRET.encode())))
    with pytest.raises(ModelFailure):
        model.ask(CALL)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == [
        f"the model's server refused run_id={CALL.run_id} status={status}"
    ]


def test_many_calls_are_open_at_once(server: FaultServer, model: OpenAIModel) -> None:
    """A hundred waiting threads share one loop: slow answers overlap."""
    server.otherwise = says(completion("slow"), delay=0.5)
    began = time.monotonic()
    with ThreadPoolExecutor(100) as threads:
        texts = list(threads.map(lambda _: model.ask(CALL).text, range(100)))
    assert texts == ["slow"] * 100
    assert time.monotonic() - began < 4


def test_cancellations_come_from_the_iterator_which_is_restarted(server: FaultServer) -> None:
    """A listener that breaks is started again, and what it then says still cancels."""
    starts: list[float] = []

    async def cancellations() -> AsyncIterator[str]:
        starts.append(time.monotonic())
        if len(starts) == 1:
            raise ConnectionError(SECRET)
        if len(starts) == 2:
            return
        yield "run-1"

    model = OpenAIModel(OpenAISettings(server.url, KEY, "judge"), cancellations)
    server.script(HANG)
    try:
        with pytest.raises(ModelCancelled):
            model.ask(CALL)
    finally:
        model.close()
    assert len(starts) >= 3


def test_closing_ends_open_calls(server: FaultServer, model: OpenAIModel) -> None:
    """A process that stops leaves no thread waiting; a later call starts afresh."""
    server.script(HANG)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(model.ask, CALL)
        eventually(lambda: len(server.requests) == 1)
        model.close()
        assert isinstance(call.exception(2), ModelCancelled)
    assert model.ask(CALL).text == "{}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "judge.example/v1"},
        {"base_url": "ftp://judge.example"},
        {"base_url": "http:///v1"},
        {"base_url": "http://[::1/v1"},
        {"api_key": ""},
        {"api_key": "two\nlines"},
        {"api_key": "schl\u00fcssel"},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    """A wrong address or key is told when the model is made, without the key."""
    right: dict[str, Any] = {
        "base_url": "http://judge.example/v1",
        "api_key": KEY,
        "model": "judge",
    }
    with pytest.raises(ValueError, match=r"^the model's (base_url|api_key)") as raised:
        OpenAISettings(**(right | wrong))
    assert "schl" not in str(raised.value)
    assert KEY not in repr(OpenAISettings(**right))
