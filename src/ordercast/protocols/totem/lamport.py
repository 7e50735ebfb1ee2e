"""A Lamport clock: the stamps by which several rings have one order.

Paper: "Performance engineering of the Totem group communication system" (1998), section 2.2, after Lamport 1978.
A member has one, whatever the number of its rings, and carries it from ring to ring: a new ring that began at 0 would
order new frames before old ones.

Who joins rings lets it run with time as well (`run`): what a ring promised while its token was at a gateway then covers
whatever another ring stamped before that moment, also if nobody here has heard of it.
"""

from __future__ import annotations

from ordercast.types import Nanoseconds


class Lamport:
    __slots__ = ("ahead", "clock")

    def __init__(self, clock: int = 0) -> None:
        self.clock = clock
        self.ahead: int | None = None  # of my own microseconds, as far as what I heard was

    def receive(self, stamp: int) -> None:
        """Something stamped so was heard: whatever follows is stamped later."""
        if stamp >= self.clock:
            self.clock = stamp + 1

    def send(self) -> int:
        """The stamp of what is sent now."""
        self.clock += 1
        return self.clock - 1

    def run(self, now: Nanoseconds) -> None:
        """So many microseconds have passed; stamps that I heard and that are ahead of my time stay ahead."""
        own = now // 1000
        ahead = self.clock - own
        if self.ahead is None or ahead > self.ahead:
            self.ahead = ahead
        else:
            self.clock = own + self.ahead
