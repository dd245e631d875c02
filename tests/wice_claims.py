"""Claims that people judged against a web page, read as claims with evidence.

The data stays outside the repository (``../shared/data/wice`` beside it); whoever asks
for it while it is absent fails and says so. Each row becomes one knowledge search whose
documents are the page's sentences, and one critical claim that quotes some of them whole.
An agent quotes what it thinks bears the claim, so the quotations are the sentences of the
first annotator who named any; where nobody did, they are those closest to it by words.

The labels are those of people: ``CLASSES`` tells what a verifier should say. It serves
later measuring of verifiers that judge meaning; the rule-based one does not.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contracts.base import is_blank
from contracts.claims import Classification
from tests.strategies import record, stored
from worker.offline.judge_facts import words

WICE = Path(__file__).resolve().parents[2] / "shared" / "data" / "wice" / "dev.jsonl"
CALL_ID = "call-page"
_CLOSEST = 3

CLASSES: Mapping[str, frozenset[Classification]] = {
    "supported": frozenset(
        {Classification.DIRECT_OBSERVATION, Classification.REASONABLE_INFERENCE}
    ),
    "partially_supported": frozenset({Classification.OVERSTATED}),
    "not_supported": frozenset(
        {
            Classification.UNSUPPORTED,
            Classification.EXTERNAL_UNKNOWN,
            Classification.CONTRADICTED,
        }
    ),
}
"""What a verifier should say of a claim with this label: one of these."""


@dataclass(frozen=True)
class WiceClaim:
    """One row: the claim, the page's sentences, which of them are quoted, and people's label."""

    row_id: str
    claim: str
    sentences: tuple[str, ...]
    quoted: tuple[int, ...]
    label: str

    @property
    def output(self) -> dict[str, Any]:
        """The row as an agent's document."""
        bindings = [
            {
                "invocation_id": CALL_ID,
                "tool_name": "lookup_knowledge",
                "raw_path": f"$.documents[{number}].excerpt",
                "matched_text": self.sentences[number],
            }
            for number in self.quoted
        ]
        claim = {
            "claim_id": self.row_id,
            "text": self.claim,
            "critical": True,
            "confirmed": True,
            "evidence_bindings": bindings,
        }
        return {"schema_version": "executor_evidence_v2", "claims": [claim]}

    def records(self, run_id: str) -> dict[str, bytes | None]:
        """The search that found the page, as it is stored for this run."""
        documents = [
            {"document_id": f"{self.row_id}#{number}", "title": self.row_id, "excerpt": sentence}
            for number, sentence in enumerate(self.sentences)
        ]
        found = record(
            "lookup_knowledge",
            run_id=run_id,
            tool_call_id=CALL_ID,
            content={"documents": documents},
        )
        return {CALL_ID: stored(found)}


def load_wice() -> tuple[WiceClaim, ...]:
    """Read all rows; fail the test if the data is not there."""
    if not WICE.is_file():
        pytest.fail(
            f"real input is missing: {WICE}. These tests read claims that are not part of"
            " the repository; put them beside it (shared/data/wice)."
        )
    rows = (json.loads(line) for line in WICE.read_text(encoding="utf-8").splitlines())
    return tuple(map(_read, rows))


def _read(row: Mapping[str, Any]) -> WiceClaim:
    """A row without its blank sentences: no search returns a passage of nothing."""
    seen = [number for number, sentence in enumerate(row["evidence"]) if not is_blank(sentence)]
    sentences = [row["evidence"][number] for number in seen]
    named = next((one for one in row["supporting_sentences"] if one), None)
    quoted = (
        _closest(row["claim"], sentences)
        if named is None
        else [seen.index(number) for number in named if number in seen]
    )
    return WiceClaim(row["id"], row["claim"], tuple(sentences), tuple(quoted), row["label"])


def _closest(claim: str, sentences: list[str]) -> list[int]:
    """The places of the sentences that share most words with a claim, in order."""
    said = set(words(claim).split())
    shared = [len(said & set(words(sentence).split())) for sentence in sentences]
    best = sorted(range(len(sentences)), key=lambda number: -shared[number])[:_CLOSEST]
    return sorted(best)
