"""The evidence check: code proves that what the draft cites is real and of this run."""

from pydantic import TypeAdapter

from contracts.draft import DiagnosisDraft
from worker.guards.calls import VerifiedCall
from worker.guards.evidence import (
    EvidenceReport,
    check_evidence,
    cited_ids,
    verified_calls,
    verified_references,
)
from worker.guards.facts import observed_facts
from worker.guards.review import SYSTEM, question
from worker.guards.snapshot import snapshot_bytes
from worker.guards.violations import Violation
from worker.run.events import Answer, Finished
from worker.run.outcomes import AttemptOutcome
from worker.run.state import CheckFacts, Run
from worker.run.steps import StepRef
from worker.stage.blobs import (
    FACTS,
    INPUT,
    QUESTION,
    REPAIRED_DRAFT,
    SNAPSHOT,
    SOURCES,
    VERIFIED_DRAFT,
    violations_blob,
)
from worker.stage.engine import Report, Stage, apply, claim, not_granted, report
from worker.stage.outgoing import dump_facts, dump_sources
from worker.stage.submission import Submission, read_submission

MAX_VIOLATIONS = 1_000
"""Violations of one check that are kept, and told to the repair. All of them are counted."""

_VIOLATIONS = TypeAdapter(tuple[Violation, ...])


def read_violations(blob: bytes) -> tuple[Violation, ...]:
    return _VIOLATIONS.validate_json(blob)


def check(stage: Stage, run_id: str, ref: StepRef) -> Report:
    """Check the draft (attempt 1), or the repaired draft (attempt 2), and record the result."""
    claimed = claim(stage, run_id, ref, read=(INPUT, REPAIRED_DRAFT))
    run = claimed.run
    if claimed.answer is not Answer.GRANTED or run is None:
        return not_granted(claimed, ref)
    submission = read_submission(claimed.stored.blobs[INPUT])
    draft = submission.draft
    if ref.attempt > 1:
        draft = DiagnosisDraft.model_validate_json(claimed.stored.blobs[REPAIRED_DRAFT])
    if draft is None or submission.stopped or draft.conclusion is None:
        event, blobs = _without_conclusion(stage, run, ref, submission, draft)
    else:
        event, blobs = _with_conclusion(stage, run, ref, submission, draft)
    return report(
        apply(stage, run_id, event, write=blobs, known=claimed.stored), event.outcome.value
    )


def _with_conclusion(
    stage: Stage, run: Run, ref: StepRef, submission: Submission, draft: DiagnosisDraft
) -> tuple[Finished, dict[str, bytes]]:
    ids = cited_ids(draft)
    records = stage.invocations.fetch(run.run_id, ids)
    found = check_evidence(run.run_id, draft, records, stage.tools)
    facts = CheckFacts(
        readable=True,
        stopped=False,
        concluded=True,
        violations=len(found.violations),
        named_calls=bool(ids),
        verified=not found.violations,
        missing_context=bool(draft.missing_context),
    )
    if found.violations or found.snapshot is None:
        kept = found.violations[:MAX_VIOLATIONS]
        blobs = {violations_blob(ref.attempt): _VIOLATIONS.dump_json(kept)}
        return Finished(ref, AttemptOutcome.VIOLATED, check=facts), blobs
    return Finished(ref, AttemptOutcome.PASSED, check=facts), _verified(
        stage, submission, draft, found
    )


def _verified(
    stage: Stage, submission: Submission, draft: DiagnosisDraft, found: EvidenceReport
) -> dict[str, bytes]:
    """What the steps behind a passed check need.

    A question over its limit is never asked, and its draft never released. It is not kept
    either: a short draft that cites one large result again and again would fill the store.
    """
    assert found.snapshot is not None
    kept = {SOURCES: dump_sources(found.sources)}
    asked = question(submission.query, draft, found.snapshot).encode()
    if len(SYSTEM.encode()) + len(asked) > stage.limits.review_input_bytes:
        return kept
    return kept | {
        VERIFIED_DRAFT: draft.model_dump_json(exclude_unset=True).encode(),
        SNAPSHOT: snapshot_bytes(found.snapshot),
        QUESTION: asked,
    }


def _without_conclusion(
    stage: Stage, run: Run, ref: StepRef, submission: Submission, draft: DiagnosisDraft | None
) -> tuple[Finished, dict[str, bytes]]:
    """A stop, an unreadable draft or one without a conclusion: no model is ever asked.

    Nothing is demanded of the draft either: only what was really looked at counts.
    """
    usable = None if submission.stopped else draft
    cited = cited_ids(usable) if usable is not None else ()
    ids = tuple(dict.fromkeys((*cited, *submission.progress)))
    records = stage.invocations.fetch(run.run_id, ids)
    calls: tuple[VerifiedCall, ...] = ()
    if usable is not None:
        calls = verified_references(run.run_id, usable, records, stage.tools)
    calls += verified_calls(run.run_id, submission.progress, records, stage.tools)
    facts = CheckFacts(
        readable=draft is not None,
        stopped=submission.stopped,
        concluded=False,
        violations=0,
        named_calls=bool(ids),
        verified=bool(calls),
        missing_context=usable is not None and bool(usable.missing_context),
    )
    blobs = {FACTS: dump_facts(observed_facts(calls))}
    return Finished(ref, AttemptOutcome.UNCONCLUDED, check=facts), blobs
