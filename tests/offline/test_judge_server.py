"""The judge over real sockets: its answers, its faults and its log."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from worker.offline import judge_script as faults
from worker.offline.judge import JudgeServer
from worker.offline.judge_script import Behaviour, read_script, write_script

QUESTION = {
    "query": "marker-1: why?",
    "draft": {
        "conclusion": {"text": "The disk is 97 % full.", "based_on_analysis_ids": ["a1"]},
        "analyses": [{"analysis_id": "a1", "kind": "NORMAL", "text": "The disk is 97 % full."}],
        "action_plan": [],
        "recommendations": [],
        "limitations": [],
        "missing_context": [],
    },
    "evidence": {
        "analyses": [
            {
                "analysis_id": "a1",
                "kind": "NORMAL",
                "text": "The disk is 97 % full.",
                "evidence": [
                    {
                        "tool": "run_command",
                        "source": "shell",
                        "observed_at": "2024-05-01T14:00:00Z",
                        "scope": {"command": "df"},
                        "found": True,
                        "excerpt": "/dev/sda1 97% /",
                        "values": None,
                    }
                ],
            }
        ]
    },
}


def body(question: Any = None) -> bytes:
    user = json.dumps(QUESTION if question is None else question)
    messages = [{"role": "system", "content": "Judge."}, {"role": "user", "content": user}]
    return json.dumps({"model": "any", "messages": messages}).encode()


class Client:
    """One connection to the judge."""

    def __init__(self, judge: JudgeServer, timeout: float = 10.0) -> None:
        self.connection = http.client.HTTPConnection(judge.root_url[7:], timeout=timeout)

    def ask(self, payload: bytes | None = None) -> tuple[http.client.HTTPResponse, bytes]:
        headers = {"authorization": "Bearer secret", "content-type": "application/json"}
        payload = body() if payload is None else payload
        self.connection.request("POST", "/v1/chat/completions", payload, headers)
        answer = self.connection.getresponse()
        return answer, answer.read()

    def content(self, payload: bytes | None = None) -> Any:
        return json.loads(self.ask(payload)[1])["choices"][0]["message"]["content"]


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def judge(server: JudgeServer) -> JudgeServer:
    server.forget()
    return server


@pytest.fixture
def client(judge: JudgeServer) -> Iterator[Client]:
    client = Client(judge)
    yield client
    client.connection.close()


@pytest.mark.scenario("local-stage", "A verdict over HTTP")
def test_a_review_is_answered_with_exactly_a_verdict_and_a_reason(client: Client) -> None:
    """Without a script the rules answer, in the shape that the worker reads strictly."""
    answer = json.loads(client.content())
    assert sorted(answer) == ["reason", "verdict"]
    assert answer["verdict"] == "SUPPORTED"
    wrong = json.loads(json.dumps(QUESTION).replace("97 %", "79 %"))
    answer = json.loads(client.content(body(wrong)))
    assert answer["verdict"] == "UNSUPPORTED"
    assert "79 %" in answer["reason"]


def test_a_repair_is_answered_with_the_whole_draft(client: Client) -> None:
    """The keys of the question tell a repair from a review."""
    draft = {
        "conclusion": {"text": "C", "based_on_analysis_ids": ["A1"]},
        "analyses": [{"analysis_id": "a1", "kind": "NORMAL", "text": "x", "tool_call_ids": ["c"]}],
    }
    question = {"query": "q", "draft": draft, "violations": []}
    mended = json.loads(client.content(body(question)))
    assert mended["conclusion"] == {"text": "C", "based_on_analysis_ids": ["a1"]}
    assert mended["analyses"] == draft["analyses"]


@pytest.mark.parametrize("payload", [b"{", b"{}", b"[]", body({"a": 1}), body([1]), body(7)])
def test_what_is_no_question_is_answered_400(payload: bytes, client: Client) -> None:
    """A body that the rules cannot read is refused, as a provider would refuse it."""
    answer, text = client.ask(payload)
    assert answer.status == 400
    assert json.loads(text)["error"]["type"] == "invalid_request_error"


@pytest.mark.scenario("local-stage", "Faults on demand")
def test_the_script_is_used_in_order_and_by_marker(judge: JudgeServer, client: Client) -> None:
    """A request takes the first behaviour that is left and meant for it, then the rules."""
    judge.script(
        faults.content("for another").on("marker-2").always(),
        faults.status(500),
        faults.content("twice").repeat(2),
    )
    assert client.ask()[0].status == 500
    assert client.content(body("marker-2")) == "for another"
    assert [client.content(), client.content()] == ["twice", "twice"]
    assert json.loads(client.content())["verdict"] == "SUPPORTED"
    assert client.content(body("marker-2")) == "for another"
    behaviours = [received.behaviour for received in judge.asked_about("marker-1")]
    assert behaviours == ["status 500", "content", "content", "rules"]


@pytest.mark.scenario("local-stage", "Faults on demand")
@pytest.mark.parametrize(
    ("behaviour", "status", "text"),
    [
        (faults.status(429, retry_after=3), 429, b'"scripted"'),
        (faults.status(408), 408, b'"error"'),
        (faults.html(502), 502, b"<h1>"),
        (faults.html(), 200, b"<h1>"),
        (faults.raw(b""), 200, b""),
        (faults.raw(b"\x1f\x8b\xff", "application/json; charset=utf-16"), 200, b"\x1f\x8b\xff"),
        (faults.raw(b'{"choices": ['), 200, b'{"choices": ['),
        (faults.error_object(), 200, b'{"error"'),
        (faults.refusal("No."), 200, b'"content": null, "refusal": "No."'),
        (faults.choices([]), 200, b'"choices": []'),
        (faults.choices(None), 200, b'"choices": null'),
        (faults.cut_by_length('{"verdict"'), 200, b'"finish_reason": "length"'),
        (faults.verdict("UNSUPPORTED", "so"), 200, b'\\"UNSUPPORTED\\", \\"reason\\": \\"so\\"'),
        (faults.content("x" * 2_000_000), 200, b"x" * 2_000_000),
    ],
    ids=lambda value: value.name if isinstance(value, Behaviour) else "",
)
def test_a_scripted_answer_arrives_as_scripted(
    judge: JudgeServer, client: Client, behaviour: Behaviour, status: int, text: bytes
) -> None:
    """Statuses, pages, broken bodies and odd completions, each on a connection that goes on."""
    judge.script(behaviour)
    answer, received = client.ask()
    assert answer.status == status
    assert text in received
    for name, value in behaviour.headers.items():
        assert answer.headers[name] == value
    assert client.ask()[0].status == 200
    assert [one.status for one in judge.requests] == [status, 200]


def test_usage_can_be_left_out(judge: JudgeServer, client: Client) -> None:
    """An answer by the rules without the usage object."""
    judge.script(faults.no_usage())
    assert "usage" not in json.loads(client.ask()[1])
    assert json.loads(client.ask()[1])["usage"]["prompt_tokens"] > 0


def test_a_reset_and_a_close_are_told_apart(judge: JudgeServer, client: Client) -> None:
    """A reset is RST; a close ends the stream; both before any byte and inside the body."""
    judge.script(faults.reset(), faults.close(), faults.close(20))
    with pytest.raises(ConnectionResetError):
        client.ask()
    with pytest.raises(http.client.RemoteDisconnected):
        client.ask()
    with pytest.raises(http.client.IncompleteRead) as cut:
        client.ask()
    assert len(cut.value.partial) == 20
    assert all(one.ended and one.answered_at is None for one in judge.requests)


def test_a_trickled_answer_is_whole_in_the_end(judge: JudgeServer, client: Client) -> None:
    """Each byte of the body comes on its own, so that only a total deadline ends it."""
    judge.script(faults.trickle(0.001), faults.content("late").after(0.05))
    assert json.loads(client.content())["verdict"] == "SUPPORTED"
    started = time.monotonic()
    assert client.content() == "late"
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(
    "behaviour", [faults.hang(), faults.hang(5), faults.rules().after(60), faults.trickle(0.02)]
)
def test_the_time_when_a_client_gives_up_is_recorded(
    judge: JudgeServer, behaviour: Behaviour
) -> None:
    """A request that its client closed before the answer was whole tells when, at once."""
    judge.script(behaviour)
    with socket.create_connection(("127.0.0.1", int(judge.root_url.rsplit(":", 1)[1]))) as raw:
        payload = body()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(payload)}"
        raw.sendall(f"{head}\r\n\r\n".encode() + payload)
        judge.wait(lambda requests: len(requests) == 1)
        gave_up = time.time()
    (received,) = judge.wait(lambda requests: requests[0].ended)
    assert received.closed_at is not None
    assert -0.01 < received.closed_at - gave_up < 0.5
    assert received.answered_at is None


def test_a_request_is_logged_in_full_without_its_key(judge: JudgeServer, client: Client) -> None:
    """Bodies are kept to the byte, in memory and over HTTP; the key is kept nowhere."""
    client.ask()
    with urlopen(f"{judge.base_url}/models") as models:
        assert json.load(models)["data"]
    with urlopen(f"{judge.root_url}/health") as health:
        assert json.load(health) == {"status": "ok"}
    with urlopen(f"{judge.root_url}/_control/log") as log:
        listed = json.load(log)
    asked, models_asked = judge.requests
    assert (asked.method, asked.path, asked.body) == ("POST", "/v1/chat/completions", body())
    assert models_asked.path == "/v1/models"
    assert asked.question == QUESTION
    assert asked.answered_at is not None
    assert asked.answered_at >= asked.arrived_at
    assert listed[0]["body"].encode() == body()
    assert "secret" not in json.dumps(listed)
    assert "authorization" not in asked.headers


def test_a_script_survives_its_way_through_json() -> None:
    """What tests write in Python can be sent to a judge in another process."""
    script = [faults.status(429, retry_after=1).on("a").always(), faults.raw(b"\xff").after(2)]
    assert read_script(write_script(script)) == script


def test_a_wrong_script_is_refused_with_what_is_wrong(judge: JudgeServer, client: Client) -> None:
    """A misspelt field would make a test that proves nothing."""
    client.connection.request("PUT", "/_control/script", b'[{"stauts": 500}]')
    answer = client.connection.getresponse()
    assert (answer.status, b"stauts" in answer.read()) == (400, True)


def test_malformed_http_is_refused_and_the_server_goes_on(
    judge: JudgeServer, client: Client
) -> None:
    """Nonsense on the socket closes that connection only."""
    with socket.create_connection(("127.0.0.1", int(judge.root_url.rsplit(":", 1)[1]))) as raw:
        raw.settimeout(10)
        raw.sendall(b"nonsense\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    assert client.ask()[0].status == 200


def test_the_command_prints_its_address_takes_a_script_logs_and_ends_on_sigterm(
    tmp_path: Path,
) -> None:
    """As a process: one line when it listens, a JSON line a request, a clean end."""
    log = tmp_path / "judge.jsonl"
    command = [sys.executable, "-m", "worker.offline.judge", "--port", "0", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = process.stdout.readline().decode().strip()
            host = url.removeprefix("http://").removesuffix("/v1")
            connection = http.client.HTTPConnection(host, timeout=10)
            script = write_script([faults.verdict("UNSUPPORTED").always()])
            connection.request("PUT", "/_control/script", script)
            assert connection.getresponse().read() == b'{"behaviours": 1}'
            connection.request("POST", "/v1/chat/completions", body())
            assert b"UNSUPPORTED" in connection.getresponse().read()
            connection.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
            assert b"does not judge meaning" in process.stderr.read()
        finally:
            process.kill()
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["body"].encode() == body()
