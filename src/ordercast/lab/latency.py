"""One-way latency without synchronised clocks: the paper's two methods as pure functions.

Paper: section 4.  Both see only the mean of the two directions of a pair.

Differs from the paper:
  D1  Method 1 takes means per ordered pair, so that unequal counts do no harm; the paper's sum needs equal ones.
  D2  Method 2 drops echoes that were held longer than a bound: clock drift times holding time is its error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

Pair = tuple[int, int]  # (transmitter, receiver)


def echo_latency(t1: float, t2: float, t3: float, t4: float) -> float:
    """Sent at t1, received at t2, answer sent at t3 (t2, t3: the other's clock), received at t4."""
    return ((t4 - t1) - (t3 - t2)) / 2


class Differences(Struct):
    """Method 1: per ordered pair the number and the sum of (receive clock - transmit clock)."""

    count: dict[Pair, int] = {}
    total: dict[Pair, int] = {}

    def add(self, sender: int, receiver: int, total: int, count: int = 1) -> None:
        """`count` messages whose differences sum up to `total`."""
        pair = (sender, receiver)
        self.count[pair] = self.count.get(pair, 0) + count
        self.total[pair] = self.total.get(pair, 0) + total

    def pairs(self) -> dict[Pair, tuple[float, int]]:
        """(smaller id, larger id) -> (mean latency of the two directions, messages counted)."""
        out: dict[Pair, tuple[float, int]] = {}
        for (i, j), n in self.count.items():
            back = self.count.get((j, i), 0)
            if i < j and n and back:
                mean = (self.total[i, j] / n + self.total[j, i] / back) / 2  # D1
                out[i, j] = (mean, n + back)
        return out

    def mean(self) -> float | None:
        """Of the system, weighted by the messages of each pair; None if no pair was seen both ways."""
        return _weighted(self.pairs().values())


class Echoes(Struct):
    """Method 2 at one member: what to send along, and what the answers say."""

    hold_max: int  # D2
    last: dict[int, tuple[int, int]] = {}  # peer -> (its transmit time, my receive time)
    found: dict[int, tuple[float, int]] = {}  # peer -> (sum of latencies, count)
    dropped: int = 0

    def received(self, me: int, sender: int, sent_at: int, echoes: Mapping[int, tuple[int, int]], now: int) -> None:
        """A message of `sender`, sent at its time `sent_at` with its `last`; `now` is my clock."""
        self.last[sender] = (sent_at, now)
        mine = echoes.get(me)
        if mine is None:
            return
        t1, t2 = mine
        if sent_at - t2 > self.hold_max:
            self.dropped += 1
            return
        total, count = self.found.get(sender, (0.0, 0))
        self.found[sender] = (total + echo_latency(t1, t2, sent_at, now), count + 1)

    def mean(self) -> float | None:
        return _weighted((total / count, count) for total, count in self.found.values())


def _weighted(items: Iterable[tuple[float, int]]) -> float | None:
    total, weight = 0.0, 0
    for mean, n in items:
        total += mean * n
        weight += n
    return total / weight if weight else None
