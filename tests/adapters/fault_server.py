"""A scripted HTTP server on loopback that answers as providers do on their worst days."""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self


@dataclass(frozen=True)
class Reply:
    """What one request gets: the raw bytes of a response and how they are sent.

    ``delay`` passes before the first byte, ``pace`` after each byte (all in seconds).
    Then the connection is kept, closed, reset, held open in silence, or ``more`` is
    sent for ever.
    """

    raw: bytes
    delay: float = 0.0
    pace: float | None = None
    then: Literal["keep", "close", "reset", "hang", "flood"] = "keep"
    more: bytes = b""


HANG = Reply(b"", then="hang")


def http(
    status: int = 200,
    body: bytes = b"",
    *,
    content_type: str = "application/json",
    headers: dict[str, str] | None = None,
    length: int | None = None,
) -> bytes:
    """A whole response; ``length`` may lie about the body's length."""
    fields = {
        "content-type": content_type,
        "content-length": str(len(body) if length is None else length),
        **(headers or {}),
    }
    lines = [f"HTTP/1.1 {status} As scripted", *(f"{k}: {v}" for k, v in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def completion(
    content: Any = "{}", *, finish_reason: str | None = "stop", **message: Any
) -> dict[str, Any]:
    """A chat completion as a provider writes it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "judge",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def says(document: Any, **how: Any) -> Reply:
    """A 200 with a JSON document."""
    return Reply(http(200, json.dumps(document).encode()), **how)


@dataclass(frozen=True)
class Request:
    head: bytes
    body: bytes


@dataclass
class FaultServer:
    """Answers requests with the scripted replies in order, then with ``otherwise``."""

    otherwise: Reply = field(default_factory=lambda: says(completion()))
    requests: list[Request] = field(default_factory=list)
    left_at: list[float] = field(default_factory=list)
    """When (monotonic) clients left before their reply was complete."""

    def __enter__(self) -> Self:
        self._script: deque[Reply] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._on_loop(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._on_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *replies: Reply) -> None:
        self._script.extend(replies)

    def _on_loop(self, awaitable: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result(5)

    async def _stop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if line)
        body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
        self.requests.append(Request(head, body))
        reply = self._script.popleft() if self._script else self.otherwise
        sending = asyncio.ensure_future(self._send(reply, writer))
        leaving = asyncio.ensure_future(self._left(reader))
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done() and not sending.done():
            self.left_at.append(time.monotonic())
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)
        return reply.then == "keep" and not sending.cancelled() and sending.exception() is None

    async def _send(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(reply.delay)
        if reply.pace is None:
            writer.write(reply.raw)
            await writer.drain()
        else:
            for byte in reply.raw:
                writer.write(bytes([byte]))
                await asyncio.sleep(reply.pace)
        if reply.then == "reset":
            writer.transport.abort()
        while reply.then == "flood":
            writer.write(reply.more)
            await writer.drain()
        if reply.then == "hang":
            await asyncio.Event().wait()

    async def _left(self, reader: asyncio.StreamReader) -> None:
        """Return when the client is gone; it never sends anything while it waits."""
        # A stream tells its end only to who reads, and reading could eat the next request.
        while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def eventually(what: Callable[[], bool], seconds: float = 5.0) -> None:
    """Poll until ``what`` holds; fails when the time is over."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
