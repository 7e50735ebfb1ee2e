"""The words of ordercast as types: members, frames, messages, views.

The application *submits* and is *delivered* messages; protocols *order* frames; layers exchange typed packets;
the network *transmits* and *receives* datagrams.  Every module below uses these names for these things.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, pairwise
from struct import Struct as Cutter
from struct import unpack
from typing import Annotated

from msgspec import Meta, Struct

from ordercast.errors import WireError
from ordercast.limits import (
    FRAGMENTS_MAX,
    FRAME_MESSAGES_MAX,
    GROUP_NAME_BYTES_MAX,
    GROUPS_PER_MESSAGE_MAX,
    STORED_NUMBER_MAX,
)

MemberId = int  # u32, unique and stable; rank = index in the sorted member list of a view
Incarnation = int  # u64, larger at each start: max(stored + 1, wall clock in ns)
Nanoseconds = int  # the member's own monotonic clock
NetId = int  # which of a member's networks; 0 unless it sits on several

ALL_CONTINUE, PRIMARY_MAJORITY = POLICIES = "evs-all-continue", "primary-majority"  # what parts of a split group may do

U8 = Annotated[int, Meta(ge=0, lt=2**8)]
U16 = Annotated[int, Meta(ge=0, lt=2**16)]
U32 = Annotated[int, Meta(ge=0, lt=2**32)]
U63 = Annotated[int, Meta(ge=0, le=2**63 - 1)]  # what msgspec can bound; larger integers are refused on the wire
GroupName = Annotated[str, Meta(min_length=1, max_length=GROUP_NAME_BYTES_MAX)]


class Service(IntEnum):
    """What is promised of a message's delivery; each includes those before it, QUASI stands apart (DPG)."""

    FIFO = 1
    CAUSAL = 2
    AGREED = 3
    SAFE = 4
    QUASI = 5

    @property
    def word(self) -> str:
        return self.name.lower()


class ViewKind(IntEnum):
    REGULAR = 1
    TRANSITIONAL = 2


class ViewId(Struct, frozen=True, order=True, array_like=True, gc=False):
    """(ring sequence number, representative), compared as a pair; used once, for ever."""

    seq: Annotated[int, Meta(ge=0, le=STORED_NUMBER_MAX)]
    rep: U32

    def __str__(self) -> str:
        return f"{self.seq}.{self.rep}"


class Peer(Struct, frozen=True, order=True, array_like=True, gc=False):
    """One life of one member, as every datagram's header names its sender."""

    id: MemberId
    incarnation: Incarnation


class MessageId(Struct, frozen=True, order=True, array_like=True, gc=False):
    """A message's name for ever: its sender, that sender's life, and its number in it, from 1."""

    sender: MemberId
    incarnation: Incarnation
    counter: int

    def __str__(self) -> str:
        return f"{self.sender}.{self.counter}"


class Cause(Struct, frozen=True, gc=False):
    """Why a view came: what happened, to whom, which timer said so, on which evidence."""

    reason: str  # start, token loss, silence, leave, crash hint, join, merge, stuck receiver, ...
    member: MemberId | None = None
    timer: str = ""
    evidence: str = ""

    def __str__(self) -> str:
        words = [self.reason]
        if self.member is not None:
            words.append(f"of member {self.member}")
        if self.timer:
            words.append(f"({self.timer})")
        if self.evidence:
            words.append(f": {self.evidence}")
        return " ".join(words).replace(" :", ":")


class View(Struct, frozen=True):
    """An agreed set of members.  `trans`: who came along from `previous`; `components`: the old views behind it."""

    id: ViewId
    kind: ViewKind
    members: tuple[MemberId, ...]
    trans: tuple[MemberId, ...] = ()
    components: tuple[tuple[ViewId | None, tuple[MemberId, ...]], ...] = ()
    previous: ViewId | None = None
    cause: Cause = Cause("start")
    primary: bool | None = None  # whether this part of a split group may go on; None: no policy says


