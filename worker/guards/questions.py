"""Writing a guard's question: data that no chat template can take for its own marks.

A server that runs its model itself joins the messages into one text and splits that into
tokens. Many read ``<|im_end|>`` or ``[/INST]`` as the end of a message wherever it stands, so
evidence could speak as the system. JSON has another spelling for each character: the data
stays equal, and the mark is gone.
"""

import re
from typing import Any

from contracts.strict_json import canonical

_MARK = re.compile(r"<|\[(?=/?[A-Z_]+\])")
"""Begins a mark. In canonical JSON both can stand inside strings only."""


def as_data(value: Any) -> str:
    """Write a value in canonical JSON without anything that begins a template's mark."""
    text = canonical(value).decode()
    return _MARK.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
