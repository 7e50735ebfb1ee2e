"""One topology at one member while it lasts: frames come, are carried on, and go up in the order of their stamps.

Paper: "Performance engineering of the Totem group communication system" (1998), section 2.2; the rules of the order are
in `guarantee`, those of a gateway in `gateway`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ordercast.contract import Action, Note, Ordered, Receive, Up, dropped
from ordercast.joining import Progress
from ordercast.protocols.totem.bodies import Vector
from ordercast.protocols.totem.gateway import Carrying, Filter
from ordercast.protocols.totem.here import HOME, Here, Phase
from ordercast.protocols.totem.ring import Stamped
from ordercast.types import Frame, MemberId, Nanoseconds

Steps = Callable[[Nanoseconds], list[Action]]


class Ordering:
    """speak: own frames came back; who has stopped may now say where it stands.

    settled: own frames are held on every ring; who leaves may go.
    """

    def __init__(self, here: Here, filter: Filter, *, speak: Steps, settled: Steps) -> None:
        self.here, self.filter, self._speak, self._settled = here, filter, speak, settled
        self.undecided: list[
            tuple[int, int, int, Frame]
        ] = []  # timestamp, source, child: frames for groups, on the way
        self.fragments: dict[MemberId, list[Frame]] = {}  # of messages that are not whole
        self.risen: tuple[int, int] | None = None  # the first frame since the last pause that went up and may regroup

    def clear(self) -> None:
        """The topology ends: nothing is carried on.  Of a message that is not whole the rest may be sent again."""
        self.undecided.clear()
        self.risen = None

    def take(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
        """A frame of some source came on a ring of mine."""
        merge, source = self.here.merge, event.source - 1
        if self.here.barrier and event.stamp >= self.here.barrier:
            self.here.early.append((child, event))
            return []
        frame = event.frame
        if frame.sender == self.here.me and child == HOME and frame.incarnation == self.here.identity.incarnation:
            self.here.flying = max(0, self.here.flying - 1)
        if merge is None or event.stamp < merge.base:
            return self._speak(now)  # of a topology that is over, or that I was not in
        if source >= len(merge.kept):
            return [dropped("source", source=event.source)]
        place, carrying = self.here.places[child], self.here.carrying
        assert carrying is not None
        if event.ring != carrying.labels[child]:
            event = replace(event, ring=carrying.labels[child])
        if place.transitional:
            return self._whole(frame) if merge.take_extra(event, source) and frame.parts > 1 else []
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
        if self.here.phase is not Phase.STEADY:
            return out + self._speak(now)
        if carrying.onward[child][source]:
            self._carry(carrying, child, source, event)
        elif why and (source, child) not in carrying.mine_into:
            out.append(Note("duplicate on a cycle"))
        if merge.pending and merge.pending[0][0] <= merge.bound:
            out += self._deliver(now)
        return out

    def again(self, frame: Frame) -> list[Action]:
        """A frame that was lacking is here: another member has sent it again."""
        return self._whole(frame) if frame.parts > 1 else [Receive(frame)]

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
            feed = self.here.feeds[other]
            feed.forwards.append(Stamped(event.frame, event.stamp, event.source))
            if self.filter.concerns(event.frame, carrying):
                feed.undecided.add((event.stamp, event.source))
                self.undecided.append((event.stamp, event.source, other, event.frame))

    def turn(self, child: int, past: Callable[[int], int]) -> list[Action]:
        """A ring has given me its token; `past`: as `Ring.past`, of its own frames by their source."""
        carrying = self.here.carrying
        source = carrying.mine[child] if carrying is not None else None
        return self.decide(source, past(source + 1)) if source is not None else []

    def decide(self, turn: int = 0, past: int = 0) -> list[Action]:
        """Of frames for groups whose place is known: whether anybody behind a ring of mine wants them.

        Of the source `turn` nothing is to come that is stamped `past` or earlier and changes groups.
        """
        merge, carrying = self.here.merge, self.here.carrying
        assert merge is not None and carrying is not None
        regroups = min(((stamp, s) for stamp, s, event in merge.pending if event.frame.control), default=None)
        regroups = self.risen or regroups  # what a frame that just went up changes is heard of behind this step
        later, filtered = [], 0
        told = list(map(max, merge.known, merge.controls))
        told[turn] = max(told[turn], past)
        for item in self.undecided:
            at, source, child, frame = item
            if any(known < at - (s >= source) for s, known in enumerate(told) if s != source - 1):
                later.append(item)
                continue
            self.here.feeds[child].undecided.discard((at, source))
            sure = regroups is None or (at, source - 1) < regroups  # else somebody may join before it
            if sure and not self.filter.wanted(frame, carrying.audience[child, source - 1]):
                self.here.feeds[child].unwanted.add((at, source))
                filtered += 1
        self.undecided = later
        self.filter.fading.clear()
        carrying.changed()
        return [Note("filtered", {"frames": filtered})] if filtered else []

    def _deliver(self, now: Nanoseconds) -> list[Action]:
        merge = self.here.merge
        assert merge is not None
        out: list[Action] = []
        for event in merge.deliver():
            if event.frame.control and self.risen is None:
                self.risen = (event.stamp, event.source - 1)
            out.append(Up(event))
        return out

    def pause(self) -> list[Action]:
        """All that went up was heard, and what it changes."""
        self.risen = None
        return self.decide() if self.undecided else []

    def progress(self, now: Nanoseconds, child: int, event: Progress) -> list[Action]:
        merge, carrying, place = self.here.merge, self.here.carrying, self.here.places[child]
        place.turned = event.timestamp
        if merge is None or carrying is None:
            return self.here.ask(child)
        source = carrying.mine[child]
        if source is None or place.view != carrying.topology.rings[source]:
            return self.here.ask(child)
        merge.promise(child, source, event.timestamp)
        carrying.changed()
        if place.row is not None:
            place.row.mark(event.seq, source, event.timestamp)
        out = self.settle(now, child)
        if len(self.here.feeds) > 1:
            out += self.decide() if self.undecided else []  # who is alone receives nothing, and has no other pause
            out += self.here.ask_all()
        return out

    def settle(self, now: Nanoseconds, child: int) -> list[Action]:
        """Something of mine may be known to be held on my ring, and so on every ring; and frames may go up."""
        merge, carrying, place = self.here.merge, self.here.carrying, self.here.places[child]
        if merge is None or carrying is None or self.here.phase is not Phase.STEADY:
            return []
        row, ring = place.row, carrying.mine[child]
        if not place.reached and place.opened is not None and place.safe >= place.opened:
            place.reached = self.here.clock.clock
        held = row is not None and 0 < place.reached < place.turned and not place.full
        if held and ring is not None and row is not None and row.settle(place.safe):
            merge.learn(ring, row.stamps)
            carrying.changed()
        return self._deliver(now) + self._release(now)

    def _release(self, now: Nanoseconds) -> list[Action]:
        assert self.here.merge is not None
        mine = 0
        for event in self.here.merge.forget():
            frame = event.frame
            if frame.sender == self.here.me and self.here.own_frames and frame is self.here.own_frames[0]:
                self.here.own_frames.popleft()
                mine += 1
        if not mine:
            return []
        return [*self._settled(now), *self.here.ask(HOME)]

    def vector(self, now: Nanoseconds, child: int, event: Ordered, vector: Vector) -> list[Action]:
        carrying, place = self.here.carrying, self.here.places[child]
        if carrying is None or vector.view != self.here.view:
            if self.here.barrier:
                self.here.early.append((child, event))
            return []
        if place.transitional:
            return []
        if not carrying.believable(child, event.frame.sender, vector):
            return [dropped("vector")]
        self.here.clock.receive(vector.need)
        news = carrying.hear(child, event.seq, vector)
        if place.row is not None:
            for source, stamp in vector.entries:
                place.row.mark(event.seq, source, stamp)
        if self.here.phase is not Phase.STEADY:
            return []
        out = self._deliver(now)
        return out + self._release(now) if news else out

    def open(self, now: Nanoseconds) -> list[Action]:
        """Once everybody on a ring heard that all are ready, and the token went round again, what is held there counts.

        A member passes the token on before it handles what had come: it may die then, and never be in the topology.
        Who had begun anew before it heard is not in it either; it has said so on the ring by the next turn.
        """
        carrying = self.here.carrying
        if carrying is None or self.here.phase is not Phase.STEADY:
            return []
        out: list[Action] = []
        for child, place in enumerate(self.here.places):
            members = carrying.topology.members
            if place.opened is None and all(
                member in place.done and place.done[member][2] == self.here.key for member in members
            ):
                place.opened = place.done_seq
                out += self.settle(now, child)
        return out
