"""Packets of the reliable causal layer.  Headers name sender and incarnation; ranks index the sorted view."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from msgspec import Meta

from ordercast.contract import Body, Packet
from ordercast.errors import WireError
from ordercast.limits import MEMBERS_MAX, NACK_RANGES_MAX
from ordercast.types import U8, U16, U63, ViewId

B = TypeVar("B", bound=Body)
Vector = Annotated[tuple[U63, ...], Meta(min_length=1, max_length=MEMBERS_MAX)]


class Data(Packet, Generic[B], frozen=True, gc=False, tag=20):
    """One multicast: `vec[q]` is the highest seq of rank q that it follows, its own entry is its seq."""

    view: ViewId
    seq: U63
    vec: Vector
    window: U16  # how many unstable frames of one sender this member can take
    body: B

    def check(self) -> None:
        if self.seq == 0 or self.seq not in self.vec:
            raise WireError("vector", f"own entry is not seq {self.seq}")
        self.body.check()


class Retrans(Packet, Generic[B], frozen=True, gc=False, tag=21):
    """An original Data of `rank`, unchanged, from whoever still buffers it."""

    rank: U8
    data: Data[B]

    def check(self) -> None:
        self.data.check()
        if self.rank >= len(self.data.vec) or self.data.vec[self.rank] != self.data.seq:
            raise WireError("vector", "own entry is not seq")


class Status(Packet, frozen=True, gc=False, tag=22):
    """What this member has inserted of each rank: reports, never votes."""

    view: ViewId
    have: Vector
    window: U16


class Nack(Packet, frozen=True, gc=False, tag=23):
    """Wanted: (rank, from, to) ranges.  `again`: answer by multicast, the direct way may be broken."""

    view: ViewId
    ranges: Annotated[tuple[tuple[U8, U63, U63], ...], Meta(min_length=1, max_length=NACK_RANGES_MAX)]
    again: bool = False

    def check(self) -> None:
        before = (0, 0)  # ranges ascend, so that all together are no longer than what there is
        for rank, first, last in self.ranges:
            if last < first or (rank, first) <= before or first == 0:
                raise WireError("range", "empty, backward or overlapping")
            before = (rank, last)
