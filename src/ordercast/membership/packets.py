"""Packets of the membership: who hears whom (Hello, Join), and the token that makes a view (CommitToken).

Rows are packed: `ids` lists every member named in the packet, a row names its member and its `hears` by index (bit i of
the little-endian bitmap = ids[i]), and each distinct view id appears once.  Rows are independent of each other, so a
table that does not fit is spread over several packets.  A Leave is a Hello whose own row hears nobody.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ordercast.contract import Packet
from ordercast.errors import WireError
from ordercast.limits import ENTRY_BYTES_MAX, MEMBERS_MAX, RING_SEQ_MAX, entry_bytes_max
from ordercast.membership.cause import ToldCause
from ordercast.types import U8, U16, U32, U63, ViewId

VERSION_MAX = 2**31  # leaves room to contradict

Ids = Annotated[tuple[U32, ...], Meta(max_length=MEMBERS_MAX)]
Views = Annotated[tuple[ViewId, ...], Meta(max_length=MEMBERS_MAX)]


class PackedRow(Struct, frozen=True, array_like=True, gc=False):
    member: U8  # index into ids
    incarnation: U63
    version: U32
    view: U8  # index into views
    working: bool
    hears: Annotated[bytes, Meta(max_length=MEMBERS_MAX // 8)]


class PackedRows(Struct, frozen=True, array_like=True, gc=False):
    ids: Ids
    views: Views
    rows: Annotated[tuple[PackedRow, ...], Meta(max_length=MEMBERS_MAX)]

    def check(self) -> None:
        if len(set(self.ids)) != len(self.ids):
            raise WireError("rows", "an id twice")
        for row in self.rows:
            if row.member >= len(self.ids) or row.view >= len(self.views):
                raise WireError("rows", "index out of range")
            if int.from_bytes(row.hears, "little") >> len(self.ids):
                raise WireError("rows", "hears out of range")
            if row.version > VERSION_MAX:
                raise WireError("rows", "version")
        if any(view.seq > RING_SEQ_MAX for view in self.views):
            raise WireError("rows", "ring_seq")


class Got(Struct, frozen=True, order=True, array_like=True, gc=False):
    """The last token a member accepted, in the order in which tokens come: (ring, 0 commit / 1 regular, hop / seq)."""

    ring_id: ViewId
    regular: Annotated[int, Meta(ge=0, le=1)]
    number: U63


class Rival(Struct, frozen=True, array_like=True, gc=False):
    """Another life of the sender's id is about; and what the sender was when they met."""

    incarnation: U63
    together: bool  # in a view with others
    age_ns: U63


class Hello(Packet, frozen=True, array_like=True, gc=False, tag=40):
    """Multicast by every member each T_hello outside Gather, and when its own row changed."""

    view: ViewId
    rows: PackedRows
    rival: Rival | None = None

    def check(self) -> None:
        self.rows.check()


class Join(Packet, frozen=True, array_like=True, gc=False, tag=41):
    """Multicast in Gather: what I propose, which token I saw last, and the rows."""

    number: U32  # counts the Joins of one life; one that was overtaken by a later one says nothing any more
    ring_seq: U63
    proposal: Ids
    got: Got | None
    rows: PackedRows
    timeout_ns: U63  # T: all members use one
    cause: ToldCause  # why I gather, for those who follow

    def check(self) -> None:
        self.rows.check()
        if self.ring_seq > RING_SEQ_MAX:
            raise WireError("join", "ring_seq")
        if list(self.proposal) != sorted(set(self.proposal)):
            raise WireError("join", "proposal not sorted")


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """What one member wrote on the commit token; `state` is its owner's."""

    incarnation: U63
    state: Annotated[bytes, Meta(max_length=ENTRY_BYTES_MAX)]


class CommitToken(Packet, frozen=True, array_like=True, gc=False, tag=42):
    """Goes twice round the sorted members: first it collects entries, then it shows them to all.

    `hop` counts the visits made; entries[i] belongs to members[i]; `to` names the addressee of a multicast copy.
    """

    ring_id: ViewId
    members: Annotated[tuple[U32, ...], Meta(min_length=1, max_length=MEMBERS_MAX)]
    hop: U16
    to: U32
    entries: Annotated[tuple[Entry, ...], Meta(max_length=MEMBERS_MAX)]

    def check(self) -> None:
        if list(self.members) != sorted(set(self.members)):
            raise WireError("commit token", "members not sorted")
        if self.ring_id.rep != self.members[0] or self.ring_id.seq > RING_SEQ_MAX:
            raise WireError("commit token", "ring_id")
        if not 1 <= self.hop <= 2 * len(self.members) or len(self.entries) != min(self.hop, len(self.members)):
            raise WireError("commit token", "hop")
        if self.to != self.members[self.hop % len(self.members)]:
            raise WireError("commit token", "addressee")
        share = entry_bytes_max(len(self.members))
        if any(len(entry.state) > share for entry in self.entries):
            raise WireError("commit token", "entry")


PACKETS: tuple[type[Packet], ...] = (Hello, Join, CommitToken)
