"""Names of the blobs beside a run's record: what is too large, or too private, for it."""

from dataclasses import dataclass

INPUT = "input"
"""The message that opened the run, raw."""

# --- drafts -------------------------------------------------------------------------

REPAIRED_DRAFT = "repaired_draft"
"""The draft as the repair left it, before its second check."""
VERIFIED_DRAFT = "verified_draft"
"""The draft that passed the evidence check, written in the same commit as its PASSED."""
SNAPSHOT = "snapshot"
SOURCES = "sources"
FACTS = "facts"
QUESTION = "question"
"""The user message of the semantic review: written once, so that both attempts send one text."""


def violations_blob(attempt: int) -> str:
    """The violations of one check."""
    return f"violations.{attempt}"


def reason_blob(attempt: int) -> str:
    """The reason of one verdict. It never leaves the record."""
    return f"reason.{attempt}"


# --- claims -------------------------------------------------------------------------

SELF_EVALUATION = "self_evaluation"
"""The evaluation container. Other channels in it are left as they are."""


@dataclass(frozen=True)
class RoundBlobs:
    """Names of the blobs of one round of claims."""

    round: int

    @property
    def input(self) -> str:
        return INPUT if self.round == 0 else f"{INPUT}.{self.round}"

    @property
    def gate(self) -> str:
        return f"gate.{self.round}"

    @property
    def material(self) -> str:
        return f"material.{self.round}"

    @property
    def requested(self) -> str:
        return f"requested.{self.round}"

    @property
    def question(self) -> str:
        return f"question.{self.round}"

    @property
    def answer(self) -> str:
        return f"answer.{self.round}"

    @property
    def composed(self) -> str:
        return f"composed.{self.round}"

    @property
    def composer(self) -> str:
        return f"composer.{self.round}"

    def all(self) -> tuple[str, ...]:
        """Everything that an ending and its evaluation may read."""
        return (
            self.input,
            self.gate,
            self.material,
            self.requested,
            self.answer,
            self.composed,
            self.composer,
            SELF_EVALUATION,
        )
