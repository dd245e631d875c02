"""Secrets in a call's parameters never reach its record.

The rule, so that a team can tell beforehand what is masked:

1. A parameter, at any depth, whose name ends in one of ``SECRET_WORDS`` (case and
   ``_ - .`` do not count, a plural is no match): its whole value becomes ``***``.
   ``api_key``, ``DB_PASSWORD``, ``x-auth-token`` match; ``max_tokens`` and
   ``JWT_TOKEN_EXPIRY`` do not.
2. Inside any text: what follows such a name and ``=`` or ``:``, or such an option
   (``--token abc``); the password of ``scheme://user:password@host``; the rest of a
   ``Cookie:`` header; ``-u user:password``; ``mysql -ppassword``.
3. A value that was masked is hidden in the call's result and error message as well.
   Otherwise an ``echo password=words`` could put its own words before a reviewer
   without standing in the command that the guard compares them with.

Nothing else of a result is touched: what a tool shows unasked is the tool's affair.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

MASK = "***"

SECRET_WORDS = (
    "password", "passwd", "pwd", "passphrase", "secret", "token", "apikey", "accesskey",
    "secretkey", "privatekey", "signingkey", "credential", "credentials", "authorization",
    "cookie",
)  # fmt: skip

_SEPARATORS = re.compile(r"[^a-z0-9]+")
_WORDS = (
    r"(?:(?:pass|api|access|secret|private|signing)[_.-]?(?:key|phrase)"
    r"|password|passwd|pwd|secret|token|credentials?|authorization)"
)
_VALUE = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s"'`&;|,(){}\[\]<>]+)"""
_URL = r"(?P<before>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,256}:)(?P<secret>[^\s/]{1,512})(?=@)"
_COOKIE = r"(?P<before>(?<![\w-])(?:set-)?cookie\s{0,4}:\s{0,4})(?P<secret>[^\r\n\"']+)"
_ASSIGNED = (
    rf"(?P<before>(?<![\w.-])[\w.-]{{0,64}}{_WORDS}[\"']?\s{{0,4}}[=:]\s{{0,4}}"
    rf"(?:(?:bearer|basic|token|digest)\s{{1,4}})?)(?P<secret>{_VALUE})"
)
_OPTION = rf"(?P<before>(?<!\S)--?[\w-]{{0,64}}{_WORDS}\s{{1,4}})(?P<secret>(?!-){_VALUE})"
_USER = (
    r"(?P<before>(?<!\S)(?:-u|--user)(?:\s{1,4}|=)[\"']?[^\s:\"']{1,256}:(?!//))"
    r"(?P<secret>[^\s\"']{1,512})"
)
_MYSQL = r"(?P<before>\bmysql\w{0,16}\b[^\n|;]{0,200}?\s-p)(?P<secret>[^\s-]\S*)"
_TEXT_RULES = tuple(
    re.compile(rule, re.IGNORECASE) for rule in (_URL, _COOKIE, _ASSIGNED, _OPTION, _USER, _MYSQL)
)
_ANYWHERE = 8
"""A secret of so many characters is hidden inside words too; a shorter one only as a word."""


@dataclass(frozen=True)
class Masked:
    """Parameters without their secrets; ``secrets`` are the values that were taken out."""

    request: dict[str, JsonValue]
    secrets: frozenset[str]

    def hide(self, text: str) -> str:
        """Put ``***`` in the place of each secret that stands in a text."""
        for pattern in self._patterns():
            text = pattern.sub(MASK, text)
        return text

    def hide_in(self, value: Any) -> Any:
        """The same inside any JSON value; names of fields stay."""
        if not self.secrets:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {name: self.hide_in(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(item) for item in value]
        return value

    def _patterns(self) -> Iterable[re.Pattern[str]]:
        for secret in sorted(self.secrets, key=lambda one: (-len(one), one)):
            word = re.escape(secret)
            if len(secret) < _ANYWHERE:
                word = rf"(?<![^\W_]){word}(?![^\W_])"
            yield re.compile(word)


def is_secret_name(name: str) -> bool:
    """Tell whether a parameter of this name holds a secret by rule 1."""
    bare = _SEPARATORS.sub("", name.lower())
    return bare.endswith(SECRET_WORDS) or bool(re.search(r"(?:^|[_.-])pass$", name.lower()))


def mask(request: dict[str, Any]) -> Masked:
    """Mask a call's parameters, a JSON object; idempotent."""
    secrets: set[str] = set()
    masked = {name: _masked(name, value, secrets) for name, value in request.items()}
    return Masked(masked, frozenset(secrets))


def mask_text(text: str) -> str:
    """Mask a text by rule 2; for error messages, which have no parameter names."""
    return _mask_text(text, set())


def _masked(name: str, value: Any, secrets: set[str]) -> Any:
    if is_secret_name(name) and value is not None:
        secrets.update(_texts(value))
        return MASK
    if isinstance(value, str):
        return _mask_text(value, secrets)
    if isinstance(value, dict):
        return {inner: _masked(inner, item, secrets) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", item, secrets) for item in value]
    return value


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        if value.strip() and value != MASK:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _mask_text(text: str, secrets: set[str]) -> str:
    def masked(match: re.Match[str]) -> str:
        secret = match["secret"]
        quote = secret[0] if secret[0] in "\"'" else ""
        secrets.update(_texts(secret.strip("\"'")))
        return f"{match['before']}{quote}{MASK}{quote}"

    for rule in _TEXT_RULES:
        text = rule.sub(masked, text)
    return text
