"""Two recorded investigations that nobody here wrote, with drafts of ours: sound and corrupted.

The recordings stay outside the repository (``../shared/data/holmes`` beside it);
whoever asks for one that is absent fails and says so. A draft states short facts
of its recording in our own words; every number and name of a sound one stands in
a result that it cites.
"""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.draft import (
    NEGATIVE_OBSERVATION,
    NORMAL,
    ActionItem,
    Analysis,
    Conclusion,
    DiagnosisDraft,
)
from contracts.fallback import FallbackType
from contracts.messages import ReleaseSucceeded
from worker.client.transcripts import Transcript, read_openai_messages
from worker.guards.violations import ViolationCode

HOLMES = Path(__file__).resolve().parents[2] / "shared" / "data" / "holmes"
HOLMES_FILES = (
    "001_compaction.json",
    "002_buried_exception.json",
    "003_cascading_failure.json",
    "004_multiple_root_causes.json",
    "005_configuration_change.json",
    "007_negative_findings.json",
    "008_very_long_conversation.json",
)
BEGAN_AT = datetime(2025, 10, 8, 15, 30, tzinfo=UTC)

SUCCEEDED = ReleaseSucceeded.__name__
BAD_EVIDENCE = FallbackType.EVIDENCE_VALIDATION_FAILED.value
UNSUPPORTED = FallbackType.SEMANTIC_UNSUPPORTED.value


def load_holmes(file: str) -> list[dict[str, Any]]:
    """Return the messages of one recording; fail the test if the data is not there."""
    path = HOLMES / file
    if not path.is_file():
        pytest.fail(
            f"real input is missing: {path}. These tests read recordings that are not part of"
            " the repository; put them beside it (shared/data/holmes)."
        )
    messages: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return messages


def read_holmes(file: str, run_id: str, session_id: str = "holmes") -> Transcript:
    """Read one recording into the records of one run."""
    return read_openai_messages(
        load_holmes(file), run_id=run_id, session_id=session_id, began_at=BEGAN_AT
    )


@dataclass(frozen=True)
class HolmesCase:
    """A draft about a recording and how its run must end.

    ``ending`` is ``ReleaseSucceeded`` or the type of the fallback, ``violation`` what
    the evidence guard must find on the way to ``EVIDENCE_VALIDATION_FAILED``.
    ``other_file`` is a recording whose records belong to another run that exists at
    the same time.
    """

    name: str
    file: str
    draft: DiagnosisDraft
    ending: str
    violation: ViolationCode | None = None
    other_file: str | None = None

    def transcript(self, run_id: str) -> Transcript:
        return read_holmes(self.file, run_id)

    def other_transcript(self, other_run_id: str) -> Transcript | None:
        return read_holmes(self.other_file, other_run_id) if self.other_file else None


def normal(analysis_id: str, text: str, *calls: str) -> Analysis:
    return Analysis(analysis_id=analysis_id, kind=NORMAL, text=text, tool_call_ids=calls)


def nothing_found(analysis_id: str, text: str, *calls: str) -> Analysis:
    return Analysis(
        analysis_id=analysis_id, kind=NEGATIVE_OBSERVATION, text=text, tool_call_ids=calls
    )


def with_analysis(draft: DiagnosisDraft, changed: Analysis) -> DiagnosisDraft:
    analyses = tuple(
        changed if analysis.analysis_id == changed.analysis_id else analysis
        for analysis in draft.analyses
    )
    assert analyses != draft.analyses
    return draft.model_copy(update={"analyses": analyses})


def with_conclusion(draft: DiagnosisDraft, text: str) -> DiagnosisDraft:
    assert draft.conclusion is not None
    return draft.model_copy(
        update={"conclusion": draft.conclusion.model_copy(update={"text": text})}
    )


