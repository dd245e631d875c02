"""One investigation in every format: an abstract story, and how each format writes it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.transcripts.chat import BEGAN_AT
from worker.client.transcripts import (
    AGENT_TOOLS,
    Transcript,
    read_anthropic_messages,
    read_langchain_messages,
    read_openai_messages,
    read_openai_responses,
    read_otel_spans,
)

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A call; ``arguments`` is a text where they are no JSON."""

    call_id: str
    name: str = "bash"
    arguments: Json | str = field(default_factory=lambda: {"command": "df -h"})

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Came:
    """A result."""

    call_id: str
    text: str = "/dev/sda1 100%"
    failed: bool = False


@dataclass(frozen=True)
class Step:
    """One answer of the model: a text, calls, or both."""

    text: str = ""
    calls: tuple[Asked, ...] = ()


Event = str | Step | tuple[Came, ...]
"""A question, an answer of the model, or results that came together."""

STORY: tuple[Event, ...] = (
    "Why is checkout slow?",
    Step("I look at the disk.", (Asked("c1"), Asked("c2", arguments={"command": "free -m"}))),
    (Came("c2", ""), Came("c1")),
    Step("", (Asked("c3", "TodoWrite", {"todos": []}),)),
    (Came("c3", "ok"),),
    Step("", (Asked("c4", arguments={"command": "ls /x"}),)),
    (Came("c4", "ls: cannot open /x", failed=True),),
    Step("The disk is full."),
)


def openai_chat(story: tuple[Event, ...]) -> list[Json]:
    messages: list[Json] = []
    for event in story:
        if isinstance(event, str):
            messages.append({"role": "user", "content": event})
        elif isinstance(event, Step):
            calls = [
                {
                    "id": one.call_id,
                    "type": "function",
                    "function": {"name": one.name, "arguments": one.text},
                }
                for one in event.calls
            ]
            messages.append(
                {"role": "assistant", "content": event.text or None, "tool_calls": calls or None}
            )
        else:
            messages += [
                {
                    "role": "tool",
                    "tool_call_id": one.call_id,
                    "content": f"Error: {one.text}" if one.failed else one.text,
                }
                for one in event
            ]
    return messages


def openai_responses(story: tuple[Event, ...]) -> list[Json]:
    items: list[Json] = []
    for event in story:
        if isinstance(event, str):
            items.append({"role": "user", "content": [{"type": "input_text", "text": event}]})
        elif isinstance(event, Step):
            items.append({"type": "reasoning", "id": "rs_1", "summary": []})
            if event.text:
                part = {"type": "output_text", "text": event.text, "annotations": []}
                items.append({"type": "message", "role": "assistant", "content": [part]})
            items += [
                {
                    "type": "function_call",
                    "id": f"fc_{one.call_id}",
                    "call_id": one.call_id,
                    "name": one.name,
                    "arguments": one.text,
                }
                for one in event.calls
            ]
        else:
            items += [
                {
                    "type": "function_call_output",
                    "call_id": one.call_id,
                    "output": f"Error: {one.text}" if one.failed else one.text,
                }
                for one in event
            ]
    return items


def anthropic(story: tuple[Event, ...]) -> list[Json]:
    messages: list[Json] = []
    for event in story:
        if isinstance(event, str):
            messages.append({"role": "user", "content": event})
        elif isinstance(event, Step):
            blocks: list[Json] = [{"type": "thinking", "thinking": "hm", "signature": "x"}]
            if event.text:
                blocks.append({"type": "text", "text": event.text})
            blocks += [
                {"type": "tool_use", "id": one.call_id, "name": one.name, "input": one.arguments}
                for one in event.calls
            ]
            messages.append({"role": "assistant", "content": blocks})
        else:
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": one.call_id,
                    "content": [{"type": "text", "text": one.text}],
                    **({"is_error": True} if one.failed else {}),
                }
                for one in event
            ]
            messages.append({"role": "user", "content": results})
    return messages


