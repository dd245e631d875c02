"""A private world for one recipe: own processes, network, host name and ``/srv``.

A recipe runs as the first process of new Linux namespaces. Ports cannot clash,
paths and host names are neutral because they are the real ones inside, and
when the recipe ends the kernel ends all that it started and nothing else.
Needs Linux, root and util-linux (``unshare``); each README names the programs.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path("/srv")
LIMIT_S = 120
"""A recipe that takes longer is killed, with all that it started."""

_INSIDE = "INCIDENT_SCENE"


@dataclass(frozen=True)
class Sample:
    at: datetime
    value: float


@dataclass
class Gauge:
    """Samples of one number, taken while the scene plays."""

    labels: dict[str, str]
    unit: str
    samples: list[Sample] = field(default_factory=list)


def now() -> datetime:
    """The present in UTC, to the millisecond, as the records hold it."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


class Scene:
    """Starts programs and takes samples inside the private world."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.gauges: dict[str, Gauge] = {}
        self._stop = threading.Event()

    def directory(self, path: str, owner: str | None = None) -> Path:
        """Make ``/srv/<path>``, owned by a system user if one is named."""
        made = ROOT / path
        made.mkdir(parents=True, exist_ok=True)
        if owner:
            self.run("chown", owner, str(made))
        return made

    def file(self, path: str, text: str) -> Path:
        """Write ``/srv/<path>``."""
        made = self.directory(str(Path(path).parent)) / Path(path).name
        made.write_text(text, encoding="utf-8")
        return made

    def run(self, *argv: str, user: str | None = None) -> str:
        """Run a program to its end and return what it wrote; raises if it fails."""
        done = subprocess.run(
            _as(user, argv), env=environment(), cwd=ROOT, text=True, capture_output=True, timeout=60
        )
        if done.returncode:
            raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def start(
        self, *argv: str, user: str | None = None, log: str | None = None, **extra: str
    ) -> "subprocess.Popen[bytes]":
        """Start a program; its output goes to ``/srv/<log>``. ``extra`` joins its environment."""
        path = self.file(log, "") if log else Path(os.devnull)
        with path.open("ab") as output:
            return subprocess.Popen(
                _as(user, argv),
                env=environment() | extra,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def until(self, ready: Callable[[], bool], what: str, seconds: float = 30) -> None:
        """Wait until something holds; raises TimeoutError with its name after the deadline."""
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise TimeoutError(what)
            time.sleep(0.05)

    def until_open(self, host: str, port: int) -> None:
        """Wait until a TCP port accepts."""

        def accepts() -> bool:
            try:
                socket.create_connection((host, port), timeout=1).close()
            except OSError:
                return False
            return True

        self.until(accepts, f"port {port}")

    def sample(
        self, name: str, read: Callable[[], float], *, unit: str, every: float = 0.5
    ) -> None:
        """Sample a number each ``every`` seconds until the scene ends. A failed read is a gap."""
        gauge = self.gauges[name] = Gauge(labels={"host": self.host}, unit=unit)

        def loop() -> None:
            while not self._stop.is_set():
                with contextlib.suppress(OSError, ValueError, RuntimeError):
                    gauge.samples.append(Sample(now(), float(read())))
                self._stop.wait(every)

        threading.Thread(target=loop, daemon=True).start()

    def close(self) -> None:
        self._stop.set()


def enter(host: str, others: Sequence[str], act: Callable[[Scene], None]) -> None:
    """Play ``act`` in a private world in which this host is called ``host``.

    ``others`` are further host names; each gets a loopback address of its own.
    """
    if os.environ.get(_INSIDE) != "1":
        module = sys.modules["__main__"].__spec__
        assert module is not None, "run a recipe with python -m"
        flags = ["--mount", "--uts", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        subprocess.run(
            ["unshare", *flags, sys.executable, "-m", module.name],
            env=os.environ | {_INSIDE: "1"},
            check=True,
            timeout=LIMIT_S,
        )
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g,mode=755", "tmpfs", "/srv"], check=True)
    subprocess.run(["hostname", host], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    scene = Scene(host)
    names = "".join(f"127.0.0.{10 + n}\t{name}\n" for n, name in enumerate([host, *others]))
    hosts = scene.file("etc/hosts", "127.0.0.1\tlocalhost\n" + names)
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    scene.directory("tmp").chmod(0o1777)
    try:
        act(scene)
    finally:
        scene.close()


def environment() -> dict[str, str]:
    """What every program of a scene gets: nothing of the recording machine's own."""
    postgres = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))[-1:]
    path = ":".join([*postgres, "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
    return {"PATH": path, "HOME": "/srv", "TMPDIR": "/srv/tmp", "LANG": "C.UTF-8", "TZ": "UTC"}


def _as(user: str | None, argv: Sequence[str]) -> list[str]:
    if user is None:
        return list(argv)
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *argv]