class Frame(Struct, frozen=True, array_like=True, gc=False):
    """1..k whole messages of one sender, service and set of groups, or one fragment of one message.

    The unit of all protocol work.  `lengths` is the table of message lengths (u32, little endian), `data` the messages
    one after the other; a fragment has an empty table.  `counter` is the number of the first message in it.
    """

    sender: U32
    incarnation: U63
    counter: U63
    count: Annotated[int, Meta(ge=1, le=FRAME_MESSAGES_MAX)]
    service: Annotated[int, Meta(ge=1, le=5)]
    lengths: Annotated[bytes, Meta(max_length=4 * FRAME_MESSAGES_MAX)]
    data: bytes
    groups: Annotated[tuple[GroupName, ...], Meta(max_length=GROUPS_PER_MESSAGE_MAX)] = ()
    part: U16 = 0  # fragment number, from 0
    parts: Annotated[int, Meta(ge=1, le=FRAGMENTS_MAX)] = 1  # 1: whole messages
    control: bool = False  # of the groups layer, never handed to the application

    def check(self) -> None:
        """Raise WireError if table, count and bytes do not fit each other; for frames that came over a network."""
        if self.parts == 1:
            if self.count == 1:
                if self.lengths != len(self.data).to_bytes(4, "little"):
                    raise WireError("frame", "lengths")
            elif len(self.lengths) != 4 * self.count or sum(array("I", self.lengths)) != len(self.data):
                raise WireError("frame", "lengths")
        elif self.lengths or self.count != 1 or self.part >= self.parts:
            raise WireError("frame", "fragment")

    @property
    def whole(self) -> bool:
        return self.parts == 1

    @property
    def last(self) -> bool:
        return self.part == self.parts - 1


class Message(Struct, frozen=True, gc=False):
    """One delivered message, as the library hands it out."""

    sender: MemberId
    incarnation: Incarnation
    counter: int
    data: bytes
    service: Service
    groups: tuple[str, ...] = ()
    certainty: str | None = None  # of a quasi order: marked, expired or late

    @property
    def id(self) -> MessageId:
        return MessageId(self.sender, self.incarnation, self.counter)


class Batch(Struct, frozen=True, gc=False):
    """The messages of one frame, or one message put together from its fragments: one buffer and a table."""

    sender: MemberId
    incarnation: Incarnation
    counter: int
    count: int
    service: int
    lengths: bytes
    data: bytes
    groups: tuple[str, ...] = ()
    certainty: str | None = None  # of a quasi order

    def payloads(self) -> list[bytes]:
        """The messages' bytes, in order."""
        count, lengths = self.count, self.lengths
        if count == 1:
            return [self.data]
        if lengths == lengths[:4] * count:
            return list(_cutter(int.from_bytes(lengths[:4], "little"), count)(self.data))
        return list(unpack("s".join(map(str, array("I", lengths))) + "s", self.data))

    def views(self) -> list[memoryview]:
        """The messages' bytes, in order, without a copy: cheaper than `payloads` from about a kilobyte on."""
        view = memoryview(self.data)
        if self.count == 1:
            return [view]
        ends = list(accumulate(array("I", self.lengths), initial=0))
        return [view[start:end] for start, end in pairwise(ends)]

    def messages(self) -> Iterator[Message]:
        service, groups = Service(self.service), self.groups
        for k, data in enumerate(self.payloads()):
            yield Message(self.sender, self.incarnation, self.counter + k, data, service, groups, self.certainty)


@lru_cache(64)
def _cutter(length: int, count: int) -> Callable[[bytes], tuple[bytes, ...]]:
    """Cuts a buffer into equal messages; one call in C is several times cheaper than slicing in a loop."""
    cutter: Callable[[bytes], tuple[bytes, ...]] = Cutter(f"{length}s" * count).unpack
    return cutter


class Submission(Struct, frozen=True, gc=False):
    """What one submit call hands in: accepted whole or refused whole."""

    payloads: list[bytes]
    service: Service = Service.AGREED
    groups: tuple[str, ...] = ()


class Identity(Struct, frozen=True):
    """Who a core is, told by its driver at start."""

    me: MemberId
    incarnation: Incarnation
    members: tuple[MemberId, ...]  # the configured ids, sorted
    group: str = "ordercast"
    ring_seq: int = 0  # first ring sequence number: wall clock in us, rounded up to a multiple of 4
