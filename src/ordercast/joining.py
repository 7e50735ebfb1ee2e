"""What a ring and the layer that joins several rings say to each other, beyond the contract of every layer."""

from __future__ import annotations

from ordercast.contract import Event
from ordercast.types import MemberId


class SafeUpTo(Event, frozen=True, gc=False):
    """Everybody in the view has all frames of this ring up to `seq`; for a layer that stands on several rings."""

    seq: int


class Progress(Event, frozen=True, gc=False):
    """Nothing stamped `timestamp` or earlier comes from this ring any more; for a layer that stands on several.

    seq: the ring's highest number then.  full: some reader on it has no room left.
    """

    timestamp: int
    seq: int = 0
    full: bool = False


class Wake(Event, frozen=True, gc=False):
    """There is something to take for the ring below; for a layer that stands on several."""


class Audience(Event, frozen=True, gc=False):
    """Who is in a process group now, at this place of the order; no group named: whether all groups are known here."""

    group: str = ""
    members: tuple[MemberId, ...] = ()
    settled: bool = False
