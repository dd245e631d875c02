"""The model port over any OpenAI-compatible endpoint.

Calls go through ``client.post`` with bytes of our own and an unread response: the
body is read under a byte limit and parsed by ``chat_completion``, and that costs
half the CPU of ``chat.completions.create``. The SDK never retries. Its own
timeouts are off, since they count per chunk; ``CallLoop`` holds the total.
"""

import asyncio
import ipaddress
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
from openai import AsyncOpenAI, AsyncStream

from worker.adapters.call_loop import CallLoop, Cancellations
from worker.adapters.chat_completion import (
    ResponseFormat,
    TokenLimitField,
    answer_of_body,
    body_limit,
    failure_of_status,
    request_body,
)
from worker.ports import (
    ModelAnswer,
    ModelCall,
    ModelFailure,
    ModelOffSchema,
    ModelTimeout,
    ModelTransport,
    ModelUnparseable,
)

# Below the idle limit of common servers (5 s), so that a kept connection is not found closed.
_KEEPALIVE_SECONDS = 4.0
_HEADERS = {
    "Content-Type": "application/json",
    # A compressed body could grow without bound after the limit has counted it.
    "Accept-Encoding": "identity",
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenAISettings:
    """Where and how to ask.

    ``base_url`` ends before ``/chat/completions``. ``temperature`` None leaves it out
    and ``token_limit_field`` names the output limit, since reasoning models refuse
    the usual ones. ``max_connections`` bounds the open calls of one process.

    Raises ValueError, without the value, for an address or a key that cannot work.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    response_format: ResponseFormat = "json_schema"
    temperature: float | None = 0.0
    token_limit_field: TokenLimitField = "max_tokens"  # noqa: S105 - no secret: a field name
    max_connections: int = 256

    def __post_init__(self) -> None:
        try:
            url = httpx2.URL(self.base_url)
        except httpx2.InvalidURL:
            raise ValueError("the model's base_url is no URL") from None
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError("the model's base_url must be http:// or https:// and name a host")
        if not (self.api_key and self.api_key.isascii() and self.api_key.isprintable()):
            raise ValueError("the model's api_key must be printable ASCII and not empty")


class OpenAIModel:
    """The port ``Model``. Safe from any thread, and in a child forked after it was made."""

    def __init__(
        self, settings: OpenAISettings, cancellations: Cancellations | None = None
    ) -> None:
        self._settings = settings
        self._calls = CallLoop(cancellations)
        self._connected: tuple[asyncio.AbstractEventLoop, AsyncOpenAI] | None = None
        for name in ("httpx2", "httpcore2", "openai"):
            # At INFO they log addresses, at DEBUG more.
            logging.getLogger(name).setLevel(logging.WARNING)

    def start(self) -> None:
        """Start listening for cancelled runs; call it when a worker process begins."""
        self._calls.start()

    def ask(self, call: ModelCall) -> ModelAnswer:
        """Ask once, within ``call.timeout`` seconds in all; raises ModelFailure."""
        body = request_body(
            call,
            model=self._settings.model,
            response_format=self._settings.response_format,
            temperature=self._settings.temperature,
            token_limit_field=self._settings.token_limit_field,
        )
        try:
            outcome = self._calls.run(call.run_id, call.timeout, lambda: self._converse(call, body))
        except ModelTimeout:
            logger.warning("a model call ran out of time run_id=%s", call.run_id)
            raise
        if isinstance(outcome, ModelFailure):
            raise outcome
        return outcome

    def cancel(self, run_id: str) -> None:
        """Close every open call of the run at once; they raise ModelCancelled."""
        self._calls.cancel(run_id)

    def close(self) -> None:
        """Cancel what is open and close all connections."""
        self._calls.close(self._disconnect)

    async def _converse(self, call: ModelCall, body: bytes) -> ModelAnswer | ModelFailure:
        """Failures are returned, so that no provider's error hangs on them as a context."""
        try:
            # "Stream" is how the SDK hands over a response whose body is still unread.
            unread = await self._client().post(
                "/chat/completions",
                cast_to=object,
                content=body,
                options={"headers": _HEADERS, "max_retries": 0, "timeout": None},
                stream=True,
                stream_cls=AsyncStream[object],
            )
            try:
                return await _read(unread.response, call)
            finally:
                await unread.response.aclose()
        except _Answered as answered:
            # A wrong address (404) and a wrong key (401) show nowhere else.
            logger.warning(
                "the model's server refused run_id=%s status=%d", call.run_id, answered.status
            )
            return answered.failure
        except Exception as error:  # noqa: BLE001 - whatever broke, there is no answer
            logger.warning(
                "a model call broke off run_id=%s error=%s", call.run_id, type(error).__name__
            )
            return ModelTransport()

    def _client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        if self._connected is None or self._connected[0] is not loop:
            self._connected = (loop, _connect(self._settings))
        return self._connected[1]

    async def _disconnect(self) -> None:
        if self._connected is not None:
            await self._connected[1].close()
            self._connected = None


class _Answered(Exception):
    """The status tells the outcome; raised before the SDK would read an error's body whole."""

    def __init__(self, status: int, failure: ModelFailure) -> None:
        self.status = status
        self.failure = failure


async def _stop_at_errors(response: httpx2.Response) -> None:
    failure = failure_of_status(
        response.status_code, response.headers.get("retry-after"), datetime.now(UTC)
    )
    if failure is not None:
        raise _Answered(response.status_code, failure)


async def _read(response: httpx2.Response, call: ModelCall) -> ModelAnswer | ModelFailure:
    if response.headers.get("content-encoding", "identity") != "identity":
        return ModelUnparseable()
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > body_limit(call):
            return ModelOffSchema()
    return answer_of_body(bytes(body), call.max_output_bytes)


def _connect(settings: OpenAISettings) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url=settings.base_url,
        api_key=settings.api_key,
        max_retries=0,
        timeout=None,
        http_client=httpx2.AsyncClient(
            timeout=None,
            trust_env=not _is_loopback(httpx2.URL(settings.base_url).host),
            follow_redirects=False,
            # No server may tie one run's call to another's.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx2.Limits(
                max_connections=settings.max_connections,
                max_keepalive_connections=settings.max_connections,
                keepalive_expiry=_KEEPALIVE_SECONDS,
            ),
            event_hooks={"response": [_stop_at_errors]},
        ),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
