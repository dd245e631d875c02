"""Claims about two recorded investigations that nobody here wrote: sound ones, and broken ones.

As in ``holmes_cases`` the recordings stay outside the repository, the claims are short
facts in our own words, and each quotation is copied from a result of the recording.
"""

from dataclasses import dataclass, replace
from typing import Any

from tests.holmes_cases import read_holmes
from worker.client.transcripts import Transcript

RELEASED = "SUCCEEDED"
LOW = "LOW_CONFIDENCE"
REJECTED = "CLAIMS_REJECTED"
UNVERIFIED = "PRE_VERIFICATION"


@dataclass(frozen=True)
class HolmesClaims:
    """A document about a recording and how its run must end.

    ``classes`` are the verifier's, in the order of the claims that pass the gate;
    ``failed_rule`` is the gate's, if it must find one.
    """

    name: str
    file: str
    claims: tuple[dict[str, Any], ...]
    ending: str
    classes: tuple[str, ...] = ()
    failed_rule: str | None = None

    @property
    def output(self) -> dict[str, Any]:
        return {"schema_version": "executor_evidence_v2", "claims": list(self.claims)}

    def transcript(self, run_id: str) -> Transcript:
        return read_holmes(self.file, run_id)

    def with_claim(self, changed: dict[str, Any], **changes: Any) -> "HolmesClaims":
        """The same with one claim replaced by another of its id."""
        claims = tuple(
            changed if one["claim_id"] == changed["claim_id"] else one for one in self.claims
        )
        assert claims != self.claims
        return replace(self, claims=claims, **changes)


def _claim(
    claim_id: str, text: str, call_id: str, *quotations: str, critical: bool = True
) -> dict[str, Any]:
    return {
        "claim_id": claim_id,
        "text": text,
        "critical": critical,
        "confirmed": True,
        "evidence_bindings": [
            {
                "invocation_id": call_id,
                "tool_name": "run_command",
                "raw_path": "$.stdout",
                "matched_text": quotation,
            }
            for quotation in quotations
        ],
    }


def _elsewhere(claim: dict[str, Any]) -> dict[str, Any]:
    """The same claim with a path at which its result has nothing."""
    bindings = [{**one, "raw_path": "$.output[0]"} for one in claim["evidence_bindings"]]
    return {**claim, "evidence_bindings": bindings}


DIRECT, INFERENCE = "direct_observation", "reasonable_inference"
_SIXTY = '- name: JWT_TOKEN_EXPIRY\n          value: "60"'
_HOUR = '- name: JWT_TOKEN_EXPIRY\n          value: "3600"'
_ISSUED = "Generating JWT token with expiry: 60 seconds"
_REGEX = "Complex regex with nested lookaheads causing high CPU utilization"
_HOT = "validateEmailPattern(): 76.2% of total CPU time"
_CALLED = "Method validateEmailPattern() called 45,231 times in last hour"

_005 = HolmesClaims(
    "005: sound",
    "005_configuration_change.json",
    (
        _claim("now", "JWT_TOKEN_EXPIRY is set to 60.", "call_008", _SIXTY),
        _claim("before", "Revision 1 had JWT_TOKEN_EXPIRY at 3600.", "call_009", _HOUR),
        _claim("effect", "Tokens expire early because they get 60 seconds.", "call_006", _ISSUED),
        _claim("count", "156 requests met an expired token.", "call_013", "156", critical=False),
    ),
    RELEASED,
    (DIRECT, DIRECT, INFERENCE, DIRECT),
)
_007 = HolmesClaims(
    "007: sound",
    "007_negative_findings.json",
    (
        _claim("hot", "The profiler counts 76.2% of CPU time there.", "call_014", _HOT),
        _claim("called", "The method was called 45,231 times in an hour.", "call_014", _CALLED),
        _claim(
            "why", "A complex regex leads to the high CPU utilization.", "call_014", _REGEX,
            critical=False,
        ),
    ),
    RELEASED,
    (DIRECT, DIRECT, INFERENCE),
)  # fmt: skip

HOLMES_CLAIMS = (
    _005,
    _005.with_claim(
        _claim("effect", "Every token expires after 60 seconds.", "call_006", _ISSUED),
        name="005: overstated",
        ending=LOW,
        classes=(DIRECT, DIRECT, "overstated", DIRECT),
    ),
    _005.with_claim(
        _claim("now", "JWT_TOKEN_EXPIRY is set to 600.", "call_008", _SIXTY),
        name="005: contradicted",
        ending=REJECTED,
        classes=("contradicted", DIRECT, INFERENCE, DIRECT),
    ),
    _005.with_claim(
        _elsewhere(_005.claims[1]),
        name="005: one wrong path",
        ending=LOW,
        classes=(DIRECT, INFERENCE, DIRECT),
        failed_rule="evidence.raw_path",
    ),
    replace(
        _005,
        name="005: wrong paths only",
        claims=tuple(_elsewhere(one) for one in _005.claims),
        ending=UNVERIFIED,
        classes=(),
        failed_rule="evidence.raw_path",
    ),
    _007,
    _007.with_claim(
        _claim("called", "The method was called 45,231 times in every hour.", "call_014", _CALLED),
        name="007: overstated",
        ending=LOW,
        classes=(DIRECT, "overstated", INFERENCE),
    ),
    _007.with_claim(
        _claim("hot", "The profiler counts 96.2% of CPU time there.", "call_014", _HOT),
        name="007: contradicted",
        ending=REJECTED,
        classes=("contradicted", DIRECT, INFERENCE),
    ),
    _007.with_claim(
        _claim(
            "hot", "The profiler counts 76.2% of CPU time there.", "call_014", "76.2% of all time"
        ),
        name="007: words that do not stand there",
        ending=LOW,
        classes=(DIRECT, INFERENCE),
        failed_rule="evidence.matched_text",
    ),
    replace(
        _007,
        name="007: an empty result as evidence",
        claims=(_claim("none", "No error was logged.", "call_007", "error"),),
        ending=UNVERIFIED,
        classes=(),
        failed_rule="evidence.invocation_result",
    ),
)
