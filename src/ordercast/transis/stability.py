"""Stability: what every member has acknowledged may be released; nothing else waits for it."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[int, int]  # (rank, seq)


class Stability(Generic[T]):
    """How much of each rank every member is known to have; everything not yet stable stays in `buffer`.

    A member tells it by the vector of its last inserted message and by its Status; the two are joined when needed.
    """

    __slots__ = ("buffer", "by_message", "by_status", "stable")

    def __init__(self, n: int) -> None:
        self.by_message: list[tuple[int, ...]] = [(0,) * n for _ in range(n)]  # vectors of one sender only grow
        self.by_status: list[tuple[int, ...]] = [(0,) * n for _ in range(n)]
        self.stable = [0] * n
        self.buffer: dict[Key, T] = {}

    def insert(self, rank: int, seq: int, vec: tuple[int, ...], item: T) -> None:
        self.by_message[rank] = vec
        self.buffer[rank, seq] = item

    def report(self, rank: int, have: tuple[int, ...] | list[int]) -> None:
        """Rank p says that it has inserted this much."""
        if sum(have) > sum(
            self.by_status[rank]
        ):  # one member's vectors only grow, so of any two the larger covers both
            self.by_status[rank] = tuple(have)

    def acked(self, rank: int) -> list[int]:
        return list(map(max, self.by_message[rank], self.by_status[rank]))

    def advance(self) -> list[Key]:
        """Release what has become stable everywhere; returns it."""
        rows = [self.acked(p) for p in range(len(self.stable))]
        stable = list(map(min, *rows)) if len(rows) > 1 else rows[0]
        released: list[Key] = []
        buffer = self.buffer
        for q, (old, new) in enumerate(zip(self.stable, stable, strict=True)):
            for k in range(old + 1, new + 1):
                if (q, k) in buffer:
                    del buffer[q, k]
                    released.append((q, k))
        self.stable = stable
        return released

    def holders(self, rank: int, seq: int) -> list[int]:
        """Who is known to have it.  While I lack it nobody releases it, so any of them can answer."""
        return [p for p in range(len(self.stable)) if max(self.by_message[p][rank], self.by_status[p][rank]) >= seq]
