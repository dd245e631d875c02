"""The recorder: what an agent puts around its tools, so that their results can be cited.

    recorder = Recorder.connect(redis_url, run_id="run-1", session_id="session-1")

    @recorder.tool("run_command", request=lambda command: {"command": command, "host": "web-1"},
                   outcome=lambda done: command_output(done.returncode, done.stdout, done.stderr))
    def run(command): ...

    with recorder.call("query_logs", {"source": "gateway", ...}) as call:
        lines = search(...)
        call.ended(log_matches(lines))

What a tool returns or raises passes through untouched. Every call leaves a record: one that
raised, timed out or was cancelled is an ERROR. Recording never raises into the tool and
never holds it up longer than the courier's bound; a record that cannot be written is absent,
and what cites it fails closed.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

from pydantic import TypeAdapter

from contracts.base import RunId
from contracts.messages import ProgressSnapshot
from worker.client.invocations import InvocationWriter, Uncited, quick_client
from worker.client.recorder_call import Ledger, RecordedCall
from worker.client.recorder_findings import Outcome
from worker.client.recorder_record import CallRecord
from worker.client.recorder_store import BOUND, PAUSE, Courier, RecordStore
from worker.guards.tools import BUILT_IN, AnyProjection

P = ParamSpec("P")
R = TypeVar("R")

_MOST_PROGRESS = 1000
_RUN_ID: TypeAdapter[str] = TypeAdapter(RunId)

_answered: ContextVar[str | None] = ContextVar("release_stage_tool_call_id", default=None)
"""The id that the next call is recorded under."""


class Recorder:
    """Records the tool calls of one run; safe from any thread and any task."""

    def __init__(
        self,
        store: RecordStore,
        *,
        run_id: str,
        session_id: str,
        tools: Mapping[str, AnyProjection] = BUILT_IN,
        courier: Courier | None = None,
    ) -> None:
        """Raises pydantic.ValidationError for a run id outside the contract."""
        self.run_id = _RUN_ID.validate_python(run_id)
        self.session_id = session_id
        self._tools = tools
        self._courier = courier or Courier()
        self._ledger = Ledger(store, self._courier)

    @classmethod
    def connect(
        cls,
        redis_url: str,
        *,
        run_id: str,
        session_id: str,
        prefix: str = "release:",
        tools: Mapping[str, AnyProjection] = BUILT_IN,
        bound: float = BOUND,
        pause: float = PAUSE,
    ) -> "Recorder":
        """A recorder that writes to the stage's Redis.

        ``bound`` is how many seconds a write may hold up a tool, ``pause`` how long
        nothing is tried after a failure. ``tools`` are the projections by tool name; see
        ``worker.guards.tools.registered.all_tools`` for those of installed packages.
        """
        return cls(
            InvocationWriter(quick_client(redis_url, bound), prefix=prefix),
            run_id=run_id,
            session_id=session_id,
            tools=tools,
            courier=Courier(bound=bound, pause=pause),
        )

    def call(
        self, tool_name: str, request: object, *, tool_call_id: str | None = None
    ) -> RecordedCall:
        """A context manager, ``with`` or ``async with``, around one call of a tool.

        ``tool_call_id`` is the model's id of the call, which the draft cites; without it
        one is made up. An id names one call of a run: a second record of it is refused.
        """
        id_ = tool_call_id or _answered.get() or f"call-{uuid4().hex}"
        _answered.set(None)

        def begin() -> CallRecord:
            return CallRecord(
                run_id=self.run_id,
                session_id=self.session_id,
                tool_call_id=id_,
                tool_name=tool_name,
                projection=self._tools.get(tool_name),
                request=request,
            )

        return RecordedCall(self._ledger, begin, id_)

    def tool(
        self,
        tool_name: str,
        *,
        request: Callable[..., Mapping[str, Any]],
        outcome: Callable[[Any], Outcome],
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a tool, sync or async.

        ``request`` makes the recorded request from the tool's arguments, ``outcome`` a
        finding or a failure from what it returned. Of a method, ``request`` is given
        ``self`` too. Raises TypeError for a generator.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
                raise TypeError("a generator has no one result: record the call around its use")
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def recorded_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                    asked = _asked(request, args, kwargs)
                    async with self.call(tool_name, asked) as call:
                        result = await function(*args, **kwargs)
                        call.returned(result, outcome)
                    return result

                return cast(Callable[P, R], recorded_async)

            @functools.wraps(function)
            def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
                with self.call(tool_name, _asked(request, args, kwargs)) as call:
                    result = function(*args, **kwargs)
                    call.returned(result, outcome)
                return result

            return recorded

        return decorate

    @contextmanager
    def answering(self, tool_call_id: str) -> Iterator[None]:
        """Give the next call made inside this block, by a decorated tool too, this id."""
        token = _answered.set(tool_call_id)
        try:
            yield
        finally:
            _answered.reset(token)

    def model_step(self, by: int = 1) -> None:
        """Count an answer of the agent's model."""
        self._count("model_steps", by)

    def helper_call(self, by: int = 1) -> None:
        """Count a call that only helps the agent, such as its task list: it is no evidence."""
        self._count("helper_calls", by)

    def progress(self) -> ProgressSnapshot:
        """The completed calls whose records are stored; the last thousand of them."""
        ids = tuple(self._ledger.completed)[-_MOST_PROGRESS:]
        return ProgressSnapshot(completed_tool_call_ids=ids)

    def close(self) -> None:
        self._courier.close()

    def _count(self, what: Uncited, by: int) -> None:
        self._ledger.count(self.session_id, self.run_id, what, by)


def _asked(request: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return request(*args, **kwargs)
    except Exception:  # noqa: BLE001 - becomes REQUEST_INVALID; the tool runs all the same
        return None
