"""How often something may be done for whoever asks: so much a second, and so much at once."""

from __future__ import annotations

from collections.abc import Hashable

from ordercast.types import Nanoseconds

SECOND = 1_000_000_000


class Rate:
    """`per_second` on average, and at most `burst` at once."""

    __slots__ = ("_cost", "_free", "_full", "_last")

    def __init__(self, per_second: int, burst: int) -> None:
        self._cost = SECOND // per_second
        self._full = self._free = burst * self._cost
        self._last = 0

    def take(self, now: Nanoseconds) -> bool:
        """Whether one more may be done now; then it counts."""
        free = min(self._full, self._free + now - self._last)
        self._last = now
        if free < self._cost:
            self._free = free
            return False
        self._free = free - self._cost
        return True


class Rates:
    """A rate for each of those who ask, of whom the last `most` are remembered, and one for all of them together."""

    def __init__(self, each: int, all: int, most: int) -> None:
        self._each, self._most = each, most
        self._all = Rate(all, all)
        self._rates: dict[Hashable, Rate] = {}

    def take(self, now: Nanoseconds, who: Hashable) -> bool:
        rate = self._rates.get(who)
        if rate is None:
            if len(self._rates) >= self._most:
                del self._rates[next(iter(self._rates))]
            rate = self._rates[who] = Rate(self._each, self._each)
        return rate.take(now) and self._all.take(now)