def langchain(story: tuple[Event, ...]) -> list[Json]:
    messages: list[Json] = []
    for event in story:
        if isinstance(event, str):
            messages.append({"type": "human", "data": {"content": event}})
        elif isinstance(event, Step):
            parsed = [one for one in event.calls if isinstance(one.arguments, dict)]
            broken = [one for one in event.calls if isinstance(one.arguments, str)]
            fields = {
                "content": event.text,
                "tool_calls": [
                    {"name": one.name, "args": one.arguments, "id": one.call_id} for one in parsed
                ],
                "invalid_tool_calls": [
                    {"name": one.name, "args": one.arguments, "id": one.call_id, "error": "x"}
                    for one in broken
                ],
            }
            messages.append({"type": "ai", **fields})
        else:
            messages += [
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "messages", "ToolMessage"],
                    "kwargs": {
                        "content": one.text,
                        "tool_call_id": one.call_id,
                        "status": "error" if one.failed else "success",
                    },
                }
                for one in event
            ]
    return messages


def attribute(key: str, value: str) -> Json:
    return {"key": key, "value": {"stringValue": value}}


def span(number: int, start: int, end: int | None, *attributes: Json, **more: Any) -> Json:
    """A span that starts and ends so many milliseconds after BEGAN_AT."""
    began = int(BEGAN_AT.timestamp() * 1000)
    return {
        "traceId": "0" * 31 + "1",
        "spanId": f"{number:016x}",
        "name": "span",
        "startTimeUnixNano": str((began + start) * 10**6),
        **({} if end is None else {"endTimeUnixNano": str((began + end) * 10**6)}),
        "attributes": list(attributes),
        **more,
    }


def export(*spans: Json) -> Json:
    scope = {"scope": {}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]}


def otel(story: tuple[Event, ...]) -> Json:
    """A span for each step and call; a call without a result has no end."""
    spans: list[Json] = []
    came = {one.call_id: one for event in story if isinstance(event, tuple) for one in event}
    operation = "gen_ai.operation.name"
    asked = ""
    at = 0
    for event in story:
        if isinstance(event, str):
            said = {"role": "user", "parts": [{"type": "text", "content": event}]}
            asked = json.dumps([said])
        elif isinstance(event, Step):
            at += 10
            answer = {"role": "assistant", "parts": [{"type": "text", "content": event.text}]}
            spans.append(
                span(
                    len(spans) + 1,
                    at,
                    at + 5,
                    attribute(operation, "chat"),
                    attribute("gen_ai.input.messages", asked),
                    attribute("gen_ai.output.messages", json.dumps([answer])),
                )
            )
            for one in event.calls:
                at += 10
                result = came.get(one.call_id)
                attributes = [
                    attribute(operation, "execute_tool"),
                    attribute("gen_ai.tool.name", one.name),
                    attribute("gen_ai.tool.call.id", one.call_id),
                    attribute("gen_ai.tool.call.arguments", one.text),
                ]
                if result is not None:
                    attributes.append(attribute("gen_ai.tool.call.result", result.text))
                    if result.failed:
                        attributes.append(attribute("error.type", "OSError"))
                end = None if result is None else at + 7
                spans.append(span(len(spans) + 1, at, end, *attributes))
    return export(*reversed(spans))


def _reader(function: Callable[..., Transcript]) -> Callable[[Any], Transcript]:
    def read(data: Any) -> Transcript:
        return function(
            data, run_id="run-1", session_id="s-1", began_at=BEGAN_AT, tools=AGENT_TOOLS
        )

    return read


def _read_otel(data: Any) -> Transcript:
    return read_otel_spans(data, run_id="run-1", session_id="s-1")


FORMATS: dict[str, tuple[Callable[[tuple[Event, ...]], Any], Callable[[Any], Transcript]]] = {
    "openai-chat": (openai_chat, _reader(read_openai_messages)),
    "openai-responses": (openai_responses, _reader(read_openai_responses)),
    "anthropic": (anthropic, _reader(read_anthropic_messages)),
    "langchain": (langchain, _reader(read_langchain_messages)),
    "otel": (otel, _read_otel),
}


def read_story(name: str, *story: Event) -> Transcript:
    write, read = FORMATS[name]
    return read(json.loads(json.dumps(write(story))))
