"""The contract between a core and its driver, and between neighbouring layers.

A core is a pure state machine.  Every input takes ``now`` (integer nanoseconds of the member's own monotonic clock) and
returns the list of actions it causes, in order.  Two inputs never overlap; nothing blocks; no socket, clock, thread,
randomness or global inside.  A driver (live or simulated) calls the core, carries out the actions in order, and writes
the trace.  Layers compose: what one says with Up(event) the layer above gets as ``up(event, child)``, which names the
layer below that spoke; Down(event, child) goes to one below.  `status` and `flush_state` are asked, and change nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec import Struct

from ordercast.limits import OUTBOX_BYTES_MAX, packet_bytes_max
from ordercast.types import (
    ALL_CONTINUE,
    Batch,
    Frame,
    Identity,
    Incarnation,
    MemberId,
    Nanoseconds,
    NetId,
    Peer,
    Submission,
    View,
    ViewId,
)

ALL: MemberId = -1  # Transmit to everybody on the net
TAGGER: MemberId = 0  # who numbers for a group and is no member of it

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


class Delivered(Event, frozen=True, gc=False):
    """The next messages of the order.  epoch, seq: the protocol's own number, for measures only."""

    batch: Batch
    epoch: int = 0
    seq: int = 0
    certainty: str | None = None
    ring: int = 0
    stamp: int = 0  # several rings: its timestamp


class Missing(Event, frozen=True, gc=False):
    """A message had its place here, and its bytes never came: `tag` is the number its sender gave what it was in."""

    sender: MemberId
    incarnation: Incarnation
    tag: int
    certainty: str = "dummy"


class PassedBy(Event, frozen=True, gc=False):
    """Own messages, counter .. counter + count - 1, had their place in the order, and are not for their sender."""

    counter: int
    count: int


class ViewChange(Event, frozen=True, gc=False):
    view: View


class GroupView(Event, frozen=True, gc=False):
    """The processes of one process group changed, at this place of the order."""

    group: str
    members: tuple[MemberId, ...]
    view: ViewId | None = None


class Room(Event, frozen=True, gc=False):
    """Submitters that were refused may go on."""


class Left(Event, frozen=True, gc=False):
    """This member has left; nothing follows.

    unsent: the first and the last own message that was accepted and not sent, or of which it is not known that every
    member of the view holds it; None: all arrived.
    """

    unsent: tuple[int, int] | None = None


class Ended(Event, frozen=True, gc=False):
    """This member cannot go on, and ends at once; `why` is the sentence for whoever runs it."""

    why: str


# up, between layers


class Ordered(Event, frozen=True, gc=False):
    """The ordering protocol puts this frame next.  `framing` makes batches of it."""

    frame: Frame
    epoch: int = 0
    seq: int = 0
    certainty: str | None = None
    ring: int = 0
    stamp: int = 0  # several rings: its timestamp
    source: int = 0  # and which of them it comes from; 0: of the layer that joins them


class Control(Event, frozen=True, gc=False):
    """Ordered messages of the groups layer, from framing to it; never the application's."""

    batch: Batch


class Received(Event, frozen=True, gc=False):
    """The reliable layer inserted a multicast; causal order, own ones included.  `told`: its frame came in a flush, and
    the layer has said Receive of it then; else that is for whoever hears this."""

    sender: MemberId
    seq: int
    body: Body
    vec: tuple[int, ...] = ()
    told: bool = False


class UnicastReceived(Event, frozen=True, gc=False):
    """A unicast came, of another member or my own; in order and once, per pair of members."""

    source: MemberId
    body: Body


class Frozen(Event, frozen=True, gc=False):
    """The reliable layer's commit entry is written: until the next regular view nothing is sent, what the layer above
    says is discarded, and every Received belongs to the install."""


class Crash(Event, frozen=True, gc=False):
    """A member of the view is gone: all that was agreed upon of it has come, and nothing follows."""

    member: MemberId


class Flush(Event, frozen=True, gc=False):
    """The view ends here, after all Crash.  `contributions`: the `flush_state` of each who agreed on this end, in the
    order of ids; `cut`: how much of each rank was agreed on.  Afterwards nothing undelivered may be held."""

    contributions: tuple[bytes, ...]
    cut: tuple[int, ...]


class Window(Event, frozen=True, gc=False):
    """From now on the layer below takes this many multicasts, more or fewer than it had said before."""

    frames: int


# down


class Submit(Event, frozen=True, gc=False):
    """Messages on their way to the Sender, which accepts or refuses them."""

    submission: Submission
    control: bool = False  # of the groups layer: no counters, nobody is told of its acceptance
    ahead: bool = False  # before everything that waits, and never refused


class Multicast(Event, frozen=True, gc=False):
    """Send this to all, in causal order; the layer below answers with Received, here too."""

    body: Body
    view: ViewId | None = None  # the one it is said in: in a later one it has no meaning, and is discarded


