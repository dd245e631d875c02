"""Reading a model's answer: one strict JSON object, or a typed failure.

Both failures are technical and may be tried again within the policy. Their text is
their code; nothing of the answer is quoted.
"""

from typing import Any

from contracts.strict_json import StrictJsonError, parse


class AnswerError(Exception):
    """An answer that cannot be used."""


class Unparseable(AnswerError):
    """The answer is not exactly one strict JSON document: fences, trailing text, equal keys."""

    def __init__(self) -> None:
        super().__init__("UNPARSEABLE")


class OffSchema(AnswerError):
    """The answer is JSON of another shape than the one that was asked for."""

    def __init__(self) -> None:
        super().__init__("OFF_SCHEMA")


def read_object(text: str) -> dict[str, Any]:
    """Read an answer that must be one JSON object; raises Unparseable or OffSchema."""
    try:
        value = parse(text)
    except StrictJsonError:
        raise Unparseable from None
    if not isinstance(value, dict):
        raise OffSchema
    return value
