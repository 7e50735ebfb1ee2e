"""Reception in causal order: what is inserted, what is held back, what is known to be missing.

Paper: Y. Amir, D. Dolev, S. Kramer, D. Malki, the Transis layer below ToTo ("Total ordering of messages in broadcast
domains"): messages form a DAG by direct acknowledgements; a message enters when all it follows is there.
Differs from the paper:
  D1  A vector of one number per sender stands for the direct acknowledgements.  Exact: a causal past is closed under
      each sender's order.
  D2  Service fifo: a message enters when its sender's earlier ones are there; vectors then only acknowledge.

Vectors come from the wire.  One that names more than can exist (`far` above what is here, and nothing of our own line
that we have not sent) is not believed, so that no number of another's makes a loop or a list longer than that.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from operator import le
from typing import Generic, TypeVar

from ordercast.limits import UNSTABLE_FRAMES_MAX

T = TypeVar("T")
Key = tuple[int, int]  # (rank, seq)


class Reception(Generic[T]):
    """The DAG's frontier at one member; items ride along with their vectors."""

    __slots__ = ("_waiters", "causal", "far", "have", "held", "known")

    def __init__(self, n: int, me: int | None = None, far: int = UNSTABLE_FRAMES_MAX, causal: bool = True) -> None:
        self.causal = causal
        self.far = [0 if rank == me else far for rank in range(n)]  # how much more of each rank may exist
        self.have = [0] * n  # highest seq of each rank inserted
        self.known = [0] * n  # highest seq of each rank that is known to exist
        self.held: dict[Key, tuple[tuple[int, ...], T]] = {}
        self._waiters: dict[Key, list[Key]] = {}  # first missing predecessor -> held messages

    def offer(self, rank: int, seq: int, vec: tuple[int, ...], item: T) -> list[tuple[int, int, T]] | None:
        """Insert it and all it frees, in order; [] if it must wait; None if it was here before, or is not believed."""
        have = self.have
        if seq == have[rank] + 1:
            have[rank] = seq
            if all(map(le, vec, have)) or not (self.causal or self.beyond(vec)):
                if not self._waiters:
                    return [(rank, seq, item)]
                have[rank] = seq - 1
                return self._insert(rank, seq, item)
            have[rank] = seq - 1
        if seq <= have[rank] or (rank, seq) in self.held or self.beyond(vec):
            return None
        self.held[rank, seq] = (vec, item)
        self._wait(rank, seq, vec)
        return []

    def beyond(self, vec: tuple[int, ...]) -> bool:
        """Whether a vector names more than can exist."""
        return any(seq > have + far for seq, have, far in zip(vec, self.have, self.far, strict=True))

    def learn(self, vec: tuple[int, ...] | list[int]) -> bool:
        """Somebody has, or follows, this much: remember what must exist; true if some of it is news and not here."""
        known, have, news = self.known, self.have, False
        for q, seq in enumerate(vec):
            if seq > known[q]:
                known[q] = seq
                news = news or seq > have[q]
        return news

    def gaps(self) -> list[Key]:
        """Everything known to exist that is neither inserted nor held."""
        held = self.held
        return [
            (q, k)
            for q, (have, known) in enumerate(zip(self.have, self.known, strict=True))
            for k in range(have + 1, known + 1)
            if (q, k) not in held
        ]

    def ready(self, rank: int, seq: int, vec: tuple[int, ...]) -> bool:
        """Whether all it must follow is here."""
        return seq == self.have[rank] + 1 and self._missing(rank, seq, vec) is None

    def _missing(self, rank: int, seq: int, vec: tuple[int, ...]) -> Key | None:
        """The first predecessor that is not inserted; its own sender's line first."""
        have = self.have
        if have[rank] + 1 < seq:
            return rank, have[rank] + 1
        for q, k in enumerate(vec if self.causal else ()):
            if q != rank and k > have[q]:
                return q, have[q] + 1
        return None

    def _wait(self, rank: int, seq: int, vec: tuple[int, ...]) -> None:
        missing = self._missing(rank, seq, vec)
        assert missing is not None
        self._waiters.setdefault(missing, []).append((rank, seq))

    def _insert(self, rank: int, seq: int, item: T) -> list[tuple[int, int, T]]:
        """Insert one, then repeatedly the smallest (rank, seq) that has become insertable.

        Of two with one number, which no honest sender makes, the one that can be inserted first counts."""
        out: list[tuple[int, int, T]] = []
        self.held.pop((rank, seq), None)
        ready: list[tuple[int, int]] = [(rank, seq)]
        items = {(rank, seq): item}
        heapify(ready)
        while ready:
            key = heappop(ready)
            assert self.have[key[0]] == key[1] - 1, "inserted out of its sender's order"
            self.have[key[0]] = key[1]
            out.append((*key, items.pop(key)))
            for waiter in self._waiters.pop(key, ()):
                if waiter not in self.held:
                    continue
                vec, held = self.held[waiter]
                if self._missing(*waiter, vec) is None:
                    del self.held[waiter]
                    items[waiter] = held
                    heappush(ready, waiter)
                else:
                    self._wait(*waiter, vec)
        return out
