"""``query_mysql``: rows of a database query.

Self-authored is an answer whose every non-null cell is spelled out in the statement
where it can reach a cell: a literal, several joined (``CONCAT``), or a parameter.
``SELECT status FROM t WHERE status = 'ERROR'`` is a look; ``SELECT 'ERROR'`` is not.

The limits, said plainly:

- Words that the server computes from code points or other encodings (``CHAR(114)``,
  ``FROM_BASE64``), reads from a variable set before, or unpacks from a JSON text are
  not recognised, nor are computed numbers (``2 + 3``) or one real column beside the
  literals. The review sees the exact statement for that reason.
- A default that stands in the select list and is all that came back
  (``IFNULL(status, 'none')``) is refused too. The plain column says the same.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

from pydantic import JsonValue

from contracts.base import is_blank
from contracts.evidence import EvidenceStatus, QueryMysqlRequest, QueryMysqlResult
from contracts.strict_json import canonical
from worker.guards.tools.projection import Observed, ToolProjection
from worker.guards.tools.sql_literals import Literals, literals_of

MAX_LITERALS = 256
"""Literals that are compared. A select list that spells out more is no look at a database."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_LEFTOVER = re.compile(r"\d+(?:\.\d+)?|[^\W_]+")


def repeats_statement(request: QueryMysqlRequest, rows: tuple[tuple[JsonValue, ...], ...]) -> bool:
    """Tell whether each non-null cell is spelled out in the statement.

    If all cells are null, the answer is that nothing was there, which only a
    statement that reads a table can know.
    """
    literals = literals_of(request.sql, request.params)
    cells = {_text(cell) for row in rows for cell in row if cell is not None}
    if not cells:
        return not literals.reads
    if len(literals.strings) + len(literals.numbers) > MAX_LITERALS:
        return True
    known = _Known(literals)
    return all(known.spells(cell) for cell in cells)


class _Known:
    """The literals of one statement, ready to be compared with many cells."""

    def __init__(self, literals: Literals) -> None:
        self._whole = frozenset(literals.strings)
        self._parts = sorted(filter(None, self._whole), key=len, reverse=True)
        self._numbers = frozenset(_numbers(literals.numbers))

    def spells(self, cell: str) -> bool:
        """Tell whether a cell is one literal, or literals joined by nothing but punctuation."""
        return cell in self._whole or self._is_number(cell) or self._is_joined(cell)

    def _is_number(self, text: str) -> bool:
        return any(number in self._numbers for number in _numbers((text,)))

    def _is_joined(self, cell: str) -> bool:
        rest = cell
        for part in self._parts:
            rest = rest.replace(part, "\0")
        return rest != cell and all(self._is_number(word) for word in _LEFTOVER.findall(rest))


def _numbers(texts: tuple[str, ...] | list[str]) -> Iterator[Decimal]:
    for text in texts:
        if _NUMBER.fullmatch(text):
            yield Decimal(text).copy_abs()  # the sign is an operator, not part of the literal


def _text(cell: JsonValue) -> str:
    if isinstance(cell, bool):
        return "1" if cell else "0"
    return cell if isinstance(cell, str) else canonical(cell).decode()


def _status(result: QueryMysqlResult) -> EvidenceStatus | None:
    if result.row_count == 0:
        return None if result.rows else EvidenceStatus.NO_EVIDENCE
    if not result.rows or not result.columns or len(result.rows) > result.row_count:
        return None
    if any(len(row) != len(result.columns) for row in result.rows):
        return None
    return EvidenceStatus.EVIDENCE_FOUND


def _self_authored(request: QueryMysqlRequest, result: QueryMysqlResult) -> bool:
    return repeats_statement(request, result.rows)


def _observed(_: QueryMysqlRequest, result: QueryMysqlResult) -> Observed:
    return Observed(count=result.row_count)


PROJECTION = ToolProjection(
    request=QueryMysqlRequest,
    result=QueryMysqlResult,
    source=lambda request: request.data_source,
    scope=("sql", "params"),
    asks=lambda request: not is_blank(request.sql),
    status=_status,
    self_authored=_self_authored,
    observed=_observed,
)
