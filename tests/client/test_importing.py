"""Files of every format into a real Redis, from the command line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from contracts.envelope import Envelope
from tests.transcripts.formats import FORMATS, STORY, Asked, Came, Step
from worker import cli
from worker.adapters.keys import Keys
from worker.client import InvocationReader
from worker.client.importing import UnreadableFile, draft_ready, read_file
from worker.offline.redis_server import RedisServer
from worker.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DRAFT = '{"conclusion": null, "analyses": []}'


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
def client(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """An empty Redis that the command line is set to."""
    monkeypatch.setattr(cli, "settings", lambda: Settings(redis_url=server.url, broker_url=""))
    monkeypatch.setattr(cli, "_print", print)  # the real one lets SIGPIPE end the process
    with redis.Redis.from_url(server.url) as connected:
        yield connected
        connected.flushall()


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(FORMATS[name][0](STORY)), encoding="utf-8")
    return path


def typed(path: Path, name: str, *more: str) -> int:
    return cli.main(["import", str(path), "--format", name, "--run-id", "run-1", *more])


@pytest.mark.scenario("transcripts", "Import of a file")
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_imported_once_however_often(
    tmp_path: Path, client: redis.Redis, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records and counts are stored; the same file again changes nothing."""
    path = written(tmp_path, name)
    assert typed(path, name, "--session-id", "s-1") == 0
    first = client.hgetall(Keys().invocations("run-1"))
    assert typed(path, name, "--session-id", "s-1") == 0
    assert client.hgetall(Keys().invocations("run-1")) == first
    told = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "}")
    assert told == {
        "run_id": "run-1",
        "written": 3,
        "refused": 0,
        "session_counts": {"model_steps": 4, "evidence_calls": 3, "helper_calls": 1},
    }
    assert len(InvocationReader(client).records("run-1")) == 3


@pytest.mark.scenario("transcripts", "Import and submission")
def test_a_draft_is_submitted_with_its_file(
    tmp_path: Path, client: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    """What waits in the inbox is the draft as it was written, with question and progress."""
    draft = tmp_path / "draft.json"
    draft.write_text(DRAFT)
    path = written(tmp_path, "anthropic")
    assert typed(path, "anthropic", "--draft", str(draft), "--submit") == 0
    message_id = json.loads(capsys.readouterr().out)["message_id"]
    stored: Any = client.get(Keys().inbox_entry(message_id))
    data: Any = Envelope.model_validate_json(stored).data
    assert data["draft"] == DRAFT
    assert data["query"] == "Why is checkout slow?"
    assert data["session_id"] == "run-1"
    assert data["progress"]["completed_tool_call_ids"] == ["c1", "c2"]


@pytest.mark.scenario("transcripts", "A file that is refused")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "holds no JSON"),
        ("", "is empty"),
        ("[3]", "reading stopped: NOT_A_MESSAGE at messages[0]; nothing is stored"),
        ("{}", "reading stopped: NOT_MESSAGES at messages; nothing is stored"),
    ],
)
def test_a_refused_file_stores_nothing(
    tmp_path: Path,
    client: redis.Redis,
    capsys: pytest.CaptureFixture[str],
    text: str,
    sentence: str,
) -> None:
    """One sentence with the code and the place, and an exit code."""
    path = tmp_path / "secret.json"
    path.write_text(text)
    assert typed(path, "openai-chat") == 1
    assert sentence in capsys.readouterr().err
    assert client.keys("*") == []


