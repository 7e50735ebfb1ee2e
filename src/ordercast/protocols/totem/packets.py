"""Packets of the token ring: the token, frames, frames of the old ring carried on the new one, hold cancel.

Paper: "Performance engineering of the Totem group communication system" (1998), section 2.1.  All numbers are 64 bits
wide on the wire and never wrap; every count is bounded before anything is allocated.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ordercast.contract import Packet
from ordercast.errors import WireError
from ordercast.limits import MEMBERS_MAX, STAMP_MAX
from ordercast.types import U16, U32, U63, Frame, MemberId, ViewId

REQUESTS_MAX = 1_024  # what a token may carry at all; the option `rtr_max` is what a member writes
SEQ_MAX = 2**63 - 2**32  # a ring that counted this far would be older than its hardware

Seq = Annotated[int, Meta(ge=0, le=SEQ_MAX)]


class Token(Packet, frozen=True, array_like=True, gc=False, tag=1):
    """Unicast to the next member; the right to send, the numbers, and what everybody has received."""

    ring: ViewId
    to: U32  # its addressee, for the copies that go by multicast
    token_seq: U63
    seq: Seq  # highest number on the ring
    aru: Seq  # everything up to it may have been received everywhere
    aru_id: U32 | None = None  # who lowered aru
    rtr: Annotated[tuple[Seq, ...], Meta(max_length=REQUESTS_MAX)] = ()
    fcc: U32 = 0  # transmissions of the last rotation, by all
    backlog: U32 = 0  # frames waiting, by all, as of their last visits
    room: U32 | None = None  # least free delivery space of any member; none: no limit
    room_id: U32 | None = None  # whose it is
    retrans_flg: bool = False  # recovery: somebody still has frames of its old ring to send
    timestamp: U63 = 0  # several rings: Lamport stamp

    def check(self) -> None:
        if self.aru > self.seq:
            raise WireError("token", "aru above seq")
        if self.timestamp > STAMP_MAX:
            raise WireError("stamp", str(self.timestamp))
        if (self.room is None) is not (self.room_id is None):
            raise WireError("token", "room without its owner")


class Data(Packet, frozen=True, array_like=True, gc=False, tag=2):
    """A frame with its place on the ring.  Stored once, as this object, at every member."""

    ring: ViewId
    seq: Seq
    frame: Frame
    stamp: U63 = 0  # several rings: timestamp and source ring make the order
    source: U16 = 0

    def check(self) -> None:
        if self.stamp > STAMP_MAX:
            raise WireError("stamp", str(self.stamp))
        self.frame.check()


class Recovered(Packet, frozen=True, array_like=True, gc=False, tag=3):
    """A frame of an old ring, carried on the new one so that all who come from the old ring have it."""

    ring: ViewId
    seq: Seq
    old: Data

    def check(self) -> None:
        self.old.check()


class HoldCancel(Packet, frozen=True, array_like=True, gc=False, tag=4):
    """Somebody has something to send: the representative passes a held token on."""

    ring: ViewId


class RingEntry(Struct, frozen=True, array_like=True, gc=False):
    """What a member writes on the commit token of its old ring."""

    ring: ViewId
    aru: Seq
    high_delivered: Seq
    safe_upto: Seq
    received: bool  # it finished an exchange of that ring's frames
    obligation: Annotated[tuple[U32, ...], Meta(max_length=MEMBERS_MAX)]

    def possible(self, writer: MemberId, members: tuple[MemberId, ...]) -> bool:
        """Whether a member of that ring can have written it."""
        mine = writer in members and set(self.obligation).issubset(members)
        return mine and max(self.high_delivered, self.safe_upto) <= self.aru


PACKETS: tuple[type[Packet], ...] = (Token, Data, Recovered, HoldCancel)
