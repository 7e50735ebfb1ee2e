"""Messages that are done with: an old report must not bring one back.

Kept per life of a sender as the highest counter up to which all are gone, and the few gone beyond it, so that memory
does not grow with the run.  A tag is (counter, sender, life), counters from 1.
"""

from __future__ import annotations

from typing import Any, Protocol

Tag = tuple[int, int, int]

BEYOND_MAX = 1_024  # more than that beyond a gap: who is in the gap is gone as well
LIVES_MAX = 4  # of one sender


class Gone(Protocol):
    """What a site asks of its tombs; a plain set is one too."""

    def __contains__(self, tag: Any, /) -> bool: ...
    def add(self, tag: Any, /) -> None: ...


class Tombs:
    """Of one site."""

    __slots__ = ("_beyond", "_upto")

    def __init__(self) -> None:
        self._upto: dict[tuple[int, int], int] = {}
        self._beyond: dict[tuple[int, int], set[int]] = {}

    def __contains__(self, tag: Tag) -> bool:
        counter, sender, life = tag
        key = (sender, life)
        return counter <= self._upto.get(key, 0) or counter in self._beyond.get(key, ())

    def add(self, tag: Tag) -> None:
        counter, sender, life = tag
        key = (sender, life)
        if key not in self._upto:
            self._upto[key], self._beyond[key] = 0, set()
            self._forget_lives(sender)
            if key not in self._upto:
                return
        upto, beyond = self._upto[key], self._beyond[key]
        if counter > upto:
            beyond.add(counter)
        if len(beyond) > BEYOND_MAX:
            upto = min(beyond) - 1
        while upto + 1 in beyond:
            upto += 1
            beyond.discard(upto)
        self._upto[key] = upto

    def _forget_lives(self, sender: int) -> None:
        """Of a sender's lives the newest count; a message of an older one is taken for gone by `older`."""
        lives = sorted(life for who, life in self._upto if who == sender)
        for life in lives[:-LIVES_MAX]:
            del self._upto[sender, life], self._beyond[sender, life]

    def size(self) -> int:
        return len(self._upto) + sum(map(len, self._beyond.values()))