_TOKEN_EXPIRY = DiagnosisDraft(
    conclusion=Conclusion(
        text=(
            "The current deployment of auth-service lowered JWT_TOKEN_EXPIRY from 3600 to 60."
            " Tokens expire 60 seconds after they are issued, and later requests are refused."
        ),
        based_on_analysis_ids=("now", "before", "log", "count"),
    ),
    analyses=(
        normal("now", "The deployment sets JWT_TOKEN_EXPIRY to 60.", "call_008"),
        normal(
            "before",
            "Revision 1 had JWT_TOKEN_EXPIRY at 3600. The change cause of revision 2 is"
            ' "Update JWT token expiry configuration".',
            "call_009",
            "call_004",
        ),
        normal(
            "log",
            "The log of auth-service-7f8d9c5b4-k6m2n shows JWT tokens generated with an expiry of"
            " 60 seconds, and validation failing with Token expired, for example at"
            " 2025-10-08T15:16:30Z for a token issued at 2025-10-08T15:15:22Z.",
            "call_006",
        ),
        normal(
            "count",
            "The log of that pod counts 199 token validation requests and 156 with Token expired.",
            "call_015",
            "call_013",
        ),
        normal(
            "deployed",
            "The pod was created at 14:45:00. The image of the deployment is"
            " auth-service:v2.3.1-abc123f.",
            "call_012",
            "call_016",
        ),
    ),
    action_plan=(
        ActionItem(
            text="Set JWT_TOKEN_EXPIRY of the deployment auth-service back to 3600.",
            based_on_analysis_ids=("now", "before"),
            requires_human_confirmation=True,
        ),
    ),
    recommendations=(
        ActionItem(
            text="Let a second person review each change of the token expiry configuration.",
            based_on_analysis_ids=("before",),
        ),
    ),
    limitations=("The counts come from the log of a single pod.",),
)

_SLOW_GATEWAY = DiagnosisDraft(
    conclusion=Conclusion(
        text=(
            "The api-gateway is slow because validateEmailPattern() uses 76.2% of total CPU time"
            " and the pods are close to their CPU limit."
        ),
        based_on_analysis_ids=("cpu", "profile", "requests", "database", "external"),
    ),
    analyses=(
        normal("pods", "The api-gateway pods are Running with 0 restarts since 12h.", "call_002"),
        normal(
            "cpu",
            "The pods use 892m, 867m and 918m of CPU. The CPU limit is 1.",
            "call_004",
            "call_005",
        ),
        nothing_found(
            "no-errors",
            "A search for error, warn, exception or fail in the log of"
            " api-gateway-8d7f6c5b9-h3k4m found no line.",
            "call_007",
        ),
        normal(
            "requests",
            "All requests in the log answer 200 OK; the fastest took 445ms, the slowest 556ms.",
            "call_008",
        ),
        normal(
            "database",
            "Each database query in the log completed in 48ms to 76ms.",
            "call_010",
        ),
        normal(
            "external",
            "The external API calls answered 200 OK; the fastest took 38ms, the slowest 55ms.",
            "call_012",
        ),
        normal(
            "profile",
            "The profiler lists validateEmailPattern() with 76.2% of total CPU time, called"
            " 45,231 times in the last hour with an average execution time of 8.7ms, and warns"
            " of a complex regex with nested lookaheads.",
            "call_014",
        ),
        normal(
            "changes",
            "The last change in the rollout history is revision 2, Update resource limits.",
            "call_015",
        ),
    ),
    action_plan=(
        ActionItem(
            text="Replace the regex of validateEmailPattern() by a simpler one.",
            based_on_analysis_ids=("profile",),
            requires_human_confirmation=True,
        ),
    ),
    recommendations=(
        ActionItem(
            text="Profile the pods again after the change.", based_on_analysis_ids=("profile",)
        ),
    ),
    limitations=(
        "The search for errors saw only the end of the log of a single pod.",
        "It does not show that no error happened.",
    ),
)

_005 = HolmesCase("005: sound", "005_configuration_change.json", _TOKEN_EXPIRY, SUCCEEDED)
_007 = HolmesCase("007: sound", "007_negative_findings.json", _SLOW_GATEWAY, SUCCEEDED)

