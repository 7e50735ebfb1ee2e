"""Stamps: every member proposes one for a frame, the greatest is final, frames are delivered in the order of finals.

Paper: M. Dasser, "TOMP: A Total Ordering Multicast Protocol", sections 2.1 (ABCAST) and 3.2 (TOMP).
A stamp is a pair (number, host); host j alone issues (*, j), and no number twice.  The stamp of an undecided message
is a lower bound of its final one.  Anticipation raises it: a validation tells for each sender k which message of k all
had received (`min_next_mid`), and what the next one gets at least (`max_next_ts`); every message after that gets more.

Only the first undecided message of each sender can hold others up, because stamps grow along one sender's messages.
So bounds of the others are kept and looked at when their turn comes: a validation costs O(members).

`Book` is the reception queue of one host, `Votes` what a source collects for one message of its own.  No network, no
frames: members are ranks here, 0..n-1, only the host in a stamp is an id.  Differences E1 and E2: see layer.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ordercast.types import MemberId

Stamp = tuple[int, int]  # number, host
NEVER: Stamp = (2**64, 0)  # above every stamp


class Bound(NamedTuple):
    """Messages `least` <= n < `upto` of one sender get at least (base + n, host)."""

    least: int
    upto: int  # later ones had not come: their own stamp counts from a clock that knows the final
    slope: Stamp  # base, host


class Line:
    """The undecided messages of one sender, with the stamps given here, and the bounds told since."""

    __slots__ = ("bounds", "first", "numbers", "own")

    def __init__(self, own: MemberId) -> None:
        self.own = own
        self.numbers: dict[int, int] = {}  # n -> number given here
        self.first = 1  # the first that is undecided, or yet to come
        self.bounds: list[Bound] = []  # in the order in which they were told, so `upto` ascends

    def stamp(self, n: int) -> Stamp:
        """What an undecided message gets at least."""
        best: Stamp = (self.numbers[n], self.own)
        for bound in self.bounds:
            if bound.least <= n < bound.upto:
                best = max(best, (bound.slope[0] + n, bound.slope[1]))
        return best

    def raise_to(self, least: int, upto: int, at_least: Stamp) -> None:
        """Message `least` gets at least this, the next ones more; of those that came, up to `upto`."""
        new = Bound(least, upto, (at_least[0] - least, at_least[1]))
        bounds = self.bounds
        while bounds and bounds[-1].least >= least and bounds[-1].slope <= new.slope:
            bounds.pop()
        bounds.append(new)

    def decide(self, n: int, upto: int) -> bool:
        """Message n is decided; whether another one is the first now."""
        del self.numbers[n]
        if n != self.first:
            return False
        while self.first < upto and self.first not in self.numbers:
            self.first += 1
        if self.bounds:
            self._forget()
        return True

    def _forget(self) -> None:
        """Bounds of what is decided, and those that a later one covers."""
        kept: list[Bound] = []
        best: Stamp = (-NEVER[0], 0)
        for bound in reversed(self.bounds):
            if bound.upto <= self.first:
                break
            if bound.slope > best:
                kept.append(bound)
                best = bound.slope if bound.least <= self.first else best
        self.bounds = kept[::-1]


class Book:
    """The reception queue of one host in one view."""

    def __init__(self, me: MemberId, n: int, clock: int = 0) -> None:
        self.me, self.clock = me, clock
        self.next_mid = [1] * n  # of each rank, the next message to come
        self.lines = [Line(me) for _ in range(n)]
        self.heads: list[Stamp] = [NEVER] * n  # of each rank, the stamp of its first undecided message
        self.ready: list[tuple[Stamp, int, int]] = []  # decided: final, rank, n

    def propose(self, rank: int) -> int:
        """The next message of a sender has come: the number it gets here (3.2.2.2)."""
        n, line = self.next_mid[rank], self.lines[rank]
        self.next_mid[rank] = n + 1
        self.clock += 1
        if not line.numbers:
            line.first = n
            self.heads[rank] = (self.clock, self.me)
        line.numbers[n] = self.clock
        return self.clock

    def stamp(self, rank: int, n: int) -> Stamp | None:
        """The stamp of an undecided message, None if there is none of that number."""
        line = self.lines[rank]
        if n not in line.numbers:
            return None
        return self.heads[rank] if n == line.first else line.stamp(n)

    def decide(self, rank: int, n: int, final: Stamp) -> None:
        """A message gets its final stamp (3.2.3.2).  E1: the clock, too."""
        line = self.lines[rank]
        heappush(self.ready, (final, rank, n))
        self.clock = max(self.clock, final[0])
        if line.decide(n, self.next_mid[rank]):
            self.heads[rank] = line.stamp(line.first) if line.numbers else NEVER

    def anticipate(self, min_next_mid: Sequence[int], max_next_ts: Sequence[Stamp]) -> bool:
        """Raise the bounds of what is undecided (3.2.3.2); whether one that holds others up was raised."""
        raised, heads = False, self.heads
        for rank, head in enumerate(heads):
            least, upto = min_next_mid[rank], self.next_mid[rank]
            if head is NEVER or least >= upto:
                continue
            line, at_least = self.lines[rank], max_next_ts[rank]
            ahead = line.first - least
            if ahead >= 0 and (bound := (at_least[0] + ahead, at_least[1])) > head:
                heads[rank] = bound
                raised = True
            if ahead < 0 or len(line.numbers) > 1:
                line.raise_to(least, upto, at_least)
        return raised

    def deliverable(self) -> list[tuple[Stamp, int, int]]:
        """What goes up now, in order: decided, and nothing undecided can get less; of equal stamps the decided one
        goes first, as finals are unique."""
        ready, out = self.ready, []
        if ready:
            least = min(self.heads)
            while ready and ready[0][0] <= least:
                out.append(heappop(ready))
        return out

    def listed(self) -> list[tuple[int, int, Stamp]]:
        """Rank, n and stamp of everything undecided."""
        return [(rank, n, self.stamp(rank, n) or NEVER) for rank, line in enumerate(self.lines) for n in line.numbers]

    def base(self) -> int:
        """No stamp of the queue has a higher number; anticipation does not move the clock, so it may be above it."""
        return max([self.clock, *(stamp[0] for _, _, stamp in self.listed())])


class Votes:
    """The acknowledgements of one own message (3.2.2.3).  Commutative; a second one of the same host is ignored."""

    __slots__ = ("final", "max_next_ts", "min_next_mid", "missing")

    def __init__(self, hosts: Sequence[MemberId]) -> None:
        self.missing = set(hosts)
        self.final: Stamp = (0, 0)
        self.min_next_mid: list[int] = []
        self.max_next_ts: list[Stamp] = []

    def add(self, host: MemberId, number: int, next_mid: Sequence[int]) -> bool:
        """E2: `max_next_ts` is a lower bound, so a maximum among the hosts that hold the minimum id.  Whether all have
        acknowledged now."""
        if host not in self.missing:
            return False
        self.missing.remove(host)
        self.final = max(self.final, (number, host))
        candidate = (number + 1, host)
        if not self.min_next_mid:
            self.min_next_mid = list(next_mid)
            self.max_next_ts = [candidate] * len(next_mid)
            return not self.missing
        least, bounds = self.min_next_mid, self.max_next_ts
        for rank, mid in enumerate(next_mid):
            if mid < least[rank]:
                least[rank], bounds[rank] = mid, candidate
            elif mid == least[rank] and candidate > bounds[rank]:
                bounds[rank] = candidate
        return not self.missing
