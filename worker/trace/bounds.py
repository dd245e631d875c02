"""Texts of bounded size that are always valid UTF-8."""


def clean(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 can hold, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut(text: str, most_bytes: int) -> tuple[str, bool]:
    """The beginning of a text in at most ``most_bytes`` of UTF-8, and whether it was cut.

    No character is split. The text comes back clean of lone surrogates.
    """
    # A character has one byte at least, so the rest of a huge text need not be looked at.
    text, longer = clean(text[: most_bytes + 1]), len(text) > most_bytes
    encoded = text.encode()
    if len(encoded) <= most_bytes and not longer:
        return text, False
    return encoded[:most_bytes].decode(errors="ignore"), True
