"""Helpers for sentences that people read: a value kept short, and the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def short(value: object, limit: int = 60) -> str:
    """A value as it may stand in a sentence: bounded, without control characters."""
    text = str(value)
    if not text or not text.isprintable() or any(c.isspace() for c in text):
        text = repr(text)
    return text if len(text) <= limit else f"{text[: limit - 10]}...{text[-7:]}"


def near(name: str, known: Iterable[str], ignore: str = "") -> str:
    """The name, and the one that was probably meant; `ignore`: characters that make no two names alike."""
    bare = {word.strip(ignore) if ignore else word: word for word in known}
    close = difflib.get_close_matches(name.strip(ignore) if ignore else name, bare, 1, 0.6)
    return f"{short(name)}; did you mean {bare[close[0]]}?" if close else short(name)
