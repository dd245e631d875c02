"""What becomes of a child process that its starter never gets to hold."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from worker.offline.processes import NotReady, Process, wait_until


def sleeper(folder: Path) -> Process:
    """A process that says that it runs and never that it is ready."""
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    return Process("sleeper", command, os.environ, folder)


def test_a_process_that_never_gets_ready_is_not_left_behind(tmp_path: Path) -> None:
    """Whoever waited in vain has nothing in hand to stop it with."""
    process = sleeper(tmp_path)
    with pytest.raises(NotReady):
        process.ready("ready", seconds=0.1)
    assert not process.running


def test_an_interrupted_wait_leaves_no_process_behind(tmp_path: Path) -> None:
    """Ctrl-C reaches the one who waits, and not the child in its session of its own."""
    process = sleeper(tmp_path)

    def interrupt() -> None:
        wait_until(lambda: "up" in process.text(), 60, "the child")
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        process.ready("ready", seconds=60)
    assert not process.running
