"""What a layer says to its driver of files of its own, beside single values (`contract.Store`): they grow, and go.

The driver does it in the order in which it is said, and never blocks on it.  What was appended, renamed or removed is
certain to be on disk when a later `Sync` is answered; a crash before that leaves some of it, cut anywhere.
"""

from __future__ import annotations

from ordercast.contract import Action


class Append(Action, frozen=True, gc=False):
    """At the end of this file, which begins with it."""

    file: str
    data: bytes


class Rename(Action, frozen=True, gc=False):
    """In place of whatever had that name."""

    file: str
    to: str


class Remove(Action, frozen=True, gc=False):
    file: str


class Sync(Action, frozen=True, gc=False):
    """Answered by stored(key, number), or by store_failed if anything since the last one failed."""

    key: str
    number: int
