"""What every reader returns, and how it refuses."""

from dataclasses import dataclass
from enum import StrEnum

from contracts.evidence import InvocationRecord


class Refusal(StrEnum):
    """Why a transcript cannot be read. The words quote nothing of it."""

    NOT_MESSAGES = "NOT_MESSAGES"
    NOT_A_MESSAGE = "NOT_A_MESSAGE"
    UNKNOWN_ROLE = "UNKNOWN_ROLE"
    UNKNOWN_ITEM = "UNKNOWN_ITEM"
    CONTENT_NOT_TEXT = "CONTENT_NOT_TEXT"
    TEXT_NOT_UNICODE = "TEXT_NOT_UNICODE"
    NOT_A_CALL = "NOT_A_CALL"
    UNSUPPORTED_CALL = "UNSUPPORTED_CALL"
    BAD_CALL_ID = "BAD_CALL_ID"
    REUSED_CALL_ID = "REUSED_CALL_ID"
    RESULT_WITHOUT_CALL = "RESULT_WITHOUT_CALL"
    REPEATED_RESULT = "REPEATED_RESULT"
    RESULT_OF_ANOTHER_TOOL = "RESULT_OF_ANOTHER_TOOL"
    NO_QUESTION = "NO_QUESTION"
    NOT_A_SPAN = "NOT_A_SPAN"
    BAD_TIME = "BAD_TIME"


class TranscriptError(ValueError):
    """Reading stopped at ``place`` (a path such as ``messages[3].tool_calls[0]``) for ``code``."""

    def __init__(self, code: Refusal, place: str) -> None:
        super().__init__(f"{code} at {place}")
        self.code = code
        self.place = place


@dataclass(frozen=True)
class Transcript:
    """One investigation as it was recorded.

    ``records`` stand in the order in which the agent made the calls.
    ``questions`` are the texts of the user, never empty. ``final_text`` is the
    agent's last text if it ends the transcript without another call, else None.
    ``model_steps`` counts the model's answers; ``helper_calls`` the calls that are
    no evidence and so made no record. Neither is part of the other, nor of
    ``evidence_calls``.
    """

    records: tuple[InvocationRecord, ...]
    questions: tuple[str, ...]
    final_text: str | None
    model_steps: int
    helper_calls: int

    @property
    def query(self) -> str:
        """The question that opened the investigation; later ones follow it up."""
        return self.questions[0]

    @property
    def evidence_calls(self) -> int:
        return len(self.records)
