"""Helpers for sentences that people read: a value kept short, what was expected, and the name that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def short(value: object, limit: int = 60) -> str:
    """A value as it may stand in a sentence: bounded, without control characters."""
    if isinstance(value, int) and value.bit_length() > 1_000:
        return f"a number of {int(value.bit_length() * 0.30103) + 1} digits"  # longer ones have no string
    text = str(value)
    if not text or not text.isprintable() or any(c.isspace() for c in text):
        text = repr(text)
    return text if len(text) <= limit else f"{text[: limit - 10]}...{text[-7:]}"


def meant(name: str, known: Iterable[str], ignore: str = "") -> str:
    """The known name that was probably meant, if any; `ignore`: characters that make no two names alike."""
    bare = {word.strip(ignore) if ignore else word: word for word in known}
    close = difflib.get_close_matches(name.strip(ignore) if ignore else name, bare, 1, 0.6)
    return f"; did you mean {bare[close[0]]}?" if close else ""


def near(name: str, known: Iterable[str], ignore: str = "") -> str:
    """The name, and the one that was probably meant."""
    return short(name) + meant(name, known, ignore)


def one_of(value: object, known: Iterable[Any]) -> str:
    """The words that may stand there, and the one that was probably meant; an empty one says nothing."""
    words = [str(word) for word in known if word != ""]
    listed = " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}"
    return listed + meant(str(value), words)


def bounds(ge: float | None, le: float | None = None, gt: float | None = None, lt: float | None = None) -> str:
    """The bounds of a number, to stand behind "a number"."""
    if ge is not None and le is not None:
        return f" from {_number(ge)} to {_number(le)}"
    said = (("of at least", ge), ("above", gt), ("at most", le), ("below", lt))
    words = [f"{word} {_number(bound)}" for word, bound in said if bound is not None]
    return f" {' and '.join(words)}" if words else ""


def _number(bound: float) -> str:
    if isinstance(bound, float) and not bound.is_integer():
        return f"{bound:.9f}".rstrip("0")
    return str(int(bound))
