"""The base model and the constrained types that every contract shares."""

import unicodedata
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
"""A run's id: it becomes part of keys and task ids, so its alphabet is small."""

ReplyTo = Annotated[str, StringConstraints(pattern=r"^release\.reply\.[a-z0-9._-]{1,128}$")]
"""A reply queue. On Redis a routing key is a key name, so a stranger must not choose it freely."""

SourceName = Annotated[
    str, StringConstraints(max_length=128, pattern=r"^[A-Za-z0-9](/?[A-Za-z0-9._:@-])*$")
]
"""The name of a system that was looked at. It may appear in a fallback, so it can hold neither
prose nor a link that somebody could follow."""

Timestamp = AwareDatetime
"""An RFC 3339 date and time with an offset."""

_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_VISIBLE = frozenset("LNPS")


class Contract(BaseModel):
    """A frozen value that is strict in types and never quotes its input in an error."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )


class OpenContract(Contract):
    """A contract that accepts unknown fields from a newer producer, and never emits them."""

    model_config = ConfigDict(extra="ignore")


def is_blank(text: str) -> bool:
    """Tell whether a reader would see nothing: only spaces, controls, marks or fillers."""
    return not any(
        unicodedata.category(char)[0] in _VISIBLE and char not in _FILLERS for char in text
    )


def isoformat(moment: datetime) -> str:
    """Write a moment as RFC 3339, with ``Z`` for UTC."""
    return moment.isoformat().replace("+00:00", "Z")
