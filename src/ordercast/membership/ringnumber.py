"""The ring number: on storage before any token carries it, so that no life of a member ever uses a view id twice.

What is stored is a number above all that a token may carry, `RESERVE` ahead, and the next stretch is asked for when
half of it is used: a view change rarely waits for a disk, and one slower than T delays a view but does not prevent it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.contract import Action, Store
from ordercast.limits import RING_SEQ_MAX

RING_STEP = 4  # a new ring's number above the highest seen; room for intermediate views
RING_SEQ = "ring_seq"  # key on storage
RESERVE = 32 * RING_STEP


class RingNumber:
    __slots__ = ("error", "seen", "stored", "storing", "used")

    def __init__(self) -> None:
        self.used = 0  # highest on a token I wrote; what a Join says
        self.stored = 0  # on storage: no token of mine carries a higher one
        self.seen = 0  # highest seen anywhere
        self.storing = 0  # under way to the disk
        self.error = ""  # why the last write failed

    def start(self, first: int, stored: Mapping[str, tuple[int, bytes]]) -> None:
        """Raised at every start: the life before may have used what it stored."""
        self.stored = stored[RING_SEQ][0] if RING_SEQ in stored else 0
        self.used = max(first, self.stored + RING_STEP)

    def see(self, number: int) -> None:
        if number <= RING_SEQ_MAX:
            self.seen = max(self.seen, number)

    def next(self) -> int:
        return max(self.seen, self.used) + RING_STEP

    @property
    def ill(self) -> bool:
        """Storage fails and the reserve is used up: no token can be accepted."""
        return bool(self.error) and self.next() > self.stored

    def more(self) -> list[Action]:
        """Ask for the next stretch in good time, or again."""
        return self.need(self.used + RESERVE // 2)

    def need(self, number: int) -> list[Action]:
        """Have it on storage, and some more; empty if it is there or on its way."""
        if number <= max(self.stored, self.storing):
            return []
        self.storing = number + RESERVE
        return [Store(RING_SEQ, self.storing, b"")]

    def answered(self, number: int) -> None:
        self.stored = max(self.stored, number)
        if number >= self.storing:
            self.storing = 0
        self.error = ""

    def failed(self, number: int, why: str) -> None:
        if number >= self.storing:
            self.storing = 0
        self.error = why

    def use(self, number: int) -> list[Action]:
        """It goes on a token now; asks for more in good time."""
        assert self.used < number <= self.stored, "a number leaves on a token only from storage, and once"
        self.used = number
        self.see(number)
        return self.more()
