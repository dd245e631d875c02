"""Flower beside a worker: it lists the tasks by name, run and result, and no word of a draft."""

import base64
import json
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.pipeline.cases import disk_draft, disk_records, draft_ready, event
from tests.pipeline.harness import CHECK, PUBLISH, REVIEW, LocalStage, local_stage, new_run_id
from tests.pipeline.producers import send_task
from worker.offline.judge_script import verdict
from worker.offline.processes import Process
from worker.run.steps import task_id

USER = "operator:loopback"
SECRET = "heliotrope"
"""A word that no part of the stage would use by itself."""


class Flower:
    """Flower's pages and its API, read as an operator with a password."""

    def __init__(self, port: int) -> None:
        self._root = f"http://127.0.0.1:{port}"

    def text(self, path: str) -> str:
        token = base64.b64encode(USER.encode()).decode()
        request = Request(f"{self._root}{path}", headers={"Authorization": f"Basic {token}"})
        with urlopen(request, timeout=5) as answer:
            return str(answer.read().decode())

    def tasks(self) -> dict[str, dict[str, Any]]:
        """All tasks that Flower knows, by id."""
        found: dict[str, dict[str, Any]] = json.loads(self.text("/api/tasks?limit=1000"))
        return found

    def watches(self) -> bool:
        """Flower has heard of the worker, so no later event will be missed."""
        try:
            return bool(json.loads(self.text("/workers?json=1"))["data"])
        except URLError:
            return False


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalStage, Flower]]:
    """A worker, and Flower started after it as the Procfile does."""
    logs = tmp_path_factory.mktemp("flower")
    with local_stage(logs) as stage:
        stage.worker("watched")
        port = free_port()
        command = [
            *(sys.executable, "-m", "celery", "-A", "worker.app", "flower"),
            *("--address=127.0.0.1", f"--port={port}", f"--basic-auth={USER}"),
        ]
        stage.processes.append(Process("flower", command, stage.environment, logs))
        flower = Flower(port)
        stage.wait_for(flower.watches, "Flower")
        yield stage, flower


def secret_draft() -> dict[str, Any]:
    draft = disk_draft()
    draft["conclusion"]["text"] += f" {SECRET}"
    return draft


@pytest.mark.scenario("local-stage", "Flower lists a run")
def test_flower_lists_each_step_by_name_run_and_result(
    watched: tuple[LocalStage, Flower],
) -> None:
    """Three tasks of a run: their names, the run's id among the arguments, a code as result."""
    stage, flower = watched
    run_id = new_run_id()
    stage.record(*disk_records(run_id))
    stage.submit(draft_ready(run_id, disk_draft()))
    stage.outcome(run_id)
    ids = {ref: task_id(run_id, ref) for ref in (CHECK, REVIEW, PUBLISH)}

    def all_done() -> bool:
        tasks = flower.tasks()
        return all(tasks.get(id_, {}).get("state") == "SUCCESS" for id_ in ids.values())

    stage.wait_for(all_done, "three tasks in Flower")
    tasks = flower.tasks()
    results = {CHECK: "'PASSED'", REVIEW: "'SUPPORTED'", PUBLISH: "'SUCCEEDED'"}
    for ref, id_ in ids.items():
        assert tasks[id_]["name"] == f"release.{ref.step}"
        assert run_id in tasks[id_]["kwargs"]
        assert tasks[id_]["result"] == results[ref]
        assert run_id in flower.text(f"/task/{id_}")


@pytest.mark.scenario("local-stage", "Flower shows no word of a draft")
def test_flower_shows_no_word_of_a_draft(watched: tuple[LocalStage, Flower]) -> None:
    """Neither of a released draft, nor of a refused one, nor a judge's reason."""
    stage, flower = watched
    released, objected, bad = new_run_id(), new_run_id(), new_run_id()
    for run_id in (released, objected):
        stage.record(*disk_records(run_id))
    stage.judge.add(verdict("SUPPORTED", f"reason {SECRET}").on(released))
    stage.judge.add(verdict("UNSUPPORTED", f"reason {SECRET}").on(objected))
    for message in (
        event(released, secret_draft()),
        event(objected, secret_draft(), data={"query": f"{SECRET} {objected}"}),
        event(bad, secret_draft(), type="release_stage.Shout.v1"),
        [SECRET],
    ):
        send_task(stage, "release.submit", message)
    stage.outcome(released)
    stage.outcome(objected)
    stage.wait_for(
        lambda: [task["result"] for task in flower.tasks().values()].count("'REFUSED'") == 2,
        "the refused messages",
    )
    ids = flower.tasks().keys()
    pages = "".join(flower.text(f"/task/{id_}") for id_ in ids)
    listed = flower.text("/api/tasks?limit=1000") + flower.text("/tasks") + pages
    assert released in listed
    assert SECRET not in listed
    assert SECRET not in stage.log_text()


@pytest.mark.scenario("local-stage", "Flower asks for a password")
def test_flower_answers_nobody_without_the_password(watched: tuple[LocalStage, Flower]) -> None:
    """The pages and the API are closed to a stranger on the same machine."""
    _, flower = watched
    for path in ("/api/tasks", "/tasks"):
        with pytest.raises(URLError, match="401"):
            urlopen(f"{flower._root}{path}", timeout=5)


@pytest.mark.scenario("local-stage", "Flower stays on loopback")
def test_no_file_that_starts_flower_opens_it_to_the_network() -> None:
    """Procfile and compose file bind it to loopback, the latter with a password."""
    root = Path(__file__).resolve().parents[2]
    procfile = (root / "Procfile").read_text("utf-8")
    assert re.search(r"^flower: .*--address=127\.0\.0\.1", procfile, re.MULTILINE)
    compose = (root / "docker-compose.yml").read_text("utf-8")
    assert "127.0.0.1:5555:5555" in compose
    assert "FLOWER_BASIC_AUTH" in compose
