"""The faults of a model, and what each must come to.

Each fault hits the first attempt of a review, both attempts, or the one attempt of
a repair. What is expected stands here and is not computed by the code under test.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from tests.pipeline.cases import disk_draft
from worker.offline.judge_script import (
    Behaviour,
    choices,
    close,
    content,
    cut_by_length,
    error_object,
    hang,
    html,
    no_usage,
    raw,
    refusal,
    reset,
    status,
    trickle,
    verdict,
)

Hits = Literal["first attempt", "both attempts", "repair"]
HITS: tuple[Hits, ...] = ("first attempt", "both attempts", "repair")

OUTPUT_BYTES = 16_384
INPUT_BYTES = 262_144
ATTEMPT_SECONDS = 3
RETRY_AFTER = 1

GOOD = '{"reason": "It follows.", "verdict": "SUPPORTED"}'
CONTEXT_TOO_LONG = (
    '{"error": {"message": "maximum context length is 8192 tokens", '
    '"type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}'
)


@dataclass(frozen=True)
class Fault:
    """``behaviour`` is the judge's; without one the fault is made by ``failure_matrix_app``.

    ``outcome`` is what the record must say of an attempt that is hit, ``again`` whether
    another attempt follows, ``seen`` whether the call reaches the judge.
    """

    name: str
    behaviour: Behaviour | None = field(hash=False)
    outcome: str
    again: bool = True
    seen: bool = True
    large: bool = False

    def draft(self, hits: Hits) -> dict[str, Any]:
        """A sound draft, or one that only lacks a reference."""
        draft = disk_draft()
        if self.large:
            draft["limitations"] = ["Only one host was looked at. " * (INPUT_BYTES // 25)]
        if hits == "repair":
            draft["conclusion"]["based_on_analysis_ids"] = ["a9"]
        return draft

    def attempts(self, hits: Hits) -> list[str]:
        """The outcomes that the record must hold, in order."""
        if hits == "repair" or not self.again:
            return [self.outcome]
        return [self.outcome, self.outcome if hits == "both attempts" else "SUPPORTED"]

    def calls(self, hits: Hits) -> int:
        """How many calls the judge must have seen."""
        made = self.attempts(hits)
        return len(made) if self.seen else made.count("SUPPORTED")

    def ending(self, hits: Hits) -> str:
        if hits == "repair":
            return "EVIDENCE_VALIDATION_FAILED"
        endings = {"SUPPORTED": "SUCCEEDED", "UNSUPPORTED": "SEMANTIC_UNSUPPORTED"}
        return endings.get(self.attempts(hits)[-1], "SEMANTIC_UNAVAILABLE")


def _answers(name: str, text: str, outcome: str) -> Fault:
    return Fault(name, content(text), outcome)


FAULTS: tuple[Fault, ...] = (
    Fault("silence", hang(), "TIMEOUT"),
    Fault("silence in the body", hang(20), "TIMEOUT"),
    Fault("trickle", trickle(0.05), "TIMEOUT"),
    Fault("reset", reset(), "TRANSPORT"),
    Fault("reset in the body", reset(20), "TRANSPORT"),
    Fault("closed without an answer", close(), "TRANSPORT"),
    Fault("408", status(408), "TRANSPORT"),
    Fault("429", status(429), "RATE_LIMITED"),
    Fault("429 with retry-after", status(429, retry_after=RETRY_AFTER), "RATE_LIMITED"),
    Fault("500", status(500), "TRANSPORT"),
    Fault("502 with HTML", html(502), "TRANSPORT"),
    Fault("503", status(503), "TRANSPORT"),
    Fault("200 with HTML", html(200), "UNPARSEABLE"),
    Fault("200 empty", raw(b""), "UNPARSEABLE"),
    Fault("200 null", raw(b"null"), "UNPARSEABLE"),
    Fault("error object in a 200", error_object(), "UNPARSEABLE"),
    Fault("400", status(400), "PROVIDER_REFUSED", again=False),
    Fault("401", status(401), "PROVIDER_REFUSED", again=False),
    Fault("403", status(403), "PROVIDER_REFUSED", again=False),
    Fault("404", status(404), "PROVIDER_REFUSED", again=False),
    Fault("context too long", status(400, body=CONTEXT_TOO_LONG), "PROVIDER_REFUSED", again=False),
    Fault("input over its limit", None, "INPUT_TOO_LARGE", again=False, seen=False, large=True),
    Fault("refusal", refusal(), "OFF_SCHEMA"),
    Fault("empty choices", choices([]), "OFF_SCHEMA"),
    Fault("null choices", choices(None), "OFF_SCHEMA"),
    Fault("cut by length", cut_by_length(GOOD), "OFF_SCHEMA"),
    _answers("not JSON", "The report is supported.", "UNPARSEABLE"),
    _answers("two JSON objects", GOOD + GOOD, "UNPARSEABLE"),
    _answers("text after the object", GOOD + " I am sure.", "UNPARSEABLE"),
    _answers("fences", f"```json\n{GOOD}\n```", "UNPARSEABLE"),
    _answers("a thought before the object", f"<think>Hm.</think>{GOOD}", "UNPARSEABLE"),
    _answers(
        "equal keys",
        '{"reason": "r", "verdict": "UNSUPPORTED", "verdict": "SUPPORTED"}',
        "UNPARSEABLE",
    ),
    _answers("NaN", '{"reason": NaN, "verdict": "SUPPORTED"}', "UNPARSEABLE"),
    _answers("an array", f"[{GOOD}]", "OFF_SCHEMA"),
    _answers("extra field", GOOD.replace("{", '{"score": 1, '), "OFF_SCHEMA"),
    _answers("missing field", '{"verdict": "SUPPORTED"}', "OFF_SCHEMA"),
    _answers("blank reason", GOOD.replace("It follows.", "  "), "OFF_SCHEMA"),
    _answers("invisible reason", GOOD.replace("It follows.", "\u200b\u2060"), "OFF_SCHEMA"),
    _answers("reason is no text", GOOD.replace('"It follows."', "1"), "OFF_SCHEMA"),
    _answers("wrong enum", GOOD.replace("SUPPORTED", "PARTIALLY_SUPPORTED"), "OFF_SCHEMA"),
    _answers("wrong case", GOOD.replace("SUPPORTED", "Supported"), "OFF_SCHEMA"),
    _answers(
        "over the output limit", GOOD.replace("It", "It really " * OUTPUT_BYTES), "OFF_SCHEMA"
    ),
    Fault("body without an end in sight", raw(b" " * 4_000_000), "OFF_SCHEMA"),
)
"""What the judge does, while everything between is as in production."""

APP_FAULTS: tuple[Fault, ...] = (
    Fault("connect refused", None, "TRANSPORT", seen=False),
    Fault("blocks until the soft limit", None, "TIMEOUT", seen=False),
    Fault("blocks until the hard limit", None, "LOST", seen=False),
)
"""What no server can do; ``failure_matrix_app`` makes them inside the worker."""

HARMLESS: tuple[Fault, ...] = (
    Fault("no usage", no_usage(), "SUPPORTED", again=False),
    Fault("a valid UNSUPPORTED", verdict("UNSUPPORTED"), "UNSUPPORTED", again=False),
)
"""What looks like a fault and is an answer."""
