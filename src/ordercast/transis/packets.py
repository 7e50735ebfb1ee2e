"""Packets of the view-synchronous layer.  Headers name sender and incarnation; ranks index the sorted view.

In a view: Data, Retrans, Status, Nack; between two members: Unicast, UAck.  While a view is formed: FlushToken, the
barrier that goes round, and what those exchange who come from one old view: FlushData, FlushState, FlushNack.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta

from ordercast.contract import Body, Packet
from ordercast.errors import WireError
from ordercast.limits import FLUSH_PARTS_MAX, MEMBERS_MAX, NACK_RANGES_MAX
from ordercast.membership import PACKETS as MEMBERSHIP_PACKETS
from ordercast.types import U8, U16, U32, U63, ViewId

B = TypeVar("B", bound=Body)
Vector = Annotated[tuple[U63, ...], Meta(min_length=1, max_length=MEMBERS_MAX)]
Acks = Annotated[tuple[U63, ...], Meta(max_length=MEMBERS_MAX)]
Ids = Annotated[tuple[U32, ...], Meta(max_length=MEMBERS_MAX)]
Range = tuple[U8, U63, U63]  # rank, from, to


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
        _check_original(self.rank, self.data)


class Status(Packet, frozen=True, gc=False, tag=22):
    """What this member has inserted of each rank: reports, never votes."""

    view: ViewId
    have: Vector
    window: U16
    u_in: Acks = ()  # unicasts received in order, of each rank; empty: of none
    wants: bool = False  # somebody's acknowledgement has been missing for a while: say what you have

    def check(self) -> None:
        if self.u_in and len(self.u_in) != len(self.have):
            raise WireError("vector", "acknowledgements of another view")


class Nack(Packet, frozen=True, gc=False, tag=23):
    """Wanted: (rank, from, to) ranges.  `again`: answer by multicast, the direct way may be broken."""

    view: ViewId
    ranges: Annotated[tuple[Range, ...], Meta(min_length=1, max_length=NACK_RANGES_MAX)]
    again: bool = False

    def check(self) -> None:
        _check_ranges(self.ranges)


class Unicast(Packet, Generic[B], frozen=True, gc=False, tag=24):
    """Number `useq` from its sender to `to`; `uack`: all of `to`'s own up to here have come."""

    view: ViewId
    to: U32
    useq: U63
    uack: U63
    body: B

    def check(self) -> None:
        if self.useq == 0:
            raise WireError("unicast", "numbers count from 1")
        self.body.check()


class UAck(Packet, frozen=True, gc=False, tag=25):
    """Unicasts of `to` received in order, when nothing else carries it; with 0 a knock at a door that is silent."""

    view: ViewId
    to: U32
    uack: U63


class FlushToken(Packet, frozen=True, gc=False, tag=26):
    """The barrier of a new view: goes round until all are done, then once more to say so."""

    ring_id: ViewId
    to: U32
    number: U63
    done: Ids
    install: bool = False


class FlushData(Packet, Generic[B], frozen=True, gc=False, tag=27):
    """An original Data of the old view that somebody who comes along lacks."""

    ring_id: ViewId
    rank: U8  # of its sender in the old view
    data: Data[B]

    def check(self) -> None:
        _check_original(self.rank, self.data)


class FlushState(Packet, frozen=True, gc=False, tag=28):
    """What the protocol above `member` contributes to the flush, from it or from whoever has it; in parts."""

    ring_id: ViewId
    view: ViewId
    member: U32
    part: U16
    parts: Annotated[int, Meta(ge=1, le=FLUSH_PARTS_MAX)]
    data: bytes

    def check(self) -> None:
        if self.part >= self.parts:
            raise WireError("flush state", f"part {self.part} of {self.parts}")


class FlushNack(Packet, frozen=True, gc=False, tag=29):
    """Still missing, to all; `turn` counts the rounds of this asker and says whose turn it is to answer."""

    ring_id: ViewId
    view: ViewId
    ranges: Annotated[tuple[Range, ...], Meta(max_length=NACK_RANGES_MAX)]
    states: Ids
    turn: U16

    def check(self) -> None:
        _check_ranges(self.ranges)


def _check_original(rank: int, data: Data[Any]) -> None:
    data.check()
    if rank >= len(data.vec) or data.vec[rank] != data.seq:
        raise WireError("vector", "own entry is not seq")


def _check_ranges(ranges: tuple[Range, ...]) -> None:
    before = (0, 0)  # ranges ascend, so that all together are no longer than what there is
    for rank, first, last in ranges:
        if last < first or (rank, first) <= before or first == 0:
            raise WireError("range", "empty, backward or overlapping")
        before = (rank, last)


def packets(bodies: Any, unicasts: Any = None) -> tuple[type[Packet], ...]:
    """What a protocol with these bodies (a type, or several joined by |) puts on the wire through this layer."""
    own: tuple[Any, ...] = (Data[bodies], Retrans[bodies], FlushData[bodies], Status, Nack, UAck)
    if unicasts is not None:
        own += (Unicast[unicasts],)
    return (*own, FlushToken, FlushState, FlushNack, *MEMBERSHIP_PACKETS)
