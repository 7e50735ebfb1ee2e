"""Several rings, one order: the layer above a member's rings.

Paper: "Performance engineering of the Totem group communication system" (1998), sections 2.2 and 3.2.
Provides: agreed, safe.  Needs below: a ring with stamps per network (`layer.RingLayer`).

Each ring keeps its own token.  Frames are stamped by a Lamport clock, carried by gateways from ring to ring, and go up
in the order of (timestamp, source) when guarantee vectors say that nothing earlier can come (`guarantee`).

Differs from the paper:
  D1  The application's views are topologies: all members connected over rings.  A change on any ring ends the topology
      for all; everybody stops, the topology that follows is agreed upon, and what some lack of the old one is sent
      again first (`agreement`).  So a topology ends as a ring does, and a frame is delivered where it was sent.
  D2  A member has at most so many own frames on their way as not every ring holds yet, and no more than are held soon
      (`pace`): with it all queues are bounded, and no ring ever waits for another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ordercast.contract import Action, Down, Event, FreeSpace, Layer, Leave, Left, Note, Ordered, Setup, Up, ViewChange
from ordercast.joining import Audience, Progress, SafeUpTo, Wake
from ordercast.limits import PENDING_BYTES_MAX
from ordercast.protocols.totem.bodies import SUPPLY_BYTES, frame_of
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.gateway import Filter
from ordercast.protocols.totem.here import HOME, Here, Phase
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.ordering import Ordering
from ordercast.protocols.totem.pace import Pace
from ordercast.protocols.totem.passage import CLOCK, OPEN, PATIENCE, Passage
from ordercast.protocols.totem.ring import Stamped
from ordercast.protocols.totem.topology import NextTopology
from ordercast.sender import LEAVE, Sender
from ordercast.types import Frame, Identity, Nanoseconds, NetId, Service

WINDOW_FRAMES = (16, 1_024)


class MultiRing(Layer):
    """One member's.

    rotation_frames: what a rotation of its ring carries; so many of its own may always be on their way.
    """

    name = "multiring"

    def __init__(self, setup: Setup, lamport: Lamport, feeds: Sequence[Feed], rotation_frames: int) -> None:
        self.here = Here(setup.identity, lamport, feeds, setup.nets)
        for feed in feeds:
            feed.owner = self
        self.filter = Filter()
        self.ordering = Ordering(self.here, self.filter, speak=self._speak, settled=self._settled)
        self.passage = Passage(self.here, self.ordering, setup.timeout_ns, entered=self._entered)
        own = replace(setup, frame_bytes=setup.frame_bytes - SUPPLY_BYTES)
        services = (Service.AGREED, Service.SAFE)
        self.sender = Sender(own, services, self._unsettled, wake=self._wake_home, go=self._go)
        members = max(1, len(setup.identity.members))
        low, high = WINDOW_FRAMES
        most = max(low, min(high, PENDING_BYTES_MAX // (members * setup.frame_bytes)))
        self.pace = Pace(min(low, rotation_frames), most, setup.timeout_ns)  # D2
        self._taken: list[Frame] = []  # own frames that leave now

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        self.passage.recall(stored.get(CLOCK, (0, b""))[0])
        self.here.clock.receive(max(identity.ring_seq, self.passage.kept))
        return []

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        assert key == CLOCK
        return self.passage.stored(now, number)

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        assert key == CLOCK
        return self.passage.store_failed(now, number)

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if type(event) is Audience:
            self.filter.hear(event)
            return []
        if type(event) is FreeSpace:
            waiting = len(self.here.merge.pending) if self.here.merge is not None else 0
            event = FreeSpace(max(0, event.frames - waiting))
        return self._spread(self.sender.down(now, event))

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == LEAVE:
            return self._spread(self.sender.timer(now))
        if name == PATIENCE:
            return self.passage.again(now)
        assert name == OPEN
        if self.here.phase is not Phase.STEADY:
            return []
        for feed in self.here.feeds:
            feed.open = True
        return self.here.ask_all()

    def _spread(self, actions: list[Action]) -> list[Action]:
        """What a Sender says to the layer below it, to all of my rings."""
        out: list[Action] = []
        for action in actions:
            if type(action) is Down and type(action.event) is not Wake:
                out += [Down(action.event, child) for child in range(len(self.here.places))]
            else:
                out.append(action)
        return out

    def _go(self, now: Nanoseconds, until: Nanoseconds) -> list[Action]:
        return [Down(Leave(until))]

    def _unsettled(self) -> Iterator[Frame]:
        return iter(self.here.own_frames)

    def _wake_home(self, now: Nanoseconds) -> list[Action]:
        return self.here.ask(HOME) if self.here.phase is Phase.STEADY else []

    def _speak(self, now: Nanoseconds) -> list[Action]:
        return self.passage.speak_if_ready(now)

    def _settled(self, now: Nanoseconds) -> list[Action]:
        self.pace.held(now, len(self.here.own_frames))
        return self._spread(self.sender.settle(now))

    def _entered(self, now: Nanoseconds, plan: NextTopology) -> list[Action]:
        """A topology was installed: what waited for it, and what may go."""
        here = self.here
        self.pace.restart()
        self.filter.knows = False  # until it is told, behind this step, whether the groups of all are known
        out = self._spread(self.sender.enter(plan.id))
        early, here.early = here.early, []
        for child, event in early:
            if event.source == 0 or event.stamp >= plan.base:
                out += self._ordered(now, child, event)
        return [*out, *self.ordering.open(now), *self._settled(now), *here.ask_all()]

    # ---------------------------------------------------------------------------------------- asked by the rings' feeds

    def tick(self, now: Nanoseconds, child: int) -> None:
        if self.here.carrying is not None and self.here.carrying.runs[child]:
            self.here.clock.run(now)

    def turn(self, child: int, past: Callable[[int], int]) -> list[Action]:
        return self.ordering.turn(child, past)

    def vector_due(self, child: int) -> bool:
        return self.here.carrying is not None and self.here.carrying.due(child)

    def vector(self, child: int) -> Frame:
        assert self.here.carrying is not None
        return frame_of(self.here.carrying.vector(child), self.here.identity)

    def own_waiting(self, child: int) -> int:
        return max(0, min(self.sender.waiting(), self.pace.window - len(self.here.own_frames))) if child == HOME else 0

    def own(self, child: int, n: int) -> list[Stamped]:
        n = min(n, self.own_waiting(child))
        if n <= 0:
            return []
        assert self.here.carrying is not None
        home, clock = self.here.carrying.mine[HOME], self.here.clock
        assert home is not None
        frames, source = self.sender.take(n), home + 1
        self.here.flying += len(frames)
        self.here.own_frames.extend(frames)
        self.pace.left(len(frames), len(self.here.own_frames))
        self._taken += frames
        return [Stamped(frame, clock.send(), source) for frame in frames]

    def own_left(self) -> list[Action]:
        frames, self._taken = self._taken, []
        return self.sender.originated(frames) if frames else []

    # -------------------------------------------------------------------------------------------------- from the rings

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind, here = type(event), self.here
        if kind is Ordered:
            return self._ordered(now, child, event)  # type: ignore[arg-type]
        place = here.places[child]
        if kind is Progress:
            self.pace.tick(now)
            held, place.full = event.full and not place.full, event.full  # type: ignore[attr-defined]
            out = self.ordering.progress(now, child, event)  # type: ignore[arg-type]
            return [Note("hold of a ring by room", {"ring": place.number}), *out] if held else out
        if kind is SafeUpTo:
            place.safe = event.seq  # type: ignore[attr-defined]
            return self.ordering.settle(now, child)
        if kind is ViewChange:
            return self.passage.ring_changed(now, child, event.view)  # type: ignore[attr-defined]
        if kind is Left:
            place.left = True
            return [Up(Left(self.sender.unsent()))] if all(place.left for place in here.places) else []
        return [Up(event)]

    def _ordered(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
        take = self.passage.word if event.source == 0 else self.ordering.take
        return take(now, child, event)

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        """What waited for a pause: frames for groups whose place is known; rings that have something to take."""
        self.pace.tick(now)
        out = self.ordering.pause()
        if len(self.here.feeds) > 1:
            out += self.here.ask_all()
        return out

    # --------------------------------------------------------------------------------------------------------- status

    def status(self) -> dict[str, Any]:
        merge, topology = self.here.merge, self.here.topology
        rings = {}
        for place, feed in zip(self.here.places, self.here.feeds, strict=True):
            members = list(place.view.members) if place.view is not None else []
            rings[place.number] = {"members": members, "forward": len(feed.forwards), "full": place.full}
        routes = {}
        if topology is not None:
            for source, route in enumerate(topology.routes):
                ways = {topology.rings[k].number: by for k, by in enumerate(route.gateway) if by}
                routes[topology.rings[source].number] = ways
        return {
            "view": str(self.here.view or ""), "in_view": self.here.phase is Phase.STEADY,
            "members": topology.members if topology is not None else (), "rings": rings, "routes": routes,
            "sender": self.sender.status(), "window": self.pace.window, "waits": self._words(),
            "queues": {
                "outbox": self.sender.waiting(), "pending": len(merge.pending) if merge is not None else 0,
                "unstable": sum(map(len, merge.kept)) if merge is not None else 0,
                "forward": sum(len(feed.forwards) + len(feed.words) + len(feed.states) for feed in self.here.feeds),
            },
        }  # fmt: skip

    def _words(self) -> str:
        """What this member waits for."""
        if self.here.phase is not Phase.STEADY:
            if self.passage.agreement.missing is not None:
                return f"a topology: member {self.passage.agreement.missing} has not said where it stands"
            return "a topology: not everybody has what was sent in the last one"
        merge = self.here.merge
        if merge is not None and merge.pending and self.here.topology is not None:
            slow = [self.here.topology.rings[s].number for s, known in enumerate(merge.known) if known == merge.bound]
            return f"ring {slow[0]}, from which something earlier may come"
        return ""
