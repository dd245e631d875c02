"""No word of content in a fallback, an abort or a log line, whatever the draft and the answers.

The steps run in this process over the ports' fakes, so that many drafts can be tried;
``test_no_leaks`` shows the same of real workers.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from contracts.draft import DiagnosisDraft
from contracts.envelope import wrap
from contracts.messages import Budget, ControlledStop, DraftReady, ProgressSnapshot, StopReason
from contracts.strict_json import parse
from tests.fakes.model import FakeModel
from tests.fakes.records import (
    FakeInbox,
    FakeInvocations,
    FakeOutbox,
    FakeRecords,
    FakeStore,
)
from tests.fakes.sender import FakeDispatcher, FakeSender
from tests.pipeline.marked import MARK
from tests.strategies import RUN_ID, TOOLS, Case, drafts, record, sound_cases, stored
from worker.guards.tools import BUILT_IN
from worker.ports import (
    ModelAnswer,
    ModelFailure,
    ModelOffSchema,
    ModelRefused,
    ModelTimeout,
    Usage,
)
from worker.run.path import next_step
from worker.stage.admit import admit
from worker.stage.engine import Stage
from worker.tasks import USE_CASES

REASON = f"{MARK}-reason"
_CONTENT = (b"upstream", b"maxmemory", b"out of memory", b"http_errors", b"jobs", b"inactive")
_TEXTS = frozenset({"text", "limitations", "missing_context"})


def marked(value: Any, key: str = "") -> Any:
    """Put the mark into every text and every id of a draft, and leave its references whole."""
    if isinstance(value, dict):
        return {name: marked(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [marked(item, key) for item in value]
    if isinstance(value, str) and key in {*_TEXTS, "analysis_id", "based_on_analysis_ids"}:
        return MARK + value
    if isinstance(value, str) and key == "tool_call_ids":
        return value.replace("call-x", f"{MARK}-call-x")
    return value


def marked_records(case: Case) -> dict[str, bytes]:
    """The case's records under their marked ids, marked in what was asked and what was found."""
    found: dict[str, bytes] = {}
    for key, content in case.records.items():
        if content is None:
            continue
        spoken = content
        for word in (b"call-x", *_CONTENT):
            spoken = spoken.replace(word, MARK.encode() + b"-" + word)
        found[marked(key, "tool_call_ids")] = spoken
    return found


@st.composite
def runs(draw: st.DrawFn) -> tuple[DiagnosisDraft | str, dict[str, bytes]]:
    """A marked draft, sound or not or unreadable, and records that may be of its run."""
    if draw(st.integers(0, 3)):
        case = draw(sound_cases())
    else:
        ids = [f"call-x{number:02}x" for number in range(0, 31, 2)]
        kinds = st.tuples(st.sampled_from(TOOLS), st.booleans())
        made = {key: draw(kinds) for key in ids[:4]}
        records: dict[str, bytes | None] = {
            key: stored(record(tool, found=found, tool_call_id=key))
            for key, (tool, found) in made.items()
        }
        case = Case(RUN_ID, draw(drafts()), records)
    document = marked(case.draft.model_dump(mode="json", exclude_unset=True))
    if draw(st.integers(0, 4)) == 0:
        return json.dumps(document)[:-1], marked_records(case)
    return DiagnosisDraft.model_validate_json(json.dumps(document)), marked_records(case)


def answers(draft: DiagnosisDraft | str) -> st.SearchStrategy[Any]:
    """Anything that a model may come back with, marked."""
    repaired = draft if isinstance(draft, str) else draft.model_dump_json()
    texts = [
        json.dumps({"verdict": "SUPPORTED", "reason": REASON}),
        json.dumps({"verdict": "UNSUPPORTED", "reason": REASON}),
        json.dumps({"verdict": MARK, "reason": REASON}),
        f"{MARK} is no JSON",
        repaired,
    ]
    failures: list[ModelFailure] = [ModelTimeout(), ModelOffSchema(), ModelRefused()]
    return st.sampled_from([*texts, *texts[:2], *failures]) | st.just(
        ModelAnswer(texts[0], Usage(11, 7))
    )


@contextmanager
def logged() -> Iterator[list[str]]:
    """Every line that is logged, at any level, by any logger."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, one: logging.LogRecord) -> None:
            lines.append(self.format(one))

    handler, root = Keep(logging.DEBUG), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def to_the_end(stage: Stage, message: bytes) -> str:
    """Take a message in and carry out step by step until its run has ended; returns the ending."""
    admit(stage, message, "test")
    while True:
        run = stage.records.load(RUN_ID).run
        assert run is not None
        step = next_step(run, stage.policy)
        if step is None:
            return str(run.ending)
        USE_CASES[step.step](stage, RUN_ID, step)


@pytest.mark.scenario("release-policy", "Any draft, any ending")
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_ending_but_a_release_holds_content(data: st.DataObject) -> None:
    """Fallbacks, aborts and logs hold no mark; a release holds its draft and no reason."""
    draft, records = data.draw(runs())
    store, sender = FakeStore(), FakeSender()
    invocations = FakeInvocations(store)
    for key, content in records.items():
        invocations.put(RUN_ID, key, content)
    stage = Stage(
        records=FakeRecords(store),
        outbox=FakeOutbox(store),
        inbox=FakeInbox(store),
        invocations=invocations,
        model=FakeModel(data.draw(st.lists(answers(draft), min_size=3, max_size=3))),
        sender=sender,
        dispatcher=FakeDispatcher(),
        tools=BUILT_IN,
    )
    progress = data.draw(st.lists(st.sampled_from(sorted(records)), max_size=3)) if records else []
    stop = data.draw(st.sampled_from([None, None, None, *StopReason]))
    shown = draft if isinstance(draft, str) else draft.model_dump(mode="json", exclude_unset=True)
    ready = DraftReady(
        run_id=RUN_ID,
        session_id="session-1",
        query=f"{MARK}-query",
        draft=shown,
        progress=ProgressSnapshot(completed_tool_call_ids=tuple(progress)),
        stop=None if stop is None else ControlledStop(reason=stop),
        budget=Budget(model_calls=data.draw(st.sampled_from([None, None, None, 0, 1]))),
        locale=data.draw(st.sampled_from(["en", "zh", f"{MARK}-locale"])),
    )
    with logged() as lines:
        ending = to_the_end(stage, wrap(ready, message_id="m-1", time=datetime.now(UTC)))
    event(ending)
    (message,) = sender.sent
    assert parse(message.body)["subject"] == RUN_ID
    if ending == "SUCCEEDED":
        assert REASON.encode() not in message.body
    else:
        assert MARK.encode() not in message.body
    assert not [line for line in lines if MARK in line]
