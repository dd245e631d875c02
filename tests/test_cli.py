"""What the command line answers when something is missing, wrong or already over."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker.offline.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[1]


def typed(*arguments: str, redis: str = "unix:///nowhere") -> tuple[int, str, str]:
    """Run one command as a person would: its exit code and what it wrote."""
    ran = subprocess.run(
        [sys.executable, "-m", "worker.cli", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "REDIS_URL": redis},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("command", ["show", "cancel"])
def test_a_store_that_is_away_is_told_in_one_sentence(command: str) -> None:
    """A person reads which setting to look at, and no traceback."""
    code, said, complaint = typed(command, "run-1")
    assert (code, said) == (1, "")
    assert complaint == "release-stage: Redis at REDIS_URL does not answer (ConnectionError)\n"


def test_an_id_that_no_run_can_have_is_refused() -> None:
    """A mark under it would never meet a draft, so nobody may believe that it was made."""
    code, said, complaint = typed("cancel", "run 1")
    assert (code, said) == (2, "")
    assert "a run id has 1 to 128 letters" in complaint


def test_a_cancel_of_what_has_not_come_says_that_it_waits_for_it() -> None:
    """It is on record at once, though no draft of the run is there yet."""
    with RedisServer() as server:
        code, _, complaint = typed("show", "run-1", redis=server.url)
        assert (code, complaint) == (1, "release-stage: there is no run run-1\n")
        code, said, _ = typed("cancel", "run-1", redis=server.url)
        assert (code, "has come yet" in said) == (0, True)
        code, record, _ = typed("show", "run-1", redis=server.url)
        assert (code, set(json.loads(record))) == (0, {"run_id", "cancelled_at"})