def test_a_second_file_cannot_change_what_is_final(
    tmp_path: Path, client: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records of the same calls with other results are refused, and the first stand."""
    path = written(tmp_path, "langchain")
    assert typed(path, "langchain", "--began-at", "2026-01-01T12:00:00Z") == 0
    first = client.hgetall(Keys().invocations("run-1"))
    path.write_text(path.read_text().replace("100%", "1%"))
    assert typed(path, "langchain", "--began-at", "2026-01-01T12:00:00Z") == 1
    assert "those stand" in capsys.readouterr().err
    assert client.hgetall(Keys().invocations("run-1")) == first


@pytest.mark.parametrize(
    "more", [("--submit",), ("--draft", "nowhere.json"), ("--began-at", "noon")]
)
def test_wrong_use_is_told(
    tmp_path: Path, client: redis.Redis, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    """A missing draft and a time that is none stop before anything is stored."""
    try:
        code = typed(written(tmp_path, "otel"), "otel", *more)
    except SystemExit as stopped:
        code = int(str(stopped.code))
    assert code in {1, 2}
    assert capsys.readouterr().err
    assert client.keys("*") == []


def test_an_agents_own_tools_are_told(tmp_path: Path, client: redis.Redis) -> None:
    """Tools of other names become commands, helpers or known tools by an option."""
    story = (
        "Why?",
        Step(
            "",
            (
                Asked("c1", "execute_shell"),
                Asked("c2", "k8s", {"command": "get pods"}),
                Asked("c3", "plan", {}),
                Asked("c4", "search", {"query": "pools"}),
                Asked("c5", "unknown", {}),
            ),
        ),
        (Came("c1"), Came("c2", "a pod"), Came("c3"), Came("c4", '{"documents": []}'), Came("c5")),
    )
    path = tmp_path / "file.json"
    path.write_text(json.dumps(FORMATS["openai-chat"][0](story)))
    kinds = ("execute_shell=command", "k8s=command:kubectl", "plan=helper")
    options = [word for kind in (*kinds, "search=lookup_knowledge") for word in ("--tool", kind)]
    assert typed(path, "openai-chat", *options) == 0
    told = {one.tool_call_id: one for one in InvocationReader(client).records("run-1")}
    assert [told[name].tool_name for name in ("c1", "c2", "c4", "c5")] == [
        "run_command",
        "run_command",
        "lookup_knowledge",
        "unknown",
    ]
    assert told["c2"].request["command"] == "kubectl get pods"
    assert "c3" not in told
    assert told["c4"].evidence_status == "NO_EVIDENCE"
    assert told["c5"].error_message == "TOOL_UNKNOWN"
    for wrong in ("x", "=command", "x=y", "x=helper:y"):
        assert typed(path, "openai-chat", "--tool", wrong) == 2


def test_saved_requests_and_lines_of_spans_are_read(tmp_path: Path) -> None:
    """Messages may stand in a saved request; an exporter writes a document a line."""
    wrapped = tmp_path / "request.json"
    wrapped.write_text(json.dumps({"model": "m", "messages": FORMATS["anthropic"][0](STORY)}))
    ids: Any = {"run_id": "r", "session_id": "s"}
    assert read_file(wrapped, "anthropic", **ids).evidence_calls == 3
    export = json.dumps(FORMATS["otel"][0](STORY))
    lines = tmp_path / "spans.jsonl"
    lines.write_text(f"{export}\n{export}\n")
    transcript = read_file(lines, "otel", query="Why?", **ids)
    assert (transcript.evidence_calls, transcript.query) == (3, "Why?")
    assert draft_ready(transcript, DRAFT, query="And?", **ids).query == "And?"
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_file(tmp_path, "otel", **ids)


@pytest.mark.scenario("trace-summary", "Shown to people")
def test_the_summary_is_shown_before_any_draft(tmp_path: Path, server: RedisServer) -> None:
    """``show`` tells what the calls came to, as soon as there are calls."""
    environment = {"PATH": os.environ["PATH"], "REDIS_URL": server.url}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "worker.cli", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    path = written(tmp_path, "openai-responses")
    imported = command("import", str(path), "--format", "openai-responses", "--run-id", "run-7")
    assert imported.returncode == 0, imported.stderr
    shown = json.loads(command("show", "run-7").stdout)["trace"]
    assert shown["session_counts"]["evidence_calls"] == 3
    topics = {entry["topic"]: entry for entry in shown["entries"]}
    assert topics["df"]["excerpt"] == "/dev/sda1 100%"
    assert topics["free"]["outcome"] == "NO_HIT"
    assert topics["ls /x"]["gaps"][0]["invocation_id"] == "c4"
