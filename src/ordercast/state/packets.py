"""What replicas say to each other: ordered messages, which framing and groups pass through untouched.

They travel as control messages (`contract.Submit`), so the application's messages keep their own numbers; the byte
before each of them says to the groups layer that it is for the layer above.  All but calls name the view they are said
in, and mean nothing in another one.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ordercast.contract import Action, Down, Submit, dropped
from ordercast.groups import FOR_ABOVE
from ordercast.limits import CONFIGURATION_MAX, HISTORY_CALLS_MAX, MARKS_MAX, MESSAGE_BYTES_MAX, WITHIN_MAX
from ordercast.state.machine import Digest, Mark
from ordercast.types import U8, U32, U63, Peer, Service, Submission, ViewId

Marks = Annotated[tuple[Mark, ...], Meta(max_length=MARKS_MAX + CONFIGURATION_MAX)]
Piece = Annotated[bytes, Meta(max_length=MESSAGE_BYTES_MAX)]


class Said(Struct, frozen=True, array_like=True, gc=False):
    """Base of what replicas say."""


class Called(Said, frozen=True, array_like=True, gc=False, tag=1):
    """Calls of one member, first .. first + len - 1 by its own count.  Its bytes are what histories are made of."""

    first: U63
    time_ns: int
    durable: bool
    payloads: Annotated[list[bytes], Meta(max_length=HISTORY_CALLS_MAX)]


class Arrived(Said, frozen=True, array_like=True, gc=False, tag=2):
    """Never sent: the step that each member takes by itself after a decision; who is in the view."""

    view: ViewId
    peers: Annotated[tuple[Peer, ...], Meta(max_length=CONFIGURATION_MAX)]


class Offer(Said, frozen=True, array_like=True, gc=False, tag=3):
    """A member's state, as it enters `view`: epoch, position and digest, and what it knows of others."""

    view: ViewId
    digest: Digest  # of the machine
    merges: bool
    epoch: ViewId
    n: U63
    regular: U63
    h: Digest
    knows: Mark | None
    within: Annotated[tuple[ViewId, ...], Meta(max_length=WITHIN_MAX)]
    size: U63
    disk: bool  # its member has one
    short: bool = False  # its log was altered: it may lack what it once vouched for

    @property
    def place(self) -> tuple[int, bytes]:
        return self.n, self.h


class Holds(Said, frozen=True, array_like=True, gc=False, tag=4):
    """Where Offers differ: for each place on offer whether its sender's history has it (`NO`, `YES`, `TOO_OLD`)."""

    view: ViewId
    places: Annotated[tuple[U8, ...], Meta(max_length=2 * CONFIGURATION_MAX)]
    marks: Marks


class Chunk(Said, frozen=True, array_like=True, gc=False, tag=5):
    """The next part of a state.  `serial`: which state of this view's; `part`: whose, when states are merged."""

    view: ViewId
    serial: U32
    part: U8
    index: U32
    head: list[Piece]  # of the history
    pieces: list[Piece]  # of the snapshot
    digest: Digest = b""  # of all pieces, on the last one


class Ack(Said, frozen=True, array_like=True, gc=False, tag=6):
    """Its sender has every chunk of that state up to `index`."""

    view: ViewId
    serial: U32
    part: U8
    index: U32


class Again(Said, frozen=True, array_like=True, gc=False, tag=7):
    """Too much waits at its sender: it needs a later state."""

    view: ViewId


class Complete(Said, frozen=True, array_like=True, gc=False, tag=8):
    """Its sender took the state over, and has applied what followed."""

    view: ViewId
    n: U63
    h: Digest


class Ready(Said, frozen=True, array_like=True, gc=False, tag=9):
    """Its sender holds every state that is to be merged; `serial`: which parts of this view's."""

    view: ViewId
    serial: U32 = 0


class Synced(Said, frozen=True, array_like=True, gc=False, tag=10):
    """Its sender has all calls up to `n` on disk, and the decision of this view."""

    view: ViewId
    n: U63


class Without(Said, frozen=True, array_like=True, gc=False, tag=11):
    """Its sender is no replica any more."""

    view: ViewId
    why: Annotated[str, Meta(max_length=1_000)]


AnySaid = Called | Offer | Holds | Chunk | Ack | Again | Complete | Ready | Synced | Without

decode = msgspec.msgpack.Decoder(AnySaid).decode
decode_step = msgspec.msgpack.Decoder(Called | Arrived).decode
encode = msgspec.msgpack.Encoder().encode


def bad(text: str) -> Action:
    """What was said cannot be: it is counted, and nothing else."""
    return dropped("state", text=text)


def say(what: Said, *, ahead: bool = False) -> Action:
    """Ordered, in its turn or ahead of everything that waits."""
    return Down(Submit(Submission([FOR_ABOVE + encode(what)]), control=True, ahead=ahead))


def call(raw: bytes, service: Service) -> Action:
    return Down(Submit(Submission([FOR_ABOVE + raw], service), control=True))