class UnicastTo(Event, frozen=True, gc=False):
    """Send this to one member of the view, reliably and in order; `view` as of a Multicast."""

    to: MemberId
    body: Body
    view: ViewId | None = None


class FreeSpace(Event, frozen=True, gc=False):
    """Free delivery space at the application, in frames."""

    frames: int


class Leave(Event, frozen=True, gc=False):
    """Drain, then go: at `until` whatever is left (None: as long as things move).  Said again, it may be sooner."""

    until: Nanoseconds | None = None


# --------------------------------------------------------------------------------------------------------- actions


class Action(Struct, frozen=True, gc=False):
    """Something a core wants done."""


class Transmit(Action, frozen=True, gc=False):
    net: NetId
    to: MemberId  # ALL or one member
    packet: Packet


class Up(Action, frozen=True, gc=False):
    event: Event


class Down(Action, frozen=True, gc=False):
    event: Event
    child: int = 0  # which of the layers below


class SetTimer(Action, frozen=True, gc=False):
    """Call timer(name) at `at`; a timer of the same name is replaced."""

    name: str
    at: Nanoseconds


class CancelTimer(Action, frozen=True, gc=False):
    name: str


class Store(Action, frozen=True, gc=False):
    """Write durably; answered by stored(key, number) or store_failed.  What depends on it waits for the answer.

    A key that ends with "!" is never read stale: where damage may hide a later version, nothing was ever written."""

    key: str
    number: int
    data: bytes


class Accepted(Action, frozen=True, gc=False):
    """The submission was taken; its messages are counter .. counter + count - 1."""

    counter: int
    count: int
    service: int
    groups: tuple[str, ...]


class Refuse(Action, frozen=True, gc=False):
    """The submission was not accepted; nothing changed."""

    why: str


class Note(Action, frozen=True, gc=False):
    """Changes nothing: detail for the trace, measures, reach probes."""

    name: str
    fields: dict[str, Any] = {}


DROP = "drop"


def dropped(reason: str, **fields: Any) -> Note:
    """A Note: what a neighbour said cannot be true, and was not believed.  Drivers count these by reason."""
    return Note(DROP, {"reason": reason, **fields})


class Originate(Action, frozen=True, gc=False):
    """A Note: this frame is multicast for the first time, in view `view`.  Precedes its Transmit."""

    frame: Frame
    view: ViewId | None = None


class Presence(Action, frozen=True, gc=False):
    """A Note, of a protocol without views: from now on this member delivers, or it was away since `since_ns`."""

    present: bool
    since_ns: Nanoseconds = 0


class Receive(Action, frozen=True, gc=False):
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
    on_nets: dict[NetId, tuple[MemberId, ...]] = {}  # who is configured on a net of mine; one not named: everybody
    outbox_bytes: int = OUTBOX_BYTES_MAX  # submitted and not yet originated; more is refused
    partition: str = ALL_CONTINUE  # of POLICIES: what the parts of a split group may do
    pack: bool = True  # several messages in a frame; false: as the papers count
    pure: bool = False  # a gateway without an application

    @property
    def packet_bytes(self) -> int:
        """The largest packet that carries neither frame nor vector: tables of rows, what goes over in a flush."""
        return packet_bytes_max(self.frame_bytes, len(self.identity.members))


class Layer:
    """One state machine of a stack.  A subclass overrides the inputs it cares for; events it does not know pass on.

    Its state is born in `__init__`; every layer of a stack is started, the lowest first, before any hears an `up`.
    """

    name: ClassVar[str] = "layer"  # prefix of its timers and store keys; a stack makes them unique
    flush_state_above: Callable[[], bytes] = bytes  # the `flush_state` of the layer above, bound by the stack

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return []

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        """Messages of the application: the top layer's input, answered with Accepted or Refuse."""
        return [Down(Submit(submission))]

    def regroup(self, now: Nanoseconds, group: str, join: bool) -> list[Action]:
        """Join or leave a process group; takes effect at its place in the order."""
        return [Refuse("no groups")]

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

    def leave(self, now: Nanoseconds, until: Nanoseconds | None = None) -> list[Action]:
        """Send what was accepted, then go; at `until` in any case.  Asked again, the earlier time counts."""
        return [Down(Leave(until))]

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        """What the layer below with this number (0 unless there are several) said."""
        return [Up(event)]

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        return [Down(event)]

    def flush_state(self) -> bytes:
        """What this layer, and those above it, contribute to a flush; the layer below asks for it in the middle of a
        step of its own.  Who has something to say puts it before what the layer above says, and takes it off again
        when the Flush comes up; the others pass it on."""
        return self.flush_state_above()

    def status(self) -> dict[str, Any]:
        """What this layer holds; under "waits", in plain words, what it waits for, under "waits_since_ns" since when;
        "in_view": false between views; "repeated": sender -> frames that had to be asked for; "queues": name -> size of
        every buffer that must be empty once load has stopped and everything was delivered."""
        return {}
