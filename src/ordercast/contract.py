"""The contract between a core and its driver, and between neighbouring layers.

A core is a pure state machine.  Every input takes ``now`` (integer nanoseconds of the member's own monotonic clock) and
returns the list of actions it causes, in order.  Two inputs never overlap; nothing blocks; no socket, clock, thread,
randomness or global inside.  A driver (live or simulated) calls the core, carries out the actions in order, and writes
the trace.  Layers compose: what one says with Up(event) the layer above gets as ``up(event)``, and likewise Down.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct

from ordercast.types import (
    Batch,
    Frame,
    Identity,
    MemberId,
    Nanoseconds,
    NetId,
    Peer,
    Submission,
    View,
    ViewId,
)

ALL: MemberId = -1  # Transmit to everybody on the net

# --------------------------------------------------------------------------------------------------------- packets


class Packet(Struct, frozen=True, array_like=True, gc=False):
    """Base of everything a layer transmits.  Subclasses take an integer ``tag`` unique within their protocol's set."""

    def check(self) -> None:
        """Raise WireError for what types alone cannot refuse; called on decoding, never on our own packets."""


class Body(Struct, frozen=True, array_like=True, gc=False):
    """Base of what an ordering protocol sends through the reliable layer, inside that layer's packets."""

    def check(self) -> None:
        """As Packet.check."""


# --------------------------------------------------------------------------------------------------------- events


class Event(Struct, frozen=True, gc=False):
    """Something one layer tells its neighbour."""


# up, at the application's edge


class Accepted(Event):
    """A submission was taken; its messages are counter .. counter + count - 1."""

    counter: int
    count: int
    service: int
    groups: tuple[str, ...]


class Delivered(Event):
    """The next messages of the order.  epoch, seq: the protocol's own number, for measures only."""

    batch: Batch
    epoch: int = 0
    seq: int = 0
    certainty: str | None = None
    ring: int = 0


class ViewChange(Event):
    view: View


class GroupView(Event):
    """The processes of one process group changed, at this place of the order."""

    group: str
    members: tuple[MemberId, ...]
    view: ViewId | None = None


class Room(Event):
    """Submitters that were refused may go on."""


class Left(Event):
    """This member has left in good order; nothing follows."""


# up, between layers


class Ordered(Event):
    """The ordering protocol puts this frame next.  `framing` makes batches of it."""

    frame: Frame
    epoch: int = 0
    seq: int = 0
    certainty: str | None = None
    ring: int = 0


class Received(Event):
    """The reliable layer inserted a multicast; causal order, own ones included."""

    sender: MemberId
    seq: int
    body: Body
    vec: tuple[int, ...] = ()


class UnicastReceived(Event):
    source: MemberId
    body: Body


class Crash(Event):
    """`member` is gone; everything of it that was agreed upon came before."""

    member: MemberId


class Closing(Event):
    """A synthesised last message of `member` that follows the whole agreed set."""

    member: MemberId
    seq: int
    vec: tuple[int, ...]


class FlushAsked(Event):
    """Answer with Down(FlushState(bytes)): the protocol's contribution to the flush."""


class Flush(Event):
    contributions: tuple[tuple[MemberId, bytes], ...]
    cut: tuple[int, ...]


class SafeUpTo(Event):
    seq: int


class Progress(Event):
    timestamp: int


# down


class Waiting(Event):
    """The Outbox turned non-empty."""


class Multicast(Event):
    body: Body
    frame: Frame | None = None  # the frame it originates, if any


class UnicastTo(Event):
    to: MemberId
    body: Body


class FlushState(Event):
    state: bytes


class FreeSpace(Event):
    """Free delivery space at the application, in frames."""

    frames: int


class Leave(Event):
    """Drain, then go."""


# --------------------------------------------------------------------------------------------------------- actions


class Action(Struct, frozen=True, gc=False):
    """Something a core wants done."""


class Transmit(Action):
    net: NetId
    to: MemberId  # ALL or one member
    packet: Packet


class Up(Action):
    event: Event


class Down(Action):
    event: Event
    child: int = 0  # which of the layers below


class SetTimer(Action):
    """Call timer(name) at `at`; a timer of the same name is replaced."""

    name: str
    at: Nanoseconds


class CancelTimer(Action):
    name: str


class Store(Action):
    """Write durably; answered by stored(key, number) or store_failed.  What depends on it waits for the answer."""

    key: str
    number: int
    data: bytes


class Refuse(Action):
    """The submission was not accepted; nothing changed."""

    why: str


class Note(Action):
    """Changes nothing: detail for the trace, measures, reach probes."""

    name: str
    fields: dict[str, Any] = {}


class Originate(Action):
    """A Note: this frame is multicast for the first time, in view `view`.  Precedes its Transmit."""

    frame: Frame
    view: ViewId | None = None


class Receive(Action):
    """A Note: first reception of this frame by the ordering layer (own frames included)."""

    frame: Frame


# --------------------------------------------------------------------------------------------------------- layers


class Setup(Struct):
    """What a driver gives the factory of a protocol."""

    identity: Identity
    timeout_ns: Nanoseconds  # T, the one timeout; all others derive from it
    options: Any  # an instance of ProtocolInfo.options
    frame_bytes: int  # the largest `data` + `lengths` of one frame, so that its packet fits a datagram
    random: random.Random  # seeded by the driver; the only randomness of a core
    nets: tuple[NetId, ...] = (0,)


class Layer:
    """One state machine of a stack.  A subclass overrides the inputs it cares for; events it does not know pass on."""

    name: ClassVar[str] = "layer"  # prefix of its timers and store keys; a stack makes them unique

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return []

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        raise AssertionError("only the top layer takes submissions")

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        raise AssertionError("only the lowest layers take packets")

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        """All packets that had arrived were handed over; `net` is the net they came from."""
        return []

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        return []

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        return []

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        return []

    def unreachable(self, now: Nanoseconds, net: NetId, member: MemberId) -> list[Action]:
        return []

    def room(self, now: Nanoseconds, frames: int) -> list[Action]:
        return [Down(FreeSpace(frames))]

    def leave(self, now: Nanoseconds) -> list[Action]:
        return [Down(Leave())]

    def up(self, now: Nanoseconds, event: Event) -> list[Action]:
        return [Up(event)]

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        return [Down(event)]

    def status(self) -> dict[str, Any]:
        """What this layer holds and, under "waits", in plain words what it waits for."""
        return {}
