"""What a run's ending says to the outside, written from the record and verified blobs only."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import TypeAdapter

from contracts.draft import DiagnosisDraft
from contracts.envelope import wrap
from contracts.fallback import FallbackType, Locale, VerifiedSource
from contracts.messages import AbortReason, ReleaseAborted, ReleaseFallback, ReleaseSucceeded
from contracts.snapshot import Snapshot
from worker.guards.facts import ObservedFact
from worker.guards.fallback import build_fallback, choose_locale
from worker.ports import OutgoingMessage
from worker.run.draft_path import ROUND, was_repaired
from worker.run.state import EndingKind, Run
from worker.run.steps import message_id

VERIFIED_DRAFT = "verified_draft"
"""The draft that passed the evidence check, written in the same commit as its PASSED."""
SNAPSHOT = "snapshot"
SOURCES = "sources"
FACTS = "facts"

_SOURCES = TypeAdapter(tuple[VerifiedSource, ...])
_FACTS = TypeAdapter(tuple[ObservedFact, ...])
_WITH_SOURCES = frozenset({FallbackType.SEMANTIC_UNSUPPORTED, FallbackType.SEMANTIC_UNAVAILABLE})


def dump_sources(sources: tuple[VerifiedSource, ...]) -> bytes:
    return _SOURCES.dump_json(sources)


def dump_facts(facts: tuple[ObservedFact, ...]) -> bytes:
    return _FACTS.dump_json(facts)


def blobs_needed(run: Run) -> tuple[str, ...]:
    """The blobs that :func:`render` reads for this ending."""
    assert run.ending is not None
    match run.ending.kind:
        case EndingKind.SUCCEEDED:
            return (VERIFIED_DRAFT, SNAPSHOT)
        case EndingKind.FALLBACK:
            type_ = FallbackType(run.ending.code)
            if type_ in _WITH_SOURCES:
                return (SOURCES,)
            return (FACTS,) if type_ is FallbackType.INSUFFICIENT_EVIDENCE else ()
        case EndingKind.ABORTED:
            return ()


def render(
    run: Run, blobs: Mapping[str, bytes], default_locale: Locale
) -> tuple[OutgoingMessage, ...]:
    """Write the outgoing message of an ended run, once per destination.

    Raises KeyError when a blob of :func:`blobs_needed` is missing: nothing is made up.
    """
    assert run.ended_at is not None
    message = _message(run, blobs, default_locale)
    id_ = message_id(run.run_id, message.TYPE, message.round)
    body = wrap(message, message_id=id_, time=datetime.fromtimestamp(run.ended_at, UTC))
    destinations = ("",) if run.reply_to is None else ("", run.reply_to)
    return tuple(
        OutgoingMessage(run.run_id, id_, message.TYPE, body, reply_to) for reply_to in destinations
    )


def _message(
    run: Run, blobs: Mapping[str, bytes], default_locale: Locale
) -> ReleaseSucceeded | ReleaseFallback | ReleaseAborted:
    assert run.ending is not None
    match run.ending.kind:
        case EndingKind.SUCCEEDED:
            return ReleaseSucceeded(
                run_id=run.run_id,
                session_id=run.session_id,
                round=ROUND,
                draft=DiagnosisDraft.model_validate_json(blobs[VERIFIED_DRAFT]),
                snapshot=Snapshot.model_validate_json(blobs[SNAPSHOT]),
                repaired=was_repaired(run),
            )
        case EndingKind.FALLBACK:
            needed = blobs_needed(run)
            return ReleaseFallback(
                run_id=run.run_id,
                session_id=run.session_id,
                round=ROUND,
                fallback=build_fallback(
                    FallbackType(run.ending.code),
                    choose_locale(run.locale, default_locale),
                    sources=_SOURCES.validate_json(blobs[SOURCES]) if SOURCES in needed else (),
                    facts=_FACTS.validate_json(blobs[FACTS]) if FACTS in needed else (),
                ),
            )
        case EndingKind.ABORTED:
            return ReleaseAborted(
                run_id=run.run_id,
                session_id=run.session_id,
                round=ROUND,
                reason=AbortReason(run.ending.code),
            )
