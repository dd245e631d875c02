"""HTTP/1.1 for the judge: small enough to be fast, low enough to break in every way.

A request with nothing to wait for is answered in the callback that received it.
The close of a connection by its client is seen at once, whatever the answer waits
for, which is what tests of cancellation measure.
"""

import asyncio
import contextlib
import json
import socket
import struct
import time
from http import HTTPStatus
from typing import Any

from worker.offline import judge_answers
from worker.offline.judge_log import Received, RequestLog
from worker.offline.judge_script import Behaviour, Script, read_script

CHAT = "/v1/chat/completions"
_JSON = {"content-type": "application/json"}
_HEAD_LIMIT = 64 * 1024


class Connection(asyncio.Protocol):
    """One client's connection, with at most one request open at a time."""

    def __init__(self, script: Script, log: RequestLog, open_ones: set["Connection"]) -> None:
        self._script = script
        self._log = log
        self._open_ones = open_ones
        self._buffer = bytearray()
        self._received: Received | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open_ones.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._serve()

    def eof_received(self) -> bool:
        self._closed_by_client()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed_by_client()
        self._open_ones.discard(self)

    def shut(self) -> None:
        """Close from this side, whatever is open."""
        self._end()
        self._transport.abort()

    # --- requests -------------------------------------------------------------

    def _serve(self) -> None:
        while self._received is None and not self._transport.is_closing():
            request = self._next_request()
            if request is None:
                return
            self._answer(*request)

    def _next_request(self) -> tuple[str, str, dict[str, str], bytes] | None:
        """Take a whole request off the buffer; None if more is to come, or it is refused."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                self._refuse(431)
            return None
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }
        parts = lines[0].split(" ")
        length = headers.get("content-length", "0")
        if len(parts) != 3 or not length.isdecimal():
            self._refuse(400)
            return None
        if "transfer-encoding" in headers:
            self._refuse(411)
            return None
        whole = end + 4 + int(length)
        if len(self._buffer) < whole:
            if headers.pop("expect", "").lower() == "100-continue" and len(self._buffer) == end + 4:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        body = bytes(self._buffer[end + 4 : whole])
        del self._buffer[:whole]
        headers.pop("authorization", None)
        return parts[0], parts[1], headers, body

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        if path == "/health":
            self._send(200, {"status": "ok"})
        elif path.startswith("/_control/"):
            self._control(method, path, body)
        else:
            self._received = self._log.arrived(method, path, headers, body)
            if (method, path) == ("POST", CHAT):
                self._behave(self._script.take(body), self._received)
            elif (method, path) == ("GET", "/v1/models"):
                model = {"id": judge_answers.MODEL, "object": "model", "owned_by": "worker"}
                self._send(200, {"object": "list", "data": [model]})
            else:
                self._write(404, _JSON, judge_answers.error("no such path", "not_found"))
                self._end()
        if headers.get("connection", "").lower() == "close" and self._received is None:
            self._transport.close()

    def _control(self, method: str, path: str, body: bytes) -> None:
        match method, path:
            case (("PUT" | "POST"), "/_control/script"):
                try:
                    behaviours = read_script(body)
                except ValueError as error:
                    self._send(400, {"error": str(error)})
                    return
                if method == "PUT":
                    self._script.replace(behaviours)
                else:
                    self._script.extend(behaviours)
                self._send(200, {"behaviours": len(behaviours)})
            case "GET", "/_control/log":
                self._send(200, [received.as_dict() for received in self._log.all()])
            case "DELETE", "/_control/log":
                self._log.clear()
                self._send(200, {})
            case _:
                self._send(
                    404, {"error": "GET or DELETE /_control/log, PUT or POST /_control/script"}
                )

    # --- behaviours -----------------------------------------------------------

    def _behave(self, behaviour: Behaviour, received: Received) -> None:
        received.behaviour = behaviour.name
        received.status = behaviour.status
        if behaviour.delay or behaviour.trickle:
            self._task = asyncio.get_running_loop().create_task(self._slowly(behaviour, received))
        else:
            self._at_once(behaviour, received)

    async def _slowly(self, behaviour: Behaviour, received: Received) -> None:
        await asyncio.sleep(behaviour.delay)
        if behaviour.trickle is None:
            self._at_once(behaviour, received)
        else:
            headers, body = response(behaviour, received)
            self._transport.write(head(received.status or 200, headers, len(body)))
            for byte in body if behaviour.end == "KEEP" else body[: behaviour.send_bytes or 0]:
                self._transport.write(bytes([byte]))
                await asyncio.sleep(behaviour.trickle)
            self._finish(behaviour, received)
        self._task = None
        self._serve()

    def _at_once(self, behaviour: Behaviour, received: Received) -> None:
        if behaviour.end == "KEEP":
            headers, body = response(behaviour, received)
            self._write(received.status or 200, headers, body)
        elif behaviour.send_bytes is not None:
            headers, body = response(behaviour, received)
            part = body[: behaviour.send_bytes]
            self._transport.write(head(received.status or 200, headers, len(body)) + part)
        self._finish(behaviour, received)

    def _finish(self, behaviour: Behaviour, received: Received) -> None:
        match behaviour.end:
            case "KEEP":
                received.answered_at = time.time()
                self._end()
            case "CLOSE":
                self._end()
                self._transport.close()
            case "RESET":
                self._end()
                self._reset()
            case "HANG":
                pass  # the client ends it

    def _reset(self) -> None:
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    # --- endings --------------------------------------------------------------

    def _closed_by_client(self) -> None:
        if self._received is not None:
            self._received.closed_at = time.time()
        self._end()

    def _end(self) -> None:
        received, self._received = self._received, None
        task, self._task = self._task, None
        if received is not None:
            self._log.ended(received)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def _refuse(self, status: int) -> None:
        self._buffer.clear()
        self._write(status, _JSON, judge_answers.error("malformed request", "invalid_request"))
        self._transport.close()

    def _send(self, status: int, value: Any) -> None:
        self._write(status, _JSON, json.dumps(value).encode())
        if self._received is not None:
            self._received.status = status
            self._received.answered_at = time.time()
            self._end()

    def _write(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self._transport.write(head(status, headers, len(body)) + body)


def head(status: int, headers: dict[str, str], length: int) -> bytes:
    """The status line and headers of an answer."""
    phrase = ""
    with contextlib.suppress(ValueError):
        phrase = HTTPStatus(status).phrase
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    text = f"HTTP/1.1 {status} {phrase}\r\n{fields}content-length: {length}\r\n\r\n"
    return text.encode("latin-1", "replace")


def response(behaviour: Behaviour, received: Received) -> tuple[dict[str, str], bytes]:
    """The headers and body that a behaviour gives a request.

    A question that the rules cannot read turns ``received.status`` into 400.
    """
    headers = {**_JSON, **{name.lower(): value for name, value in behaviour.headers.items()}}
    body = behaviour.raw_body()
    if body is not None:
        return headers, body
    if behaviour.status >= 400:
        return headers, judge_answers.error("scripted", "scripted", str(behaviour.status))
    content = behaviour.content
    if behaviour.verdict is not None:
        content = judge_answers.verdict(behaviour.verdict, behaviour.reason)
    if content is None and not _replaced(behaviour):
        try:
            content = judge_answers.answer(received.body)
        except judge_answers.NotAQuestion as error:
            received.status = 400
            return headers, judge_answers.error(str(error), "invalid_request_error")
    return headers, judge_answers.completion(
        content,
        number=received.number,
        created=int(received.arrived_at),
        input_bytes=len(received.body),
        finish_reason=behaviour.finish_reason,
        usage=behaviour.usage,
        message=behaviour.message,
        overrides=behaviour.completion,
    )


def _replaced(behaviour: Behaviour) -> bool:
    return "content" in behaviour.message or "choices" in behaviour.completion


class JudgeHttp:
    """The listening side, inside a running event loop."""

    def __init__(self, script: Script, log: RequestLog) -> None:
        self._script = script
        self._log = log
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> int:
        """Listen on loopback and return the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._script, self._log, self._connections),
            "127.0.0.1",
            port,
            backlog=512,
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the listening socket and every connection."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.shut()
        slow = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*slow, return_exceptions=True)
        await asyncio.sleep(0)  # lets each connection hear that it was lost
