"""Two real processes, one of them misconfigured: checkout asks inventory on the wrong port.

Run as a program it is one of the two: ``python -m examples.broken_service.service NAME FOLDER``.
"""

import json
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen

_READY_SECONDS = 20.0


class BrokenShop:
    """Starts both processes and a few customers, as a context manager; stops the processes again.

    ``folder`` holds their configuration and logs: what an agent's tools can look at.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = datetime.now(UTC)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        (self.folder / "inventory.json").write_text(json.dumps({"port": 0}))
        inventory = self._start("inventory")
        # The mistake: a port on which nobody listens.
        (self.folder / "checkout.json").write_text(
            json.dumps({"port": 0, "inventory_port": _closed_port(inventory)})
        )
        self.checkout_url = f"http://127.0.0.1:{self._start('checkout')}"
        for order in range(1, 8):
            with suppress(URLError):
                urlopen(f"{self.checkout_url}/orders/{order}").close()  # noqa: S310 - loopback
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, name: str) -> int:
        """Start a process; returns the port that it says it listens on."""
        said = self.folder / f"{name}.port"
        process = subprocess.Popen([sys.executable, __file__, name, str(self.folder)])
        self._stack.callback(_stop, process)
        deadline = time.monotonic() + _READY_SECONDS
        while not (said.is_file() and said.read_text()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start")
            time.sleep(0.02)
        return int(said.read_text())


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait()


def _closed_port(taken: int) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port if port != taken else _closed_port(taken)


class _Inventory(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"in_stock": true}')

    def log_message(self, *_: object) -> None:
        pass


class _Checkout(BaseHTTPRequestHandler):
    inventory_port = 0
    orders = 0
    failures = 0

    def do_GET(self) -> None:
        kind = type(self)
        if self.path == "/metrics":
            self._answer(200, f"checkout_failures_total {kind.failures}\n")
            return
        kind.orders += 1
        try:
            url = f"http://127.0.0.1:{kind.inventory_port}{self.path}"
            with urlopen(url, timeout=2) as answer:
                self._answer(200, answer.read().decode())
        except URLError:
            kind.failures += 1
            place = f"127.0.0.1:{kind.inventory_port}"
            say("ERROR", f"order {kind.orders} failed: inventory at {place} refused the connection")
            self._answer(502, "inventory cannot be reached\n")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


def say(level: str, text: str) -> None:
    """Write a line of the service's log."""
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    print(f"{moment} {level} {text}", flush=True)


def main(name: str, folder: Path) -> None:
    """Be one of the two services until the process is ended."""
    sys.stdout = (folder / f"{name}.log").open("a", encoding="utf-8")
    settings = json.loads((folder / f"{name}.json").read_text())
    handler = {"inventory": _Inventory, "checkout": _Checkout}[name]
    _Checkout.inventory_port = settings.get("inventory_port", 0)
    server = ThreadingHTTPServer(("127.0.0.1", settings["port"]), handler)
    say("INFO", f"{name} listens on 127.0.0.1:{server.server_port}")
    (folder / f"{name}.port").write_text(str(server.server_port))
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
