"""What a run's ending says to the outside, written from the record and verified blobs only."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter

from contracts import channels
from contracts.draft import DiagnosisDraft
from contracts.envelope import wrap
from contracts.fallback import COMPOSED, FallbackType, Locale, VerifiedSource
from contracts.messages import (
    AbortReason,
    EvidenceRequested,
    ReleaseAborted,
    ReleaseFallback,
    ReleaseSucceeded,
)
from contracts.snapshot import Snapshot
from worker.guards.facts import ObservedFact
from worker.guards.fallback import build_fallback, choose_locale
from worker.ports import OutgoingMessage
from worker.run.draft_path import was_repaired
from worker.run.state import Ending, EndingKind, Protocol, Run
from worker.run.steps import message_id
from worker.stage.blobs import FACTS, SNAPSHOT, SOURCES, VERIFIED_DRAFT, RoundBlobs
from worker.stage.claims_record import REQUESTED, composed_answer

_SOURCES = TypeAdapter(tuple[VerifiedSource, ...])
_FACTS = TypeAdapter(tuple[ObservedFact, ...])
_WITH_SOURCES = frozenset({FallbackType.SEMANTIC_UNSUPPORTED, FallbackType.SEMANTIC_UNAVAILABLE})


def dump_sources(sources: tuple[VerifiedSource, ...]) -> bytes:
    return _SOURCES.dump_json(sources)


def dump_facts(facts: tuple[ObservedFact, ...]) -> bytes:
    return _FACTS.dump_json(facts)


def asks(before: Run | None, after: Run) -> bool:
    """Tell whether the step from one record to the other asks the agent for evidence."""
    return after.evidence_until is not None and (before is None or before.evidence_until is None)


def blobs_needed(run: Run) -> tuple[str, ...]:
    """The blobs that :func:`render` and the evaluation read."""
    if run.protocol is Protocol.CLAIMS:
        return RoundBlobs(run.round).all()
    if run.ending is None or run.ending.kind is EndingKind.ABORTED:
        return ()
    if run.ending.kind is EndingKind.SUCCEEDED:
        return (VERIFIED_DRAFT, SNAPSHOT)
    return _blobs_of(FallbackType(run.ending.code))


def _blobs_of(type_: FallbackType) -> tuple[str, ...]:
    if type_ in _WITH_SOURCES:
        return (SOURCES,)
    return (FACTS,) if type_ is FallbackType.INSUFFICIENT_EVIDENCE else ()


def render(
    run: Run, blobs: Mapping[str, bytes], default_locale: Locale, *, shadow: bool = False
) -> tuple[OutgoingMessage, ...]:
    """Write what an ended run says, once per destination; or what an open one asks for.

    A stage in ``shadow`` tells its endings to nobody but those who watch it.

    Raises KeyError when a blob of :func:`blobs_needed` is missing: nothing is made up.
    """
    if run.ending is None:
        return (_request(run, blobs),)
    assert run.ended_at is not None
    message = _message(run, run.ending, blobs, default_locale)
    id_ = message_id(run.run_id, message.TYPE, message.round)
    body = wrap(message, message_id=id_, time=datetime.fromtimestamp(run.ended_at, UTC))
    destinations = ("",) if run.reply_to is None else ("", run.reply_to)
    if shadow:
        destinations = (channels.SHADOW,)
    return tuple(
        OutgoingMessage(run.run_id, id_, message.TYPE, body, reply_to) for reply_to in destinations
    )


def _request(run: Run, blobs: Mapping[str, bytes]) -> OutgoingMessage:
    names = RoundBlobs(run.round)
    message = EvidenceRequested(
        run_id=run.run_id,
        session_id=run.session_id,
        round=run.round + 1,
        gaps=REQUESTED.validate_json(blobs[names.requested]),
    )
    id_ = message_id(run.run_id, message.TYPE, message.round)
    asked_at = max(attempt.ended_at or 0.0 for attempt in run.attempts.values())
    body = wrap(message, message_id=id_, time=datetime.fromtimestamp(asked_at, UTC))
    return OutgoingMessage(run.run_id, id_, message.TYPE, body, run.reply_to or channels.REQUESTS)


def _message(
    run: Run, ending: Ending, blobs: Mapping[str, bytes], default_locale: Locale
) -> ReleaseSucceeded | ReleaseFallback | ReleaseAborted:
    common: dict[str, Any] = {
        "run_id": run.run_id,
        "session_id": run.session_id,
        "round": run.round,
    }
    match ending.kind:
        case EndingKind.SUCCEEDED:
            return ReleaseSucceeded(**common, **_released(run, blobs))
        case EndingKind.FALLBACK:
            type_ = FallbackType(ending.code)
            locale = choose_locale(run.locale, default_locale)
            needed = _blobs_of(type_)
            fallback = build_fallback(
                type_,
                locale,
                sources=_SOURCES.validate_json(blobs[SOURCES]) if SOURCES in needed else (),
                facts=_FACTS.validate_json(blobs[FACTS]) if FACTS in needed else (),
            )
            answer: dict[str, Any] = (
                {"answer": composed_answer(run, blobs)} if type_ in COMPOSED else {}
            )
            return ReleaseFallback(**common, fallback=fallback, **answer)
        case EndingKind.ABORTED:
            return ReleaseAborted(**common, reason=AbortReason(ending.code))


def _released(run: Run, blobs: Mapping[str, bytes]) -> dict[str, Any]:
    """What a release carries: the verified draft with its snapshot, or the composed answer."""
    if run.protocol is Protocol.CLAIMS:
        return {"answer": composed_answer(run, blobs)}
    return {
        "draft": DiagnosisDraft.model_validate_json(blobs[VERIFIED_DRAFT]),
        "snapshot": Snapshot.model_validate_json(blobs[SNAPSHOT]),
        "repaired": was_repaired(run),
    }
