"""How long own messages took until they came back in the order: counted by size of the delay, per frame."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

from ordercast.types import Nanoseconds

BOUNDS_MS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
KEPT = 4_096  # submissions on their way whose time is remembered


class Delays:
    """From a submission's acceptance to the delivery of its last message here."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)  # up to each bound, and beyond
        self.sum_ns = 0
        self._delivered = 0  # the last own counter
        self._open: deque[tuple[int, Nanoseconds]] = deque(maxlen=KEPT)  # last counter, when it was accepted

    def accepted(self, now: Nanoseconds, last: int) -> None:
        if last <= self._delivered:  # in the very step that took it
            self.counts[0] += 1
        else:
            self._open.append((last, now))

    def delivered(self, now: Nanoseconds, last: int) -> None:
        open, self._delivered = self._open, last
        while open and open[0][0] <= last:
            delay = now - open.popleft()[1]
            self.sum_ns += delay
            self.counts[bisect_left(BOUNDS_MS, delay / 1e6)] += 1
