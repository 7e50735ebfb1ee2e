"""How far other members are: round trips, measured by unicast (6.1).

Half of the shortest of the last few is the distance, by which sequencers are chosen; half of the shortest ever seen is
what rate-synchronised numbers may add to a number that comes from there.  Queues and repetitions only make a trip
longer, so the shortest tells most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ordercast.protocols.hybrid.packets import Ping
from ordercast.types import MemberId, Nanoseconds

US = 1_000  # nanoseconds


class Ways:
    """From one member to the others."""

    def __init__(self, trips: int) -> None:
        self.trips = trips  # that count
        self.last: dict[MemberId, deque[Nanoseconds]] = {}
        self.distance: dict[MemberId, float] = {}  # nanoseconds
        self.shortest: dict[MemberId, int] = {}  # microseconds
        self.asked: dict[MemberId, tuple[int, Nanoseconds]] = {}  # the last question that is not answered, and when
        self.number = 0

    def ask(self, now: Nanoseconds, members: Iterable[MemberId]) -> list[tuple[MemberId, Ping]]:
        self.number += 1
        out = []
        for member in members:
            self.asked[member] = (self.number, now)
            out.append((member, Ping(self.number)))
        return out

    def answered(self, now: Nanoseconds, member: MemberId, number: int) -> bool:
        """False: nobody had asked that."""
        asked, at = self.asked.get(member, (0, now))
        if asked != number:
            return False
        del self.asked[member]
        trips = self.last.setdefault(member, deque(maxlen=self.trips))
        trips.append(max(1, now - at))
        self.distance[member] = min(trips) / 2
        way = min(trips) // (2 * US)
        self.shortest[member] = min(way, self.shortest.get(member, way))
        return True

    def known(self, member: MemberId) -> bool:
        """Whether it was asked often enough."""
        return len(self.last.get(member, ())) >= self.trips
