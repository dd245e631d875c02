"""Hypothesis strategies: valid messages of every kind, odd texts included."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeVar

from hypothesis import strategies as st

from contracts.claims import AgentPrompts, ComposedAnswer, GapNote, PromptRef, Statement
from contracts.draft import ActionItem, Analysis, Conclusion, DiagnosisDraft
from contracts.envelope import Incoming, Outgoing
from contracts.fallback import COMPOSED, FallbackType, SafeFallback, VerifiedSource
from contracts.messages import (
    AbortReason,
    Budget,
    CancelRun,
    ControlledStop,
    DraftReady,
    DraftRejected,
    EvidenceRequested,
    ExecutorOutputReady,
    ProgressSnapshot,
    ReleaseAborted,
    ReleaseFallback,
    ReleaseSucceeded,
    RequestedEvidence,
    StopReason,
)
from contracts.snapshot import AnalysisEvidence, Snapshot, VerifiedEvidence

T = TypeVar("T")

texts = st.text(max_size=20)
run_ids = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
reply_queues = st.from_regex(r"\Arelease\.reply\.[a-z0-9._-]{1,128}\Z")
source_names = st.from_regex(r"\A[A-Za-z0-9](/?[A-Za-z0-9._:@-]){0,20}\Z")
call_ids = st.text(min_size=1, max_size=20)
counts = st.integers(min_value=0, max_value=10**9)
moments = st.datetimes(
    min_value=datetime(2000, 1, 1),  # noqa: DTZ001  # the zone is drawn apart
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=8)), timezone(-timedelta(hours=3.5))]),
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def _few(items: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, max_size=3).map(tuple)


analyses = st.builds(
    Analysis, analysis_id=texts, kind=texts, text=texts, tool_call_ids=_few(call_ids)
)
action_items = st.builds(
    ActionItem,
    text=texts,
    based_on_analysis_ids=_few(texts),
    requires_human_confirmation=st.booleans(),
)
drafts = st.builds(
    DiagnosisDraft,
    conclusion=st.none() | st.builds(Conclusion, text=texts, based_on_analysis_ids=_few(texts)),
    analyses=_few(analyses),
    action_plan=_few(action_items),
    recommendations=_few(action_items),
    limitations=_few(texts),
    missing_context=_few(texts),
)
snapshots = st.builds(
    Snapshot,
    analyses=_few(
        st.builds(
            AnalysisEvidence,
            analysis_id=texts,
            kind=texts,
            text=texts,
            evidence=_few(
                st.builds(
                    VerifiedEvidence,
                    tool=texts,
                    source=source_names,
                    observed_at=moments,
                    scope=st.dictionaries(texts, json_values, max_size=3),
                    found=st.booleans(),
                    excerpt=st.none() | texts,
                    values=json_values,
                )
            ),
        )
    ),
)
sources = st.builds(VerifiedSource, tool=texts, source=source_names, observed_at=moments)


def _fallbacks(types: Iterable[FallbackType]) -> st.SearchStrategy[SafeFallback]:
    return st.builds(
        SafeFallback,
        type=st.sampled_from(sorted(types)),
        locale=st.sampled_from(["en", "zh-CN"]),
        title=texts,
        message=texts,
        observed_facts=_few(texts),
        verified_sources=_few(sources),
    )


statements = st.builds(
    Statement, label=texts, text=texts, critical=st.booleans(), sources=_few(sources)
)
answers = st.builds(
    ComposedAnswer,
    locale=st.sampled_from(["en", "zh-CN"]),
    title=texts,
    message=texts,
    confirmed=_few(statements),
    possible=_few(statements),
    gaps=_few(st.builds(GapNote, tool=st.none() | texts, critical=st.booleans(), text=texts)),
    bare=st.booleans(),
)
prompts = st.builds(PromptRef, name=source_names, version=source_names)
messages: st.SearchStrategy[Incoming | Outgoing] = st.one_of(
    st.builds(
        DraftReady,
        run_id=run_ids,
        session_id=texts,
        query=texts,
        draft=json_values,
        progress=st.builds(ProgressSnapshot, completed_tool_call_ids=_few(call_ids)),
        stop=st.none() | st.builds(ControlledStop, reason=st.sampled_from(StopReason)),
        budget=st.builds(Budget, model_calls=st.none() | counts, tokens=st.none() | counts),
        deadline=st.none() | moments,
        locale=st.none() | texts,
        reply_to=st.none() | reply_queues,
    ),
    st.builds(
        ExecutorOutputReady,
        run_id=run_ids,
        session_id=texts,
        round=st.integers(0, 1),
        query=texts,
        output=json_values,
        prompts=st.builds(AgentPrompts, planner=prompts, executor=prompts),
        budget=st.builds(Budget, model_calls=st.none() | counts, tokens=st.none() | counts),
        deadline=st.none() | moments,
        locale=st.none() | texts,
        reply_to=st.none() | reply_queues,
    ),
    st.builds(CancelRun, run_id=run_ids),
    st.builds(
        ReleaseSucceeded,
        run_id=run_ids,
        session_id=texts,
        round=counts,
        draft=drafts,
        snapshot=snapshots,
        repaired=st.booleans(),
    ),
    st.builds(ReleaseSucceeded, run_id=run_ids, session_id=texts, round=counts, answer=answers),
    st.builds(
        ReleaseFallback,
        run_id=run_ids,
        session_id=texts,
        round=counts,
        fallback=_fallbacks(set(FallbackType) - COMPOSED),
    ),
    st.builds(
        ReleaseFallback,
        run_id=run_ids,
        session_id=texts,
        round=counts,
        fallback=_fallbacks(COMPOSED),
        answer=answers,
    ),
    st.builds(
        ReleaseAborted,
        run_id=run_ids,
        session_id=texts,
        round=counts,
        reason=st.sampled_from(AbortReason),
    ),
    st.builds(DraftRejected, run_id=run_ids, reasons=_few(texts)),
    st.builds(
        EvidenceRequested,
        run_id=run_ids,
        session_id=texts,
        round=counts,
        gaps=st.lists(
            st.builds(RequestedEvidence, claim_id=texts, tool_name=texts, missing=texts),
            min_size=1,
            max_size=3,
        ).map(tuple),
    ),
)