_OTHER_FILE = "001_compaction.json"
OTHER_CALL_ID = "tooluse_pxF3VljcTXCoFXTHFSJ8gQ"
"""A call with evidence in ``001``: no other recording holds its id."""

HOLMES_CASES: tuple[HolmesCase, ...] = (
    _005,
    replace(
        _005,
        name="005: a fabricated call id",
        draft=with_analysis(
            _TOKEN_EXPIRY, normal("now", "The deployment sets JWT_TOKEN_EXPIRY to 60.", "call_099")
        ),
        ending=BAD_EVIDENCE,
        violation=ViolationCode.RECORD_MISSING,
    ),
    replace(
        _005,
        name="005: a helper's call as evidence",
        draft=with_analysis(
            _TOKEN_EXPIRY,
            normal("count", "All checks of the token expiry were completed.", "call_017"),
        ),
        ending=BAD_EVIDENCE,
        violation=ViolationCode.RECORD_MISSING,
    ),
    replace(
        _005,
        name="005: a call of another run",
        draft=with_analysis(
            _TOKEN_EXPIRY,
            normal("deployed", "A volume claim waits for its volume.", OTHER_CALL_ID),
        ),
        ending=BAD_EVIDENCE,
        violation=ViolationCode.RECORD_MISSING,
        other_file=_OTHER_FILE,
    ),
    replace(
        _005,
        name="005: a wrong number",
        draft=with_analysis(
            _TOKEN_EXPIRY,
            normal(
                "count",
                "The log of that pod counts 199 token validation requests and 187 lines"
                " with Token expired.",
                "call_015",
                "call_013",
            ),
        ),
        ending=UNSUPPORTED,
    ),
    replace(
        _005,
        name="005: an overclaim",
        draft=with_conclusion(
            _TOKEN_EXPIRY,
            "The current deployment of auth-service lowered JWT_TOKEN_EXPIRY from 3600 to 60."
            " It locked out 12000 users and also brought down billing-service-eu-2.",
        ),
        ending=UNSUPPORTED,
    ),
    _007,
    replace(
        _007,
        name="007: a positive claim on an empty result",
        draft=with_analysis(
            _SLOW_GATEWAY,
            normal("no-errors", "The log of the api-gateway shows timeouts.", "call_007"),
        ),
        ending=BAD_EVIDENCE,
        violation=ViolationCode.KIND_STATUS_MISMATCH,
    ),
    replace(
        _007,
        name="007: a negative claim on a result that is not empty",
        draft=with_analysis(
            _SLOW_GATEWAY,
            nothing_found("database", "The log holds no database query.", "call_010"),
        ),
        ending=BAD_EVIDENCE,
        violation=ViolationCode.KIND_STATUS_MISMATCH,
    ),
    replace(
        _007,
        name="007: a fabricated call id",
        draft=with_analysis(
            _SLOW_GATEWAY, normal("external", "The external API calls answered.", "call_112")
        ),
        ending=BAD_EVIDENCE,
        violation=ViolationCode.RECORD_MISSING,
    ),
    replace(
        _007,
        name="007: a call of another run",
        draft=with_analysis(
            _SLOW_GATEWAY,
            normal("changes", "A volume claim waits for its volume.", OTHER_CALL_ID),
        ),
        ending=BAD_EVIDENCE,
        violation=ViolationCode.RECORD_MISSING,
        other_file=_OTHER_FILE,
    ),
    replace(
        _007,
        name="007: a wrong number",
        draft=with_conclusion(
            _SLOW_GATEWAY,
            "The api-gateway is slow because validateEmailPattern() uses 96.2% of total CPU time"
            " and the pods are close to their CPU limit.",
        ),
        ending=UNSUPPORTED,
    ),
    replace(
        _007,
        name="007: an overclaim",
        draft=with_conclusion(
            _SLOW_GATEWAY,
            "The api-gateway is slow because orders-db-replica-2 answers its queries only after"
            " 9000ms.",
        ),
        ending=UNSUPPORTED,
    ),
)
