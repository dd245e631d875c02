"""The rule-based judge: a chat-completions server on loopback, with faults on demand.

``python -m worker.offline.judge --port 0 --log FILE`` prints its base URL as one
line once it listens, and ends on SIGTERM. In a test it runs in a thread:

    with JudgeServer() as judge:
        judge.script(status(500), verdict("SUPPORTED").on("run-7").always())

From another process the script is ``PUT`` (replace) or ``POST`` (add) to
``/_control/script`` as a JSON list of behaviours, and the requests are read with
``GET /_control/log``.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from worker.offline.judge_http import JudgeHttp
from worker.offline.judge_log import Received, RequestLog
from worker.offline.judge_rules import NOTICE
from worker.offline.judge_script import Behaviour, Script


class JudgeServer:
    """The judge in a thread of this process, as a context manager.

    ``port`` 0 takes a free one; ``log_file`` gets one JSON object a line for each
    request, appended when the request has ended. ``start`` raises OSError where the
    port is taken.
    """

    def __init__(self, port: int = 0, log_file: Path | None = None) -> None:
        self._port = port
        self._script = Script()
        self._log = RequestLog(log_file)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._http = JudgeHttp(self._script, self._log)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def root_url(self) -> str:
        """The server's address, for ``/health`` and ``/_control``."""
        if self._thread is None:
            raise RuntimeError("the judge was not started")
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The address for an OpenAI client."""
        return f"{self.root_url}/v1"

    @property
    def requests(self) -> list[Received]:
        """The requests so far, in the order of their arrival; open ones are among them."""
        return self._log.all()

    def script(self, *behaviours: Behaviour) -> None:
        """Replace the script; without behaviours only the rules answer."""
        self._script.replace(behaviours)

    def add(self, *behaviours: Behaviour) -> None:
        """Add behaviours after those that are left."""
        self._script.extend(behaviours)

    def asked_about(self, marker: str) -> list[Received]:
        """The requests whose body holds ``marker``."""
        return [one for one in self.requests if marker.encode() in one.body]

    def wait(
        self, holds: Callable[[list[Received]], bool], timeout: float = 10.0
    ) -> list[Received]:
        """Wait until ``holds`` is true of the requests so far and return them.

        It is asked again at each arrival and each end of a request. Raises TimeoutError.
        """
        return self._log.wait(holds, timeout)

    def forget(self) -> None:
        """Forget the requests so far and the script."""
        self._log.clear()
        self._script.replace(())

    def start(self) -> None:
        """Listen; returns when clients can connect."""
        loop = asyncio.new_event_loop()
        try:
            self._port = loop.run_until_complete(self._http.start(self._port))
        except OSError:
            loop.close()
            raise
        self._loop = loop
        self._thread = Thread(target=loop.run_forever, name="judge", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every connection and the log file; does nothing if it does not run."""
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._http.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._log.close()
        self._loop = self._thread = None


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m worker.offline.judge", description=NOTICE)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--log", type=Path, help="append each request to this file, as JSON lines")
    options = parser.parse_args(arguments)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with JudgeServer(options.port, options.log) as judge:
        sys.stdout.write(f"{judge.base_url}\n")
        sys.stdout.flush()
        sys.stderr.write(f"{NOTICE}\n")
        stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
