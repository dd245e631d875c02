"""Child processes that end with the process that made them, however that one ends."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class TiedChildren:
    """Starts children that Linux ends when this process is gone.

    Linux looks at the thread that made the child, not at its process: one thread makes
    every child and lives as long as this object does.
    """

    def __init__(self, name: str) -> None:
        self._maker = ThreadPoolExecutor(1, thread_name_prefix=name)

    def start(
        self,
        command: list[str],
        *,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a silent child, or one that writes to ``log``; raises OSError."""
        return self._maker.submit(_start, command, environment, log).result()


def end(process: subprocess.Popen[bytes], how: signal.Signals, patience: float) -> None:
    """Signal a child, wait for its end, and kill it after ``patience`` seconds."""
    process.send_signal(how)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start(
    command: list[str], environment: Mapping[str, str] | None, log: Path | None
) -> subprocess.Popen[bytes]:
    with Path(log or os.devnull).open("ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a Ctrl-C is for the parent, which stops servers last
            # It makes two system calls and takes no lock, so threads do no harm.
            preexec_fn=_DieWithParent() if sys.platform == "linux" else None,  # noqa: PLW1509
        )


class _DieWithParent:
    """Run in the child before exec: ask Linux for SIGKILL when the parent is gone."""

    def __init__(self) -> None:
        self._prctl = ctypes.CDLL(None).prctl
        self._parent = os.getpid()

    def __call__(self) -> None:
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._parent:  # it died before the request
            os._exit(1)
