"""What members of several rings tell each other, in frames of their own beside those of the application.

Such a frame is stamped 0 and comes from source 0.  Gateways carry all but Vectors to their other rings, as they are.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ordercast.errors import WireError
from ordercast.limits import MEMBERS_MAX, RINGS_MAX, STAMP_MAX
from ordercast.types import U16, U32, U63, Frame, Identity, Service, ViewId

SOURCES_MAX = 4 * RINGS_MAX  # a net in parts has several rings at once
KEY_BYTES = 8

Stamps = Annotated[tuple[U63, ...], Meta(max_length=SOURCES_MAX)]
Key = Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]


class RingView(Struct, frozen=True, order=True, array_like=True, gc=False):
    """A ring as one of its members sees it: the number of its net, its id, who is on it."""

    number: Annotated[int, Meta(ge=1, le=RINGS_MAX)]
    id: ViewId
    members: Annotated[tuple[U32, ...], Meta(min_length=1, max_length=MEMBERS_MAX)]


class State(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Where its author stands: its rings now, and what it holds of the topology it was in.

    Per source of that topology: `known`, everything up to it is here; `top`, the last that is; `extra`, a digest of
    those behind a hole, 0 for none; `stable`, everything up to it is held on every ring.
    """

    stamp: U63  # of its author's clock: the newest counts
    rings: Annotated[tuple[RingView, ...], Meta(min_length=1, max_length=RINGS_MAX)]
    view: ViewId | None = None
    known: Stamps = ()
    top: Stamps = ()
    extra: Annotated[tuple[U32, ...], Meta(max_length=SOURCES_MAX)] = ()
    stable: Stamps = ()
    reason: Annotated[str, Meta(max_length=64)] = ""  # why its ring changed, and on whose account
    of: U32 | None = None

    def check(self) -> None:
        size = len(self.known)
        if not size == len(self.top) == len(self.extra) == len(self.stable) or (size > 0) is (self.view is None):
            raise WireError("state", "vectors of different lengths")
        if len({ring.number for ring in self.rings}) < len(self.rings):
            raise WireError("state", "two rings on one net")


class Vector(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A Guarantee Vector message: of these sources nothing stamped so or earlier comes to this ring any more.

    rows: which ring holds what safely, as far as its author knows.  need: the latest stamp anybody waits for.
    controls: of these nothing stamped so or earlier comes any more that changes a process group.
    """

    view: ViewId
    need: U63
    entries: Annotated[tuple[tuple[U16, U63], ...], Meta(max_length=SOURCES_MAX)] = ()
    rows: Annotated[tuple[tuple[U16, Stamps], ...], Meta(max_length=SOURCES_MAX)] = ()
    controls: Annotated[tuple[tuple[U16, U63], ...], Meta(max_length=SOURCES_MAX)] = ()


class Done(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Its author holds all that the plan named `key` asks of it."""

    stamp: U63
    key: Key


class Supply(Struct, frozen=True, array_like=True, gc=False, tag=4):
    """A frame of an old topology that not all who come along have; number `index` of `total` of its author."""

    stamp: U63
    key: Key
    total: U32
    index: U32 = 0
    view: ViewId | None = None
    source: U16 = 0
    at: U63 = 0  # the frame's own stamp, and its place on a ring of its author
    ring: U16 = 0
    epoch: U63 = 0
    seq: U63 = 0
    frame: Frame | None = None

    def check(self) -> None:
        if (self.frame is None) is not (self.total == 0) or (self.total and self.index >= self.total):
            raise WireError("supply", "count")
        if self.frame is not None:
            self.frame.check()


Bodies = State | Vector | Done | Supply
_decoder: msgspec.msgpack.Decoder[Bodies] = msgspec.msgpack.Decoder(Bodies)
_encode = msgspec.msgpack.Encoder().encode
SUPPLY_BYTES = 176  # what a Supply takes beside the frame it carries
AGREED = int(Service.AGREED)


def frame_of(body: Bodies, author: Identity) -> Frame:
    data = _encode(body)
    return Frame(author.me, author.incarnation, 0, 1, AGREED, len(data).to_bytes(4, "little"), data, control=True)


def body_of(frame: Frame) -> Bodies:
    """Raises WireError for what is none, or cannot be."""
    try:
        body = _decoder.decode(frame.data)
    except msgspec.MsgspecError as why:
        raise WireError("body", str(why)) from None
    if not isinstance(body, Done | Vector):
        body.check()
    if (body.need if isinstance(body, Vector) else body.stamp) > STAMP_MAX:
        raise WireError("stamp", type(body).__name__)
    return body
