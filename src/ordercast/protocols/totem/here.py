"""Where a member of several rings stands: its rings, the topology it is in, and what of it is on its way.

One record that the parts of `multiring` share: `ordering` works while a topology lasts, `passage` leads to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum

from ordercast.contract import Action, Down, Ordered
from ordercast.joining import Wake
from ordercast.protocols.totem.bodies import RingView
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.gateway import Carrying
from ordercast.protocols.totem.guarantee import Merge, Row
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.topology import Topology
from ordercast.types import Frame, Identity, MemberId, NetId, ViewId

HOME = 0  # the ring that own frames are originated on


class Phase(Enum):
    STEADY = "steady"
    STOPPED = "stopped"  # until own frames on their way are here
    SPOKEN = "spoken"  # others know where I stand


class RingPlace:
    """A ring of mine."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.view: RingView | None = None
        self.transitional = False  # what comes now may lack predecessors
        self.safe = -1  # everybody on it has its numbers up to this
        self.full = False  # a reader on it has no room
        self.left = False
        self.done: dict[MemberId, tuple[int, int, bytes]] = {}  # who said Done when to what, on this ring
        self.done_seq = 0
        self.opened: int | None = None  # the number at which everybody on it had heard Done of all
        self.reached = 0  # my clock when I knew that everybody on it had got that; 0: I do not
        self.turned = 0  # the stamp of the last token I passed on of which all has come
        self.row: Row | None = None


class Here:
    """Of one member."""

    def __init__(self, identity: Identity, clock: Lamport, feeds: Sequence[Feed], nets: Sequence[NetId]) -> None:
        self.identity, self.me, self.clock, self.feeds = identity, identity.me, clock, feeds
        self.places = [RingPlace(net + 1) for net in nets]
        self.phase = Phase.STOPPED
        self.view: ViewId | None = None
        self.topology: Topology | None = None
        self.key = b""  # of the plan it was made by
        self.merge: Merge | None = None
        self.carrying: Carrying | None = None
        self.own_frames: deque[Frame] = deque()  # sent, not yet known to be held on every ring
        self.flying = 0  # of these, how many did not come back on their ring
        self.barrier = 0  # what is stamped so or later belongs to a topology to come
        self.early: list[tuple[int, Ordered]] = []  # and waits for it

    def ask(self, child: int) -> list[Action]:
        """Tell a ring that something waits for it."""
        feed = self.feeds[child]
        if feed.asked or not feed:
            return []
        feed.asked = True
        return [Down(Wake(), child)]

    def ask_all(self) -> list[Action]:
        return [action for child in range(len(self.feeds)) for action in self.ask(child)]
