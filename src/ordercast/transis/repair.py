"""Repair of gaps: whom to ask for what, and when again.

A gap is asked for after T_nack x (1 + rank/n), so that one member's Nack serves its neighbours; first of whoever
revealed it, then of its sender, then of any known holder in turn; repeated with doubling pauses up to T/4.
One that stands for 2 T although it is asked for again and again is *stuck*: those asked are to blame.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from ordercast.limits import NACK_RANGES_MAX
from ordercast.types import Nanoseconds

Key = tuple[int, int]  # (rank, seq)
Range = tuple[int, int, int]  # rank, from, to
STUCK_TRIES = 8  # so that a pause of this member accuses nobody


class _Gap:
    __slots__ = ("asked", "due", "pause", "revealer", "since", "tries")

    def __init__(self, now: Nanoseconds, due: Nanoseconds, pause: Nanoseconds, revealer: int) -> None:
        self.since, self.due, self.pause, self.revealer, self.tries = now, due, pause, revealer, 0
        self.asked: set[int] = set()


class Repair:
    """The open gaps of one member."""

    def __init__(self, rank: int, n: int, timeout_ns: Nanoseconds) -> None:
        self.rank, self.n = rank, n
        self.nack_ns = max(1_000_000, timeout_ns // 100)  # T_nack
        self.pause_max_ns = max(self.nack_ns, timeout_ns // 4)
        self.stuck_ns = 2 * timeout_ns
        self.first_ns = self.nack_ns + self.nack_ns * rank // n
        self.gaps: dict[Key, _Gap] = {}
        self.repeated: Counter[int] = Counter()  # how many were asked for, by rank of the sender

    def open(self, now: Nanoseconds, keys: list[Key], revealer: int) -> None:
        """These are missing; `revealer`'s packet showed it."""
        for key in keys:
            if key not in self.gaps:
                self.gaps[key] = _Gap(now, now + self.first_ns, self.nack_ns, revealer)

    def close(self, key: Key) -> None:
        self.gaps.pop(key, None)

    def heard(self, now: Nanoseconds, ranges: tuple[Range, ...]) -> None:
        """Another member asked for these (ascending): let its Nack work first."""
        starts = [(q, first) for q, first, _ in ranges]
        for key, gap in self.gaps.items():
            at = bisect_right(starts, key) - 1
            if at >= 0 and ranges[at][0] == key[0] and key[1] <= ranges[at][2]:
                gap.due = max(gap.due, now + self.nack_ns)

    def next_due(self) -> Nanoseconds | None:
        return min((gap.due for gap in self.gaps.values()), default=None)

    def due(self, now: Nanoseconds, holders: dict[Key, list[int]]) -> list[tuple[int | None, tuple[Range, ...]]]:
        """The Nacks to send now: (rank to ask, or None for everybody, ranges)."""
        asks: dict[int | None, list[Key]] = {}
        for key, gap in self.gaps.items():
            if gap.due <= now:
                whom = self._whom(key, gap, holders.get(key, []))
                asks.setdefault(whom, []).append(key)
                if whom is not None:
                    gap.asked.add(whom)
                self.repeated[key[0]] += not gap.tries
                gap.tries += 1
                gap.pause = min(2 * gap.pause, self.pause_max_ns)
                gap.due = now + gap.pause
        return [(who, ranges) for who, keys in asks.items() for ranges in ranges_of(sorted(keys))]

    def stuck(self, now: Nanoseconds) -> tuple[Key, list[int]] | None:
        """A gap that stands for too long, and the ranks that were asked for it."""
        for key, gap in self.gaps.items():
            if now - gap.since >= self.stuck_ns and gap.tries >= STUCK_TRIES:
                return key, sorted(gap.asked)
        return None

    def _whom(self, key: Key, gap: _Gap, holders: list[int]) -> int | None:
        turn = [gap.revealer, key[0], *holders]
        ring = [p for k, p in enumerate(turn) if p != self.rank and p not in turn[:k]]
        if not ring or gap.tries >= 2 * len(ring):
            return None
        return ring[gap.tries % len(ring)]


def ranges_of(keys: list[Key]) -> list[tuple[Range, ...]]:
    """Sorted keys as ranges, in portions that one Nack may carry."""
    ranges: list[Range] = []
    for q, k in keys:
        if ranges and ranges[-1][0] == q and ranges[-1][2] == k - 1:
            ranges[-1] = (q, ranges[-1][1], k)
        else:
            ranges.append((q, k, k))
    return [tuple(ranges[i : i + NACK_RANGES_MAX]) for i in range(0, len(ranges), NACK_RANGES_MAX)]
