"""A Lamport clock: the stamps by which several rings have one order.

Paper: "Performance engineering of the Totem group communication system" (1998), section 2.2, after Lamport 1978.
A member has one, whatever the number of its rings, and carries it from ring to ring: a new ring that began at 0 would
order new frames before old ones.
"""

from __future__ import annotations


class Lamport:
    __slots__ = ("clock",)

    def __init__(self, clock: int = 0) -> None:
        self.clock = clock

    def receive(self, stamp: int) -> None:
        """Something stamped so was heard: whatever follows is stamped later."""
        if stamp >= self.clock:
            self.clock = stamp + 1

    def send(self) -> int:
        """The stamp of what is sent now."""
        self.clock += 1
        return self.clock - 1
