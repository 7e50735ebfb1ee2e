"""Which numbers from the wire can be true: lives and rings are numbered by the wall clock, so none is from tomorrow.

A life's incarnation is the wall clock in ns when it began, a ring's number at least that in us, or what was stored is
larger.  No wall clock enters a core: its clock here is the number that it began with and the time since then.  Clocks
may be wrong by hours; a number more than a day above the own clock, and above all that was agreed on, is damage, a
forgery, or a clock that nobody should follow: once such a number were stored, no later life could go below it.
"""

from __future__ import annotations

from ordercast.types import Identity, Incarnation, Nanoseconds

DAY_NS = 24 * 3600 * 1_000_000_000
DAY_US = DAY_NS // 1_000


class Plausible:
    """Of one member."""

    __slots__ = ("_began", "_life", "_ring")

    def __init__(self, identity: Identity) -> None:
        self._life, self._ring = identity.incarnation, identity.ring_seq
        self._began: Nanoseconds = 0

    def start(self, now: Nanoseconds, ring_seq: int) -> None:
        """`ring_seq`: the number I begin with, which is above what was stored."""
        self._began, self._ring = now, ring_seq

    def agreed(self, now: Nanoseconds, ring_seq: int, lives: tuple[Incarnation, ...]) -> None:
        """On a full commit token that names me: the clock goes on from there."""
        passed = now - self._began
        self._life = max(self._life, max(lives) - passed)
        self._ring = max(self._ring, ring_seq - passed // 1_000)

    def life(self, now: Nanoseconds, incarnation: Incarnation) -> bool:
        return incarnation <= self._life + now - self._began + DAY_NS

    def ring(self, now: Nanoseconds, ring_seq: int) -> bool:
        return ring_seq <= self._ring + (now - self._began) // 1_000 + DAY_US
