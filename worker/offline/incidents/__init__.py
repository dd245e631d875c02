"""Recorded incidents: what tools really returned, and drafts about it with their endings.

Each folder beside this file is one incident: ``recipe.py`` records it again,
``records.json``, ``drafts.json`` and, where there is one, ``claims.json`` are what
this module reads, ``README.md`` tells what happened. Nothing here starts a program.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal

from pydantic import JsonValue, TypeAdapter

from contracts.base import Contract
from contracts.claims import AgentPrompts, PromptRef
from contracts.evidence import InvocationRecord
from contracts.fallback import FallbackType, Locale
from contracts.messages import (
    AbortReason,
    Budget,
    ControlledStop,
    DraftReady,
    ExecutorOutputReady,
    ProgressSnapshot,
)


class Ending(Contract):
    """What a run must end with: the message's name, its type code if it has one, and repair."""

    type: Literal["ReleaseSucceeded", "ReleaseFallback", "ReleaseAborted"]
    code: FallbackType | AbortReason | None = None
    repaired: bool = False


class JudgeNeed(StrEnum):
    """How the judge must behave for a case; the judge's own rules decide in RULES.

    The judge sees no run id. A case that needs another behaviour has a query of its
    own, by which its calls can be told.
    """

    RULES = "rules"
    DOWN = "down"
    """Every call about the case's query fails."""
    SLOW = "slow"
    """No call about it answers before the run is cancelled or out of time."""


class DraftCase(Contract):
    """One draft and all that its run needs.

    - ``draft``: as in ``DraftReady``, any JSON value or a string that should hold JSON.
    - ``expected``: the ending with evidence repair; ``expected_without_repair`` if that differs.
    - ``violation``: the code that the first evidence check must find, if it must find one.
    - ``foreign``: calls that were made in another run and must be stored there only.
    - ``progress``: the completed calls; None stands for all that ended in this run.
    - ``deadline_s``: seconds from publishing to the run's deadline.
    - ``cancel``: the run is to be cancelled once it has been published.
    """

    name: str
    explanation: str
    query: str
    draft: JsonValue
    expected: Ending
    expected_without_repair: Ending | None = None
    violation: str | None = None
    judge: JudgeNeed = JudgeNeed.RULES
    locale: Locale = "en"
    foreign: tuple[str, ...] = ()
    progress: tuple[str, ...] | None = None
    stop: ControlledStop | None = None
    budget: Budget = Budget()
    deadline_s: int | None = None
    cancel: bool = False

    def ending(self, *, repair: bool) -> Ending:
        """The ending to expect of a stage with or without evidence repair."""
        return self.expected if repair else self.expected_without_repair or self.expected


class ClaimsCase(Contract):
    """One document of claims and all that its run needs.

    - ``output``: as in ``ExecutorOutputReady``; ``answer`` is that of round 1, if evidence
      must be asked for.
    - ``late``: calls that are made, and stored, only when evidence was asked for.
    - ``expected``: the ending, of round 1 if there is an ``answer``.
    """

    name: str
    explanation: str
    query: str
    output: JsonValue
    answer: JsonValue = None
    expected: Ending
    late: tuple[str, ...] = ()
    judge: JudgeNeed = JudgeNeed.RULES
    locale: Locale = "en"


PROMPTS = AgentPrompts(
    planner=PromptRef(name="demo_planner", version="1"),
    executor=PromptRef(name="demo_executor", version="1"),
)
"""The demo's agent has none; a real one names its own."""


@dataclass(frozen=True)
class Incident:
    """One recorded incident. ``recorded`` holds placeholders for run and session."""

    name: str
    title: str
    recorded: tuple[InvocationRecord, ...]
    cases: tuple[DraftCase, ...]
    claims: tuple[ClaimsCase, ...]

    def records(
        self, case: DraftCase, run_id: str, session_id: str
    ) -> tuple[InvocationRecord, ...]:
        """The run's own records, in the order of the calls."""
        own = [one for one in self.recorded if one.tool_call_id not in case.foreign]
        return _rebased(own, run_id, session_id)

    def foreign_records(
        self, case: DraftCase, other_run_id: str, session_id: str
    ) -> tuple[InvocationRecord, ...]:
        """The records that belong to another run of the same session; mostly none."""
        others = [one for one in self.recorded if one.tool_call_id in case.foreign]
        return _rebased(others, other_run_id, session_id)

    def message(
        self, case: DraftCase, run_id: str, session_id: str, published: datetime
    ) -> DraftReady:
        """The message that opens the run; ``published`` is its envelope's time."""
        progress = case.progress
        if progress is None:
            own = self.records(case, run_id, session_id)
            progress = tuple(one.tool_call_id for one in own if one.completed_at is not None)
        return DraftReady(
            run_id=run_id,
            session_id=session_id,
            query=case.query,
            draft=case.draft,
            progress=ProgressSnapshot(completed_tool_call_ids=progress),
            stop=case.stop,
            budget=case.budget,
            deadline=published + timedelta(seconds=case.deadline_s) if case.deadline_s else None,
            locale=case.locale,
        )

    def claim_records(
        self, case: ClaimsCase, run_id: str, session_id: str, *, late: bool
    ) -> tuple[InvocationRecord, ...]:
        """The records of a run of claims: those of before its request for evidence, or after."""
        chosen = [one for one in self.recorded if (one.tool_call_id in case.late) is late]
        return _rebased(chosen, run_id, session_id)

    def claims_message(
        self, case: ClaimsCase, run_id: str, session_id: str, *, round_: int = 0
    ) -> ExecutorOutputReady:
        """The message that opens a run of claims, or answers its request for evidence."""
        return ExecutorOutputReady(
            run_id=run_id,
            session_id=session_id,
            round=round_,
            query=case.query,
            output=case.answer if round_ else case.output,
            prompts=PROMPTS,
            locale=case.locale,
        )


class _Drafts(Contract):
    title: str
    cases: tuple[DraftCase, ...]


class _Claims(Contract):
    cases: tuple[ClaimsCase, ...] = ()


_RECORDS = TypeAdapter(tuple[InvocationRecord, ...])


def load() -> tuple[Incident, ...]:
    """All incidents, by name. Raises pydantic.ValidationError if a file is off its shape."""
    folders = [
        folder
        for folder in resources.files(__name__).iterdir()
        if folder.joinpath("drafts.json").is_file()
    ]
    return tuple(_incident(folder) for folder in sorted(folders, key=lambda folder: folder.name))


def _incident(folder: Traversable) -> Incident:
    drafts = _Drafts.model_validate_json(folder.joinpath("drafts.json").read_bytes())
    claims = folder.joinpath("claims.json")
    return Incident(
        name=folder.name,
        title=drafts.title,
        recorded=_RECORDS.validate_json(folder.joinpath("records.json").read_bytes()),
        cases=drafts.cases,
        claims=_Claims.model_validate_json(claims.read_bytes()).cases if claims.is_file() else (),
    )


def _rebased(
    records: list[InvocationRecord], run_id: str, session_id: str
) -> tuple[InvocationRecord, ...]:
    update = {"run_id": run_id, "session_id": session_id}
    return tuple(record.model_copy(update=update) for record in records)
