"""When a frame may go up where several rings have one order: guarantee vectors.

Paper: "Performance engineering of the Totem group communication system" (1998), section 2.2.

The order is (timestamp, source ring).  A frame goes up when nothing earlier can come any more: its timestamp is at most
every entry of the vector that says, per source, up to which timestamp everything has arrived.  It is safe when every
ring holds everything of its source up to it, on all its members.

Differs from the paper:
  D1  "at most", not "less than": stamps of one ring grow strictly, and with "less than" each frame would wait for the
      next of its own ring.
  D2  An entry is also raised by the token of its own ring: idle rings block nobody.
  D3  Where a frame comes on two of a gateway's rings the larger entry counts; so there is no entry that only its own
      forwarding would raise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeVar

from ordercast.contract import Ordered
from ordercast.types import Service

SAFE = int(Service.SAFE)
Named = TypeVar("Named")


def deliverable(pending: Iterable[tuple[int, int, Named]], gv: Mapping[int, int]) -> list[Named]:
    """Of (timestamp, source, name), what may go up as agreed, in order."""
    bound = min(gv.values())
    return [name for stamp, _, name in sorted(pending, key=lambda item: item[:2]) if stamp <= bound]


def safe_prefix(agreed: Iterable[tuple[int, int, Named]], ga: Mapping[int, Mapping[int, int]]) -> list[Named]:
    """Of these, in order, those before the first that some ring may lack."""
    out: list[Named] = []
    for stamp, source, name in agreed:
        if any(row[source] < stamp for row in ga.values()):
            break
        out.append(name)
    return out


class Row:
    """What one ring holds safely, per source: marks wait here until their number on that ring is safe."""

    __slots__ = ("marks", "safe", "stamps")

    def __init__(self, sources: int) -> None:
        self.stamps = [0] * sources
        self.marks: deque[tuple[int, int, int]] = deque()  # number on the ring, source, timestamp
        self.safe = 0

    def mark(self, seq: int, source: int, stamp: int) -> None:
        self.marks.append((seq, source, stamp))

    def settle(self, safe: int) -> bool:
        """All members of the ring hold its numbers up to `safe`; whether that says anything new."""
        self.safe = max(self.safe, safe)
        marks, stamps, news = self.marks, self.stamps, False
        while marks and marks[0][0] <= self.safe:
            _, source, stamp = marks.popleft()
            if stamp > stamps[source]:
                stamps[source], news = stamp, True
        return news


class Merge:
    """The frames of one topology at one member: what waits for its place, and what others may still lack.

    Sources are numbered 0 .. `sources` - 1, rings of mine 0 .. `children` - 1.
    """

    def __init__(self, sources: int, children: int, base: int) -> None:
        self.base = base  # no frame of this topology is stamped below
        self.arrived = [[base - 1] * sources for _ in range(children)]  # gv, per ring of mine
        self.known = [base - 1] * sources  # the larger of these (D3)
        self.bound = base - 1  # the least of those
        self.controls = [base - 1] * sources  # up to here at least, what changes process groups has arrived
        self.pending: list[tuple[int, int, Ordered]] = []  # a heap
        self.kept: list[dict[int, Ordered]] = [{} for _ in range(sources)]  # not yet held on every ring
        self.rows = [[base - 1] * sources for _ in range(sources)]  # ga: ring -> source -> timestamp
        self.stable = [base - 1] * sources  # the least of each column
        self.extra: list[set[int]] = [set() for _ in range(sources)]  # stamps kept beyond `known`
        self.last = (0, 0)  # what went up last

    def take(self, child: int, event: Ordered, source: int) -> str:
        """A frame came on a ring of mine: empty, or why it is not taken."""
        stamp, arrived = event.stamp, self.arrived[child]
        if stamp <= arrived[source]:
            return "stamp"
        arrived[source] = stamp
        if stamp <= self.known[source]:
            return "twice"
        self._raise(source, stamp)
        if self.extra[source] and stamp in self.extra[source]:
            self.extra[source].discard(stamp)
            return "twice"
        heappush(self.pending, (stamp, source, event))
        self.kept[source][stamp] = event
        return ""

    def take_extra(self, event: Ordered, source: int) -> bool:
        """A frame whose predecessors may be missing."""
        stamp = event.stamp
        if stamp <= self.known[source] or stamp in self.extra[source]:
            return False
        self.extra[source].add(stamp)
        heappush(self.pending, (stamp, source, event))
        self.kept[source][stamp] = event
        return True

    def promise(self, child: int, source: int, stamp: int) -> None:
        """Nothing of that source comes on that ring any more up to this stamp."""
        arrived = self.arrived[child]
        if stamp > arrived[source]:
            arrived[source] = stamp
            if stamp > self.known[source]:
                self._raise(source, stamp)

    def _raise(self, source: int, stamp: int) -> None:
        known = self.known
        was, known[source] = known[source], stamp
        if was == self.bound:
            self.bound = min(known)

    def learn(self, ring: int, stamps: Sequence[int]) -> bool:
        """What a ring holds safely; whether some source became stable further."""
        row, news = self.rows[ring], False
        for source, stamp in enumerate(stamps):
            if stamp > row[source]:
                was, row[source] = row[source], stamp
                if was == self.stable[source]:
                    least = min(other[source] for other in self.rows)
                    news = news or least > was
                    self.stable[source] = least
        return news

    def deliver(self) -> Iterator[Ordered]:
        """What goes up now, in order; a safe frame that may not yet, and all behind it, waits."""
        pending, bound, stable = self.pending, self.bound, self.stable
        while pending and pending[0][0] <= bound:
            stamp, source, event = pending[0]
            if event.frame.service == SAFE and stamp > stable[source]:
                return
            heappop(pending)
            self.last = (stamp, source)
            yield event

    def forget(self) -> Iterator[Ordered]:
        """Frames that every ring holds and that went up; nobody will ask for them."""
        last = self.last
        for source, kept in enumerate(self.kept):
            upto = self.stable[source]
            while kept:
                stamp = next(iter(kept))
                if stamp > upto or (stamp, source) > last:
                    break
                yield kept.pop(stamp)

    def close(
        self, bound: int, stable: Sequence[int], upto: Sequence[int], more: set[tuple[int, int]]
    ) -> tuple[list[Ordered], list[Ordered]]:
        """The last frames of this topology, in order: those that hold for all of it, and those for who comes along.

        upto, more: what all who come along hold; anything else here is nobody's.
        """
        regular: list[Ordered] = []
        rest: list[Ordered] = []
        for stamp, source, event in sorted(self.pending, key=lambda item: item[:2]):
            if stamp > upto[source] and (source, stamp) not in more:
                continue
            unsure = event.frame.service == SAFE and stamp > stable[source]
            (rest if rest or stamp > bound or unsure else regular).append(event)
        self.pending = []
        return regular, rest
