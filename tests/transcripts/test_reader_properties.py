"""The reader over any input: it reads or refuses, and loses no call."""

import json
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.client.transcripts import TranscriptError, read_openai_messages
from worker.client.transcripts.results import output_of

BEGAN_AT = datetime(2026, 1, 1, tzinfo=UTC)

texts = st.text(st.characters(codec=None), max_size=20)
scalars = st.none() | st.booleans() | st.integers() | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
others = ("content", "tool_calls", "tool_call_id", "name")
roles = st.sampled_from(["system", "user", "assistant", "tool"])
odd_messages = st.fixed_dictionaries(
    {"role": roles | anything}, optional=dict.fromkeys(others, anything)
)


@pytest.mark.scenario("transcripts", "Any JSON at all")
@given(st.lists(odd_messages | anything, max_size=6) | anything)
def test_any_json_is_read_or_refused(messages: object) -> None:
    """No input ends in another error than a refusal."""
    with suppress(TranscriptError):
        read_openai_messages(messages, run_id="r", session_id="s", began_at=BEGAN_AT)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[dict[str, Any]], int, int]:
    """A well-formed conversation with the numbers of its evidence and helper calls."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why?"}]
    evidence = helpers = 0
    for step, names in enumerate(
        draw(st.lists(st.lists(st.sampled_from(["run_bash_command", "TodoWrite", "other"]))))
    ):
        ids = [f"c{step}-{index}" for index in range(len(names))]
        messages.append(
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": call_id, "function": {"name": name, "arguments": draw(texts)}}
                    for call_id, name in zip(ids, names, strict=True)
                ],
            }
        )
        for call_id in draw(st.permutations(ids)):
            if draw(st.booleans()):
                content = draw(st.text(max_size=20))
                messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
        helpers += names.count("TodoWrite")
        evidence += len(names) - names.count("TodoWrite")
    return messages, evidence, helpers


@given(conversations())
def test_every_call_is_a_record_or_a_helper(
    conversation: tuple[list[dict[str, Any]], int, int],
) -> None:
    """Whatever the arguments and results hold, no call is lost and none is counted twice."""
    messages, evidence, helpers = conversation
    transcript = read_openai_messages(messages, run_id="r", session_id="s", began_at=BEGAN_AT)
    assert (transcript.evidence_calls, transcript.helper_calls) == (evidence, helpers)
    starts = [record.started_at for record in transcript.records]
    assert starts == sorted(set(starts))


@given(st.text(), st.text())
def test_an_output_is_only_ever_cut_at_its_start(text: str, command: str) -> None:
    """What is recorded is always the exact end of what came back."""
    assert text.endswith(output_of(text, {"command": command}, command))


def test_the_reader_needs_neither_celery_nor_openai() -> None:
    """An agent team imports the reader without the worker's engine or a model's client."""
    script = (
        "import sys, json, worker.client.transcripts;"
        "unwanted = ('celery', 'openai', 'httpx2');"
        "print(json.dumps([name for name in unwanted if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert json.loads(done.stdout) == []
