"""Ticket numbers: a Lamport clock, or one that keeps the pace of time (rate synchronisation, section 4.2).

Both: what is issued is larger than everything issued or heard before.  That is what the order stands on; all else here
is performance (H12).  A rate-synchronised clock counts microseconds of a time that all members approach: whoever hears
a number knows that its sender's clock has gone on since by about the way it came.  So a member that speaks seldom still
promises large numbers when it does, and waits of different rates do not add up.
To take a way for too short is harmless; to take it for too long by e makes clocks push each other by e per exchange.
"""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.types import MemberId, Nanoseconds

US = 1_000  # nanoseconds


class Lamport:
    """Counts what happens."""

    def __init__(self) -> None:
        self.t = 0  # last number issued, promised or heard

    def tick(self, now: Nanoseconds) -> int:
        self.t += 1
        return self.t

    def hear(self, now: Nanoseconds, number: int, source: MemberId) -> None:
        if number > self.t:
            self.t = number

    def restart(self) -> None:
        self.t = 0


class RateSynchronised(Lamport):
    """Counts microseconds, and what happens where that is more."""

    def __init__(self, delay: Mapping[MemberId, int]) -> None:
        super().__init__()
        self.ahead = 0  # of the common time before mine; it never decreases
        self.delay = delay  # the shortest way seen from each, microseconds

    def tick(self, now: Nanoseconds) -> int:
        self.t = max(self.t + 1, now // US + self.ahead)
        return self.t

    def hear(self, now: Nanoseconds, number: int, source: MemberId) -> None:
        if number > self.t:
            self.t = number
        ahead = number + self.delay.get(source, 0) - now // US
        if ahead > self.ahead:
            self.ahead = ahead

    def restart(self) -> None:
        self.t = self.ahead = 0
