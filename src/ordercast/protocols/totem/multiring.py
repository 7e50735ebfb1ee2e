"""Several rings, one order: the layer above a member's rings.

Paper: "Performance engineering of the Totem group communication system" (1998), sections 2.2 and 3.2.
Provides: agreed, safe.  Needs below: a ring with stamps per network (`layer.RingLayer`).

Each ring keeps its own token.  Frames are stamped by a Lamport clock, carried by gateways from ring to ring, and go up
in the order of (timestamp, source) when guarantee vectors say that nothing earlier can come (`guarantee`).

Differs from the paper:
  D1  The application's views are topologies: all members connected over rings.  A change on any ring ends the topology
      for all; everybody stops, the topology that follows is agreed upon, and what some lack of the old one is sent again
      first (`agreement`).  So a topology ends as a ring does, and a frame is delivered where it was sent.
  D2  A member has at most so many own frames on their way as not every ring holds yet: with it all queues are bounded,
      and no ring ever waits for another's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec.structs import replace

from ordercast.contract import (
    Action,
    Audience,
    Down,
    Ended,
    Event,
    FreeSpace,
    Layer,
    Leave,
    Left,
    Note,
    Ordered,
    Progress,
    Receive,
    SafeUpTo,
    SetTimer,
    Setup,
    Store,
    Up,
    ViewChange,
    Wake,
    dropped,
)
from ordercast.errors import WireError
from ordercast.limits import PENDING_BYTES_MAX
from ordercast.protocols.totem.agreement import Agreement
from ordercast.protocols.totem.bodies import (
    SUPPLY_BYTES, Bodies, Done, RingView, State, Supply, Vector, body_of, frame_of,
)  # fmt: skip
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.gateway import Carrying, Filter
from ordercast.protocols.totem.guarantee import Merge, Row
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.ring import Stamped
from ordercast.protocols.totem.topology import NextTopology, Old, Topology
from ordercast.sender import LEAVE, Sender
from ordercast.types import Cause, Frame, Identity, MemberId, Nanoseconds, NetId, Service, View, ViewId, ViewKind

WINDOW_FRAMES = (16, 1_024)
HOME = 0  # the ring that own frames are originated on
OPEN = "open"  # the timer after which frames of a new topology leave: its view has gone up before
CLOCK = "clock"  # stored: the stamp of the last topology, for the next life


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
        self.row: Row | None = None


class MultiRing(Layer):
    """One member's."""

    name = "multiring"

    def __init__(self, setup: Setup, lamport: Lamport, feeds: Sequence[Feed]) -> None:
        self.identity, self.me = setup.identity, setup.identity.me
        self.clock, self.feeds = lamport, feeds
        self.places = [RingPlace(net + 1) for net in setup.nets]
        for feed in feeds:
            feed.owner = self
        own = replace(setup, frame_bytes=setup.frame_bytes - SUPPLY_BYTES)
        services = (Service.AGREED, Service.SAFE)
        self.sender = Sender(own, services, self._unsettled, wake=self._wake_home, go=self._go)
        members = max(1, len(setup.identity.members))
        low, high = WINDOW_FRAMES
        self.window = max(low, min(high, PENDING_BYTES_MAX // (members * setup.frame_bytes)))
        self.phase = Phase.STOPPED
        self.agreement = Agreement(self.me)
        self.filter = Filter()
        self.view: ViewId | None = None
        self.topology: Topology | None = None
        self.merge: Merge | None = None
        self.carrying: Carrying | None = None
        self.own_frames: deque[Frame] = deque()  # sent, not yet known to be held on every ring
        self.flying = 0  # of these, how many did not come back on their ring
        self._taken: list[Frame] = []
        self.undecided: list[tuple[int, int, int, Frame]] = []  # timestamp, source, child: frames for groups, on the way
        self.fragments: dict[MemberId, list[Frame]] = {}  # of messages that are not whole
        self.barrier = 0  # what is stamped so or later belongs to a topology to come
        self.early: list[tuple[int, Ordered]] = []  # and waits for it
        self.cause = Cause("start")

    # ------------------------------------------------------------------------------------------------------- life cycle

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        self.clock.receive(max(identity.ring_seq, stored.get(CLOCK, (0, b""))[0]))
        return []

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if type(event) is Audience:
            self.filter.hear(event)
            return []
        if type(event) is FreeSpace:
            waiting = len(self.merge.pending) if self.merge is not None else 0
            event = FreeSpace(max(0, event.frames - waiting))
        return self._spread(self.sender.down(now, event))

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == LEAVE:
            return self._spread(self.sender.timer(now))
        assert name == OPEN
        if self.phase is not Phase.STEADY:
            return []
        for feed in self.feeds:
            feed.open = True
        return self._ask_all()

    def _spread(self, actions: list[Action]) -> list[Action]:
        """What a Sender says to the layer below it, to all of my rings."""
        out: list[Action] = []
        for action in actions:
            if type(action) is Down and type(action.event) is not Wake:
                out += [Down(action.event, child) for child in range(len(self.places))]
            else:
                out.append(action)
        return out

    def _go(self, now: Nanoseconds, until: Nanoseconds) -> list[Action]:
        return [Down(Leave(until))]

    def _unsettled(self) -> Iterator[Frame]:
        return iter(self.own_frames)

    def _wake_home(self, now: Nanoseconds) -> list[Action]:
        return self._ask(HOME) if self.phase is Phase.STEADY else []

    def _ask(self, child: int) -> list[Action]:
        """Tell a ring that something waits for it."""
        feed = self.feeds[child]
        if feed.asked or not feed:
            return []
        feed.asked = True
        return [Down(Wake(), child)]

    def _ask_all(self) -> list[Action]:
        return [action for child in range(len(self.feeds)) for action in self._ask(child)]

    # ---------------------------------------------------------------------------------------- asked by the rings' feeds

    def vector_due(self, child: int) -> bool:
        return self.carrying is not None and self.carrying.due(child)

    def vector(self, child: int) -> Frame:
        assert self.carrying is not None
        return frame_of(self.carrying.vector(child), self.identity)

    def own_waiting(self, child: int) -> int:
        return max(0, min(self.sender.waiting(), self.window - len(self.own_frames))) if child == HOME else 0

    def own(self, child: int, n: int) -> list[Stamped]:
        n = min(n, self.own_waiting(child))
        if n <= 0:
            return []
        assert self.carrying is not None
        home, clock = self.carrying.mine[HOME], self.clock
        assert home is not None
        frames, source = self.sender.take(n), home + 1
        self.flying += len(frames)
        self.own_frames.extend(frames)
        self._taken += frames
        return [Stamped(frame, clock.send(), source) for frame in frames]

    def own_left(self) -> list[Action]:
        frames, self._taken = self._taken, []
        return self.sender.originated(frames) if frames else []

    # -------------------------------------------------------------------------------------------------- from the rings

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Ordered:
            return self._ordered(now, child, event)  # type: ignore[arg-type]
        place = self.places[child]
        if kind is Progress:
            place.full = event.full  # type: ignore[attr-defined]
            return self._progress(now, child, event)  # type: ignore[arg-type]
        if kind is SafeUpTo:
            place.safe = event.seq  # type: ignore[attr-defined]
            return self._settle(now, child)
        if kind is ViewChange:
            return self._ring_changed(now, child, event.view)  # type: ignore[attr-defined]
        if kind is Left:
            place.left = True
            return [Up(Left(self.sender.unsent()))] if all(place.left for place in self.places) else []
        if kind is Ended:
            return [Up(event)]
        return [Up(event)]

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        """What waited for a pause: frames for groups whose place was reached; rings that have something to take."""
        out: list[Action] = []
        if self.undecided:
            out += self._decide()
        if len(self.feeds) > 1:
            out += self._ask_all()
        return out

    def _ordered(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
        if event.source == 0:
            return self._word(now, child, event)
        merge, source = self.merge, event.source - 1
        if self.barrier and event.stamp >= self.barrier:
            self.early.append((child, event))
            return []
        frame = event.frame
        if frame.sender == self.me and child == HOME and frame.incarnation == self.identity.incarnation:
            self.flying = max(0, self.flying - 1)
        if merge is None or event.stamp < merge.base:
            return self._speak_if_ready(now)  # of a topology that is over, or that I was not in
        if source >= len(merge.kept):
            return [dropped("source", source=event.source)]
        place, carrying = self.places[child], self.carrying
        assert carrying is not None
        if event.ring != carrying.labels[child]:
            event = replace(event, ring=carrying.labels[child])
        if place.transitional:
            merge.take_extra(event, source)
            return []
        why = merge.take(child, event, source)
        if why == "stamp":
            return [dropped("stamp", stamp=event.stamp)]
        if place.row is not None:
            place.row.mark(event.seq, source, event.stamp)
        if event.stamp > carrying.need:
            carrying.need = event.stamp
        carrying.changed()
        out: list[Action] = []
        if frame.parts > 1 and not why:
            out += self._whole(frame)
        if self.phase is not Phase.STEADY:
            return out + self._speak_if_ready(now)
        if carrying.onward[child][source]:
            self._carry(carrying, child, source, event)
        elif why and (source, child) not in carrying.mine_into:
            out.append(Note("duplicate on a cycle"))
        if merge.pending and merge.pending[0][0] <= merge.bound:
            out += self._deliver(now)
        return out

    def _whole(self, frame: Frame) -> list[Action]:
        """Fragments may have come on the ring before the view that their message belongs to: told again, together."""
        if frame.part == 0:
            self.fragments[frame.sender] = []
        parts = self.fragments.get(frame.sender)
        if parts is None:
            return []
        parts.append(frame)
        return list(map(Receive, self.fragments.pop(frame.sender))) if frame.last else []

    def _carry(self, carrying: Carrying, child: int, source: int, event: Ordered) -> None:
        for other in carrying.onward[child][source]:
            feed = self.feeds[other]
            feed.forwards.append(Stamped(event.frame, event.stamp, event.source))
            if self.filter.concerns(event.frame, carrying):
                feed.undecided.add((event.stamp, event.source))
                self.undecided.append((event.stamp, event.source, other, event.frame))

    def _decide(self) -> list[Action]:
        """Of frames for groups whose place is known: whether anybody behind a ring of mine wants them."""
        merge, carrying = self.merge, self.carrying
        assert merge is not None and carrying is not None
        regroups = min(((stamp, s) for stamp, s, event in merge.pending if event.frame.control), default=None)
        later, filtered = [], 0
        for item in self.undecided:
            stamp, source, child, frame = item
            if any(known < stamp - (s >= source) for s, known in enumerate(merge.known) if s != source - 1):
                later.append(item)
                continue
            self.feeds[child].undecided.discard((stamp, source))
            sure = regroups is None or (stamp, source - 1) < regroups  # else somebody may join before it
            if sure and not self.filter.wanted(frame, carrying.audience[child, source - 1]):
                self.feeds[child].unwanted.add((stamp, source))
                filtered += 1
        self.undecided = later
        self.filter.fading.clear()
        carrying.changed()
        return [Note("filtered", {"frames": filtered})] if filtered else []

    def _deliver(self, now: Nanoseconds) -> list[Action]:
        merge = self.merge
        assert merge is not None
        return [Up(event) for event in merge.deliver()]

    def _progress(self, now: Nanoseconds, child: int, event: Progress) -> list[Action]:
        merge, carrying, place = self.merge, self.carrying, self.places[child]
        if merge is None or carrying is None:
            return self._ask(child)
        source = carrying.mine[child]
        if source is None or place.view != carrying.topology.rings[source]:
            return self._ask(child)
        merge.promise(child, source, event.timestamp)
        carrying.changed()
        if place.row is not None:
            place.row.mark(event.seq, source, event.timestamp)
        out = self._settle(now, child)
        return out + self._ask_all() if len(self.feeds) > 1 else out

    def _settle(self, now: Nanoseconds, child: int) -> list[Action]:
        """Something of mine may be known to be held on my ring, and so on every ring; and frames may go up."""
        merge, carrying, place = self.merge, self.carrying, self.places[child]
        if merge is None or carrying is None or self.phase is not Phase.STEADY:
            return []
        row, out = place.row, []
        if row is not None and place.opened is not None and place.safe >= place.opened and not place.full:
            if row.settle(place.safe):
                ring = carrying.mine[child]
                assert ring is not None
                merge.learn(ring, row.stamps)
                carrying.changed()
        out = self._deliver(now)
        return out + self._release(now)

    def _release(self, now: Nanoseconds) -> list[Action]:
        assert self.merge is not None
        mine = 0
        for event in self.merge.forget():
            frame = event.frame
            if frame.sender == self.me and self.own_frames and frame is self.own_frames[0]:
                self.own_frames.popleft()
                mine += 1
        if not mine:
            return []
        return [*self._spread(self.sender.settle(now)), *self._ask(HOME)]

    # ------------------------------------------------------------------------------------------------------------ words

    def _word(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
        try:
            body = body_of(event.frame)
        except WireError as why:
            return [dropped(why.reason, what=str(why))]
        frame = event.frame
        if type(body) is Vector:
            return self._vector(now, child, event, body)
        if type(body) is Done:
            self._done_on(child, event, body)
        self.clock.receive(body.stamp)  # type: ignore[union-attr]
        if type(body) is State:
            told = self.feeds[child].states.get(frame.sender)
            if told is not None and told == frame:
                del self.feeds[child].states[frame.sender]
        if not self.agreement.hear(frame, body):
            return self._open(now) if type(body) is Done else []
        self._pass_on(child, frame, body)
        out: list[Action] = []
        if type(body) is Supply and body.frame is not None and self._lacks(body):
            out.append(Receive(body.frame))
        if type(body) is State and self.topology is not None and frame.sender in self.topology.members:
            out += self._stop(now)
        if type(body) is State and self.phase is Phase.SPOKEN:
            went_on = body.view in self.agreement.promised  # for it my word is spent
            if self._take_supplies() or went_on:  # what I hold beyond my word must not be forgotten
                self.phase = Phase.STOPPED
        return [*out, *self._speak_if_ready(now), *self._agree(now), *self._open(now), *self._ask_all()]

    def _lacks(self, item: Supply) -> bool:
        merge = self.merge
        if merge is None or item.view != self.view or item.source >= len(merge.kept):
            return False
        return item.at > merge.known[item.source] and item.at not in merge.extra[item.source]

    def _pass_on(self, child: int, frame: Frame, body: Bodies) -> None:
        """To my other rings, as it is."""
        for other, feed in enumerate(self.feeds):
            if other != child:
                if type(body) is State:
                    feed.states[frame.sender] = frame
                else:
                    feed.words.append(frame)

    def _vector(self, now: Nanoseconds, child: int, event: Ordered, vector: Vector) -> list[Action]:
        carrying, place = self.carrying, self.places[child]
        if carrying is None or vector.view != self.view:
            if self.barrier:
                self.early.append((child, event))
            return []
        if place.transitional:
            return []
        if not carrying.believable(child, event.frame.sender, vector):
            return [dropped("vector")]
        self.clock.receive(vector.need)
        news = carrying.hear(child, event.seq, vector)
        if place.row is not None:
            for source, stamp in vector.entries:
                place.row.mark(event.seq, source, stamp)
        if self.phase is not Phase.STEADY:
            return []
        out = self._deliver(now)
        return out + self._release(now) if news else out

    def _done_on(self, child: int, event: Ordered, body: Done) -> None:
        place, frame = self.places[child], event.frame
        said = (frame.incarnation, body.stamp, body.key)
        if said > place.done.get(frame.sender, (0, 0, b"")):
            place.done[frame.sender] = said
            place.done_seq = event.seq

    def _open(self, now: Nanoseconds) -> list[Action]:
        """Once everybody on a ring heard that all are ready, what is held there counts."""
        carrying = self.carrying
        if carrying is None or self.phase is not Phase.STEADY:
            return []
        out: list[Action] = []
        for child, place in enumerate(self.places):
            members = carrying.topology.members
            if place.opened is None and all(
                member in place.done and place.done[member][2] == self.key for member in members
            ):
                place.opened = place.done_seq
                out += self._settle(now, child)
        return out

    # ------------------------------------------------------------------------------------------- from topology to topology

    def _ring_changed(self, now: Nanoseconds, child: int, view: View) -> list[Action]:
        place = self.places[child]
        if view.kind is ViewKind.TRANSITIONAL:
            out = self._stop(now)
            place.transitional = True
            return out
        out = self._stop(now)
        place.transitional, place.safe, place.full = False, -1, False
        place.done.clear()
        place.view = ring = RingView(place.number, view.id, view.members)
        self.cause = view.cause
        if child == HOME:
            self.flying = 0  # a ring delivers to its members all they sent on it
        self.phase = Phase.STOPPED
        self.agreement.plan = None
        if len(self.places) > 1:
            for member, word in self.agreement.words.items():
                if member not in ring.members and member not in self.agreement.spent:
                    self.feeds[child].states[member] = word.frame
        out.append(Note("ring view", {"ring": place.number, "id": str(view.id), "members": list(view.members)}))
        return [*out, *self._speak_if_ready(now), *self._agree(now), *self._ask_all()]

    def _stop(self, now: Nanoseconds) -> list[Action]:
        """Nothing of this topology leaves me any more, and nothing goes up."""
        if self.phase is not Phase.STEADY:
            return []
        self.phase = Phase.STOPPED
        for feed in self.feeds:
            feed.close()
        self.undecided.clear()
        return [Note("topology ends")]

    def _take_supplies(self) -> bool:
        """What others sent again is mine from now on; whether that is news."""
        if self.merge is None or self.view is None:
            return False
        news = False
        for source, event in self.agreement.received(self.view):
            if source < len(self.merge.kept) and self.merge.take_extra(event, source):
                news = True
        return news

    def _speak_if_ready(self, now: Nanoseconds) -> list[Action]:
        """Say where I stand, once all I sent is here."""
        if self.phase is not Phase.STOPPED or self.flying or any(place.transitional for place in self.places):
            return []
        rings = tuple(place.view for place in self.places if place.view is not None)
        if not rings:
            return []
        out: list[Action] = []
        self._take_supplies()
        self.phase = Phase.SPOKEN
        merge, agreement = self.merge, self.agreement
        stamp, reason = self.clock.send(), self.cause.reason[:64]
        state = State(stamp, rings, reason=reason, of=self.cause.member)
        if merge is not None:
            agreement.extra = tuple(map(frozenset, merge.extra))
            top = tuple(max(known, *extra, 0) for known, extra in zip(merge.known, merge.extra, strict=True))
            extra = tuple(map(len, merge.extra))
            state = replace(
                state, view=self.view, known=tuple(merge.known), top=top, extra=extra, stable=tuple(merge.stable)
            )
        frame = frame_of(state, self.identity)
        agreement.hear(frame, state)
        agreement.plan, agreement.said, agreement.sent = None, b"", b""
        agreement.promised.clear()
        for feed in self.feeds:
            feed.states[self.me] = frame
        return [*out, *self._agree(now), *self._ask_all()]

    def _agree(self, now: Nanoseconds) -> list[Action]:
        agreement = self.agreement
        if self.phase is not Phase.SPOKEN:
            return []
        rings = [place.view for place in self.places if place.view is not None]
        was = {self.view: self.topology} if self.view is not None and self.topology is not None else {}
        if not agreement.make(rings, was):
            return []
        plan = agreement.plan
        assert plan is not None
        old = plan.of(self.me)
        out: list[Action] = []
        if self.me in old.suppliers and agreement.sent != plan.key and self.merge is not None:
            agreement.sent = plan.key
            supplies = agreement.supply(old, self.merge, self.clock.send())
            out.append(Note("sent again", {"frames": supplies[0].total}))
            self._say(*supplies)
        if agreement.said != plan.key and agreement.supplied(old):
            agreement.said = plan.key
            agreement.promised.add(plan.id)
            self.barrier = self.barrier or plan.base
            done = Done(self.clock.send(), plan.key)
            agreement.hear(frame_of(done, self.identity), done)
            self._say(done)
        if agreement.said == plan.key and agreement.ready():
            return [*out, *self._install(now, plan, old)]
        return out

    def _say(self, *bodies: Bodies) -> None:
        for body in bodies:
            frame = frame_of(body, self.identity)
            for feed in self.feeds:
                feed.words.append(frame)

    def _install(self, now: Nanoseconds, plan: NextTopology, old: Old) -> list[Action]:
        """The old topology's last frames, the transitional view with its own, and the new one: one step."""
        agreement, members = self.agreement, plan.topology.members
        reason = max((agreement.words[member].state for member in members), key=lambda state: state.stamp)
        cause = Cause(reason.reason, reason.of)
        out: list[Action] = []
        trans: tuple[MemberId, ...] = ()
        if self.merge is not None:
            self._take_supplies()
            upto = old.upto or tuple(self.merge.known)
            regular, rest = self.merge.close(old.bound, old.stable or upto, upto, agreement.beyond(old))
            trans = old.members
            out += map(Up, regular)
            out.append(Up(ViewChange(View(plan.id, ViewKind.TRANSITIONAL, trans, trans, (), self.view, cause))))
            out += map(Up, rest)
        components = tuple((each.view, each.members) for each in plan.old)
        view = View(plan.id, ViewKind.REGULAR, members, trans, components, self.view, cause)
        out += [Up(ViewChange(view)), *self._notes(plan), Store(CLOCK, plan.base, b""), SetTimer(OPEN, now)]
        self._enter(plan)
        out += self._spread(self.sender.enter(plan.id))
        early, self.early = self.early, []
        for child, event in early:
            if event.source == 0 or event.stamp >= plan.base:
                out += self._ordered(now, child, event)
        out += self._open(now)
        return [*out, *self._spread(self.sender.settle(now)), *self._ask_all()]

    def _enter(self, plan: NextTopology) -> None:
        topology = plan.topology
        mine = [None if place.view is None else topology.rings.index(place.view) for place in self.places]
        self.view, self.topology, self.key = plan.id, topology, plan.key
        self.merge = Merge(len(topology.rings), len(self.places), plan.base)
        self.carrying = Carrying(self.me, plan.id, topology, mine, self.merge, self.feeds)
        for place in self.places:
            place.row, place.opened = Row(len(topology.rings)), None
        self.own_frames.clear()
        self.fragments.clear()
        self.flying = self.barrier = 0
        self.phase = Phase.STEADY
        self.clock.receive(plan.base)
        self.agreement.clear()
        for feed in self.feeds:
            feed.close()
            for member in topology.members:
                feed.states.pop(member, None)

    def _notes(self, plan: NextTopology) -> list[Action]:
        """What became of the rings and their ways."""
        old, new = self.topology, plan.topology
        fields = {"rings": len(new.rings), "members": len(new.members), "from": len(plan.of(self.me).members)}
        out: list[Action] = [Note("topology", fields)]
        if old is None:
            return out
        before, after = ({ring.number for ring in one.rings} for one in (old, new))
        if before - after:
            out.append(Note("ring removed", {"rings": sorted(before - after)}))
        if after - before:
            out.append(Note("ring joined", {"rings": sorted(after - before)}))
        if before == after and _ways(old) != _ways(new):
            out.append(Note("reroute"))
        return out

    def status(self) -> dict[str, Any]:
        merge, topology = self.merge, self.topology
        rings = {}
        for place, feed in zip(self.places, self.feeds, strict=True):
            members = list(place.view.members) if place.view is not None else []
            rings[place.number] = {"members": members, "forward": len(feed.forwards), "full": place.full}
        routes = {}
        if topology is not None:
            for source, route in enumerate(topology.routes):
                ways = {topology.rings[k].number: by for k, by in enumerate(route.gateway) if by}
                routes[topology.rings[source].number] = ways
        return {
            "view": str(self.view) if self.view is not None else "", "in_view": self.phase is Phase.STEADY,
            "members": topology.members if topology is not None else (), "rings": rings, "routes": routes,
            "sender": self.sender.status(), "waits": self._words(),
            "queues": {
                "outbox": self.sender.waiting(), "pending": len(merge.pending) if merge is not None else 0,
                "unstable": sum(map(len, merge.kept)) if merge is not None else 0,
                "forward": sum(len(feed.forwards) + len(feed.words) + len(feed.states) for feed in self.feeds),
            },
        }  # fmt: skip

    def _words(self) -> str:
        """What this member waits for."""
        if self.phase is not Phase.STEADY:
            if self.agreement.missing is not None:
                return f"a topology: member {self.agreement.missing} has not said where it stands"
            return "a topology: not everybody has what was sent in the last one"
        merge = self.merge
        if merge is not None and merge.pending and self.topology is not None:
            slow = [self.topology.rings[s].number for s, known in enumerate(merge.known) if known == merge.bound]
            return f"ring {slow[0]}, from which something earlier may come"
        return ""


def _ways(topology: Topology) -> dict[int, dict[int, tuple[int, MemberId]]]:
    """Source -> ring -> where its frames come from, by numbers of nets."""
    number = [ring.number for ring in topology.rings]
    return {
        number[source]: {
            number[ring]: (number[route.parent[ring]], route.gateway[ring]) for ring in range(len(number))
        }
        for source, route in enumerate(topology.routes)
    }  # fmt: skip
