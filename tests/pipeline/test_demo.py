"""The demo as a newcomer runs it: one process that starts everything and stops it again."""

import json
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from contracts.fallback import FallbackType
from worker.offline.incidents import load

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "contracts" / "schemas" / "messages"
LAST_LINE = re.compile(
    rb"demo: (?P<runs>\d+) runs, (?P<succeeded>\d+) succeeded, "
    rb"(?P<fallback>\d+) fallback, (?P<aborted>\d+) aborted"
)


@pytest.fixture(scope="module")
def demo(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[bytes], Path]:
    directory = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "worker.cli", "demo", "--directory", str(directory)]
    # It must not ask the servers that the environment may name.
    environment = {"PATH": "/usr/bin:/bin", "REDIS_URL": "unix:///nowhere", "OPENAI_BASE_URL": ""}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=110, check=False
    )
    return ran, directory


def messages(directory: Path) -> list[dict[str, Any]]:
    text = (directory / "results.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.scenario("local-stage", "The demo")
def test_the_demo_ends_well_and_counts_its_runs(
    demo: tuple[subprocess.CompletedProcess[bytes], Path],
) -> None:
    """Exit code 0, and a last line whose numbers are those of the results."""
    ran, directory = demo
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    last = LAST_LINE.fullmatch(ran.stdout.splitlines()[-1])
    assert last is not None
    kinds = Counter(message["type"] for message in messages(directory))
    cases = sum(len(incident.cases) + len(incident.claims) for incident in load())
    assert {name: int(number) for name, number in last.groupdict().items()} == {
        "runs": cases,
        "succeeded": kinds["release_stage.ReleaseSucceeded.v1"],
        "fallback": kinds["release_stage.ReleaseFallback.v1"],
        "aborted": kinds["release_stage.ReleaseAborted.v1"],
    }
    assert cases >= 12


@pytest.mark.scenario("local-stage", "The demo's results")
def test_the_results_fit_the_published_schemas(
    demo: tuple[subprocess.CompletedProcess[bytes], Path],
) -> None:
    """Each line is a whole message that a team in another language can check for itself."""
    _, directory = demo
    for message in messages(directory):
        name = message["type"].removeprefix("release_stage.")
        schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
        jsonschema.Draft202012Validator(schema).validate(message)


@pytest.mark.scenario("local-stage", "Every ending in the demo")
def test_the_demo_shows_every_kind_of_ending(
    demo: tuple[subprocess.CompletedProcess[bytes], Path],
) -> None:
    """A release, each fallback, and aborts are among the results."""
    _, directory = demo
    found = {message["type"].split(".")[1] for message in messages(directory)}
    assert found == {"ReleaseSucceeded", "ReleaseFallback", "ReleaseAborted"}
    fallbacks = {
        message["data"]["fallback"]["type"]
        for message in messages(directory)
        if "fallback" in message["data"]
    }
    assert fallbacks == set(FallbackType)


@pytest.mark.scenario("local-stage", "Claims in the demo")
def test_the_demo_answers_what_it_is_asked_for(
    demo: tuple[subprocess.CompletedProcess[bytes], Path],
) -> None:
    """Claims are released in round 0 and in round 1, and doubted in both."""
    ran, directory = demo
    answered = [message["data"] for message in messages(directory) if "answer" in message["data"]]
    ended = {(one["round"], one.get("fallback", {}).get("type")) for one in answered}
    assert ended == {
        (0, None),
        (1, None),
        (0, "LOW_CONFIDENCE"),
        (1, "LOW_CONFIDENCE"),
        (0, "CLAIMS_REJECTED"),
    }
    assert ran.stdout.count(b"evidence asked for") == 2


@pytest.mark.scenario("local-stage", "Nothing is left running")
def test_the_demo_stops_what_it_started(
    demo: tuple[subprocess.CompletedProcess[bytes], Path],
) -> None:
    """No process knows the demo's Redis any more, and its socket is gone."""
    _, directory = demo
    log = (directory / "worker.log").read_text("utf-8")
    address = re.search(r"redis\+socket://(?P<path>\S+?redis\.sock)", log)
    assert address is not None
    assert not Path(address["path"]).exists()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is somebody else's
            assert address["path"].encode() not in (process / "environ").read_bytes()
            assert address["path"].encode() not in (process / "cmdline").read_bytes()
