"""The ring number: on storage before any token carries it, so that no life of a member ever uses a view id twice.

What others say raises it only by an agreement with them: the next ring's number is above those of its members, as their
Joins tell, and what is heard from anybody else leaves no mark here nor on the disk.

What is stored is a number above all that a token may carry, `RESERVE` ahead, and the next stretch is asked for when
half of it is used: a view change rarely waits for a disk, and one slower than T delays a view but does not prevent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.contract import Action, Store
from ordercast.types import MemberId

RING_STEP = 4  # a new ring's number above the highest seen; room for intermediate views
RING_SEQ = "ring_seq"  # key on storage
RESERVE = 32 * RING_STEP


class RingNumber:
    __slots__ = ("error", "seen", "stored", "storing", "unrecorded", "used", "wanted")

    def __init__(self) -> None:
        self.used = 0  # highest on a token I wrote; what a Join says
        self.stored = 0  # on storage: no token of mine carries a higher one
        self.seen: dict[MemberId, int] = {}  # in the newest Join of each
        self.wanted = 0  # highest on a token that was to be accepted
        self.storing = 0  # under way to the disk
        self.error = ""  # why the last write failed
        self.unrecorded = False  # under a policy: what else must be stored could not be

    def start(self, first: int, stored: Mapping[str, tuple[int, bytes]]) -> None:
        """Raised at every start: the life before may have used what it stored."""
        self.stored = stored[RING_SEQ][0] if RING_SEQ in stored else 0
        self.used = max(first, self.stored + RING_STEP)

    def see(self, q: MemberId, number: int) -> None:
        self.seen[q] = number

    def next(self, members: Iterable[MemberId] = ()) -> int:
        """Above what any of these, and I, have used."""
        return max(self.used, *(self.seen.get(q, 0) for q in members), 0) + RING_STEP

    @property
    def ill(self) -> bool:
        """Storage fails and the reserve is used up: no token can be accepted."""
        return self.unrecorded or (bool(self.error) and max(self.next(), self.wanted) > self.stored)

    def more(self) -> list[Action]:
        """Ask for the next stretch in good time, or again."""
        return self.need(self.used + RESERVE // 2)

    def again(self) -> list[Action]:
        """Try a write that failed once more."""
        return self.need(max(self.next(), self.wanted)) or self.more()

    def need(self, number: int) -> list[Action]:
        """Have it on storage, and some more; empty if it is there or on its way."""
        if number <= max(self.stored, self.storing):
            return []
        self.storing = number + RESERVE
        return [Store(RING_SEQ, self.storing, b"")]

    def want(self, number: int) -> list[Action]:
        """A token in hand carries it."""
        self.wanted = max(self.wanted, number)
        return self.need(number)

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
        return self.more()
