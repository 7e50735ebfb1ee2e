"""From topology to topology: a member stops, says where it stands, agrees with all it can reach, and goes on.

What is agreed upon, and why an old topology ends for all who come along with the same frames, is in `agreement` and
`topology`; here is one member's way through it.
Who is on this way for 8 T says anew where it stands, then after twice the time, and so on: a word that a member with a
key has damaged is followed by a better one, where otherwise all would wait for the next change of a ring.
Nobody is ready for a topology before it is stored that the next life begins above it: clocks run with time, and with
whoever's is ahead, so a wall clock alone does not keep view ids growing over a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from msgspec.structs import replace

from ordercast.contract import Action, CancelTimer, Note, Ordered, SetTimer, Store, Up, ViewChange, dropped
from ordercast.errors import WireError
from ordercast.protocols.totem.agreement import Agreement
from ordercast.protocols.totem.bodies import Bodies, Done, RingView, State, Supply, Vector, body_of, frame_of
from ordercast.protocols.totem.gateway import Carrying
from ordercast.protocols.totem.guarantee import Merge, Row
from ordercast.protocols.totem.here import HOME, Here, Phase
from ordercast.protocols.totem.ordering import Ordering
from ordercast.protocols.totem.topology import NextTopology, Old, Topology
from ordercast.types import Cause, Frame, MemberId, Nanoseconds, View, ViewKind

OPEN = "open"  # the timer after which frames of a new topology leave: its view has gone up before
PATIENCE = "patience"  # the timer after which a member begins its way anew
CLOCK = "clock"  # stored: no topology that I was ready for begins above it; the next life does


class Passage:
    """entered: what follows when a topology was installed."""

    def __init__(
        self,
        here: Here,
        ordering: Ordering,
        timeout_ns: Nanoseconds,
        *,
        entered: Callable[[Nanoseconds, NextTopology], list[Action]],
    ) -> None:
        self.here, self._ordering, self._entered = here, ordering, entered
        self._patience_ns = 8 * timeout_ns
        self._wait_ns = 0  # until I begin anew; 0: I am not on the way
        self.agreement = Agreement(here.me)
        self.cause = Cause("start")  # of my rings' last change
        self.kept = self._keeping = 0  # of the clock: what is stored, and what is or is on its way to the disk

    def word(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
        try:
            body = body_of(event.frame)
        except WireError as why:
            return [dropped(why.reason, what=str(why))]
        frame = event.frame
        if type(body) is Vector:
            return self._ordering.vector(now, child, event, body)
        if type(body) is Done:
            self._done_on(child, event, body)
        self.here.clock.receive(body.stamp)  # type: ignore[union-attr]
        if type(body) is State:
            told = self.here.feeds[child].states.get(frame.sender)
            if told is not None and told == frame:
                del self.here.feeds[child].states[frame.sender]
        if not self.agreement.hear(frame, body):
            return self._ordering.open(now) if type(body) is Done else []
        self._pass_on(child, frame, body)
        out: list[Action] = []
        if type(body) is Supply and body.frame is not None and self._lacks(body):
            out += self._ordering.again(body.frame)
        if type(body) is State and self.here.topology is not None and frame.sender in self.here.topology.members:
            out += self._stop(now)
        if type(body) is State and self.here.phase is Phase.SPOKEN:
            went_on = body.view in self.agreement.promised  # for it my word is spent
            kept = bool(self.agreement.promised) and self._take_supplies()  # somebody may have gone on with these
            if kept or went_on:
                self.here.phase = Phase.STOPPED
        return [*out, *self.speak_if_ready(now), *self._agree(now), *self._ordering.open(now), *self.here.ask_all()]

    def _lacks(self, item: Supply) -> bool:
        merge = self.here.merge
        if merge is None or item.view != self.here.view or item.source >= len(merge.kept):
            return False
        return item.at > merge.known[item.source] and item.at not in merge.extra[item.source]

    def _pass_on(self, child: int, frame: Frame, body: Bodies) -> None:
        """To my other rings, as it is."""
        for other, feed in enumerate(self.here.feeds):
            if other != child:
                if type(body) is State:
                    feed.tell(frame)
                else:
                    feed.words.append(frame)

    def _done_on(self, child: int, event: Ordered, body: Done) -> None:
        place, frame = self.here.places[child], event.frame
        said = (frame.incarnation, body.stamp, body.key)
        if said > place.done.get(frame.sender, (0, 0, b"")):
            place.done[frame.sender] = said
            place.done_seq = event.seq

    def ring_changed(self, now: Nanoseconds, child: int, view: View) -> list[Action]:
        place = self.here.places[child]
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
            self.here.flying = 0  # a ring delivers to its members all they sent on it
        out += self._set_out(now)
        self.here.phase = Phase.STOPPED
        self.agreement.plan = None
        if len(self.here.places) > 1:
            for member, word in self.agreement.words.items():
                if member not in ring.members and member not in self.agreement.spent:
                    self.here.feeds[child].states[member] = word.frame
        out.append(Note("ring view", {"ring": place.number, "id": str(view.id), "members": list(view.members)}))
        return [*out, *self.speak_if_ready(now), *self._agree(now), *self.here.ask_all()]

    def _stop(self, now: Nanoseconds) -> list[Action]:
        """Nothing of this topology leaves me any more, and nothing goes up."""
        if self.here.phase is not Phase.STEADY:
            return []
        self.here.phase = Phase.STOPPED
        for feed in self.here.feeds:
            feed.close()
        self._ordering.clear()
        return [Note("topology ends"), *self._set_out(now)]

    def _set_out(self, now: Nanoseconds) -> list[Action]:
        if self._wait_ns:
            return []
        self._wait_ns = self._patience_ns
        return [SetTimer(PATIENCE, now + self._wait_ns)]

    def again(self, now: Nanoseconds) -> list[Action]:
        """The timer: not there yet.  To begin anew is what a change of a ring makes of it at any time."""
        if not self._wait_ns:
            return []
        self._wait_ns *= 2
        self.here.phase = Phase.STOPPED
        self.agreement.plan = None
        out: list[Action] = [Note("topology again"), SetTimer(PATIENCE, now + self._wait_ns)]
        return [*out, *self.speak_if_ready(now), *self._agree(now), *self.here.ask_all()]

    def recall(self, stored: int) -> None:
        self.kept = self._keeping = stored

    def _keep(self, stamp: int) -> list[Action]:
        if stamp <= self._keeping:
            return []
        self._keeping = stamp
        return [Store(CLOCK, stamp, b"")]

    def stored(self, now: Nanoseconds, number: int) -> list[Action]:
        self.kept = max(self.kept, number)
        return [*self._agree(now), *self.here.ask_all()]

    def store_failed(self, now: Nanoseconds, number: int) -> list[Action]:
        """A bad disk of one holds up nobody; it is tried again on the way to the next topology."""
        self._keeping = 0
        return self.stored(now, number)

    def _take_supplies(self) -> bool:
        """What others sent again is mine from now on; whether that is news."""
        if self.here.merge is None or self.here.view is None:
            return False
        news = False
        for source, event in self.agreement.received(self.here.view):
            if source < len(self.here.merge.kept) and self.here.merge.take_extra(event, source):
                news = True
        return news

    def speak_if_ready(self, now: Nanoseconds) -> list[Action]:
        """Say where I stand, once all I sent is here."""
        if (
            self.here.phase is not Phase.STOPPED
            or self.here.flying
            or any(place.transitional for place in self.here.places)
        ):
            return []
        rings = tuple(place.view for place in self.here.places if place.view is not None)
        if not rings:
            return []
        out: list[Action] = []
        self._take_supplies()
        self.here.phase = Phase.SPOKEN
        merge, agreement = self.here.merge, self.agreement
        stamp, reason = self.here.clock.send(), self.cause.reason[:64]
        state = State(stamp, rings, reason=reason, of=self.cause.member)
        if merge is not None:
            agreement.extra = tuple(map(frozenset, merge.extra))
            top = tuple(max(known, *extra, 0) for known, extra in zip(merge.known, merge.extra, strict=True))
            extra = tuple(crc32(repr(sorted(each)).encode()) | 1 if each else 0 for each in merge.extra)
            state = replace(
                state, view=self.here.view, known=tuple(merge.known), top=top, extra=extra, stable=tuple(merge.stable)
            )
        frame = frame_of(state, self.here.identity)
        agreement.hear(frame, state)
        agreement.plan, agreement.said, agreement.sent = None, b"", b""
        agreement.promised.clear()
        for feed in self.here.feeds:
            feed.tell(frame, own=True)
        return [*out, *self._agree(now), *self.here.ask_all()]

    def _agree(self, now: Nanoseconds) -> list[Action]:
        agreement = self.agreement
        if self.here.phase is not Phase.SPOKEN:
            return []
        rings = [place.view for place in self.here.places if place.view is not None]
        was = (
            {self.here.view: self.here.topology}
            if self.here.view is not None and self.here.topology is not None
            else {}
        )
        if not agreement.make(rings, was):
            return []
        plan = agreement.plan
        assert plan is not None
        old = plan.of(self.here.me)
        out: list[Action] = []
        if self.here.me in old.supply and agreement.sent != plan.key and self.here.merge is not None:
            agreement.sent = plan.key
            supplies = agreement.supply(old, self.here.merge, self.here.clock.send())
            out.append(Note("sent again", {"frames": supplies[0].total}))
            self._say(*supplies)
        if agreement.said != plan.key and agreement.supplied(old):
            out += self._keep(plan.base)
            if self.kept < plan.base:
                return out
            agreement.said = plan.key
            agreement.promised.add(plan.id)
            self.here.barrier = self.here.barrier or plan.base
            done = Done(self.here.clock.send(), plan.key)
            agreement.hear(frame_of(done, self.here.identity), done)
            self._say(done)
        if agreement.said == plan.key and agreement.ready():
            return [*out, *self._install(now, plan, old)]
        return out

    def _say(self, *bodies: Bodies) -> None:
        for body in bodies:
            frame = frame_of(body, self.here.identity)
            for feed in self.here.feeds:
                feed.words.append(frame)

    def _install(self, now: Nanoseconds, plan: NextTopology, old: Old) -> list[Action]:
        """The old topology's last frames, the transitional view with its own, and the new one: one step."""
        agreement, members = self.agreement, plan.topology.members
        reason = max((agreement.words[member].state for member in members), key=lambda state: state.stamp)
        cause = Cause(reason.reason, reason.of)
        out: list[Action] = []
        trans: tuple[MemberId, ...] = ()
        if self.here.merge is not None:
            self._take_supplies()
            upto = old.upto or tuple(self.here.merge.known)
            regular, rest = self.here.merge.close(old.bound, old.stable or upto, upto, agreement.beyond(old))
            trans = old.members
            out += map(Up, regular)
            out.append(Up(ViewChange(View(plan.id, ViewKind.TRANSITIONAL, trans, trans, (), self.here.view, cause))))
            out += map(Up, rest)
        components = tuple((each.view, each.members) for each in plan.old)
        view = View(plan.id, ViewKind.REGULAR, members, trans, components, self.here.view, cause)
        out += [Up(ViewChange(view)), *self._notes(plan), SetTimer(OPEN, now)]
        self._enter(plan)
        self._wait_ns = 0
        return [*out, CancelTimer(PATIENCE), *self._entered(now, plan)]

    def _enter(self, plan: NextTopology) -> None:
        topology = plan.topology
        mine = [None if place.view is None else topology.rings.index(place.view) for place in self.here.places]
        self.here.view, self.here.topology, self.here.key = plan.id, topology, plan.key
        self.here.merge = Merge(len(topology.rings), len(self.here.places), plan.base)
        self.here.carrying = Carrying(self.here.me, plan.id, topology, mine, self.here.merge, self.here.feeds)
        for place in self.here.places:
            place.row, place.opened, place.reached = Row(len(topology.rings)), None, 0
        self.here.own_frames.clear()
        self._ordering.fragments.clear()
        self.here.flying = self.here.barrier = 0
        self.here.phase = Phase.STEADY
        self.here.clock.receive(plan.base)
        self.agreement.clear()
        for feed in self.here.feeds:
            feed.close()
            for member in topology.members:
                feed.states.pop(member, None)

    def _notes(self, plan: NextTopology) -> list[Action]:
        """What became of the rings and their ways."""
        old, new = self.here.topology, plan.topology
        fields = {"rings": len(new.rings), "members": len(new.members), "from": len(plan.of(self.here.me).members)}
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


def _ways(topology: Topology) -> dict[int, dict[int, tuple[int, MemberId]]]:
    """Source -> ring -> where its frames come from, by numbers of nets."""
    number = [ring.number for ring in topology.rings]
    return {
        number[source]: {
            number[ring]: (number[route.parent[ring]], route.gateway[ring]) for ring in range(len(number))
        }
        for source, route in enumerate(topology.routes)
    }  # fmt: skip
