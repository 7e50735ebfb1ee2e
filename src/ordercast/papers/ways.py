"""What the papers assume below a protocol: ways that lose nothing and take a time of their own, and nothing else.

No views, no windows, no acknowledgements, no frames that share a datagram: the cores of the product are driven straight
from one queue of events.  What a protocol costs by itself is told apart here from what its layers add.  Times are
nanoseconds.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Any

MS = 1_000_000  # nanoseconds
Law = Callable[[random.Random, int, int], float]  # from one host to another: milliseconds


class Schedule:
    """Virtual time and its queue of events."""

    def __init__(self) -> None:
        self.now = 0
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = count()

    def at(self, time: int, step: Callable[..., None], *given: Any) -> None:
        heapq.heappush(self._events, (time, next(self._number), step, given))

    def step(self) -> bool:
        """The next event; whether there was one."""
        if not self._events:
            return False
        self.now, _, step, given = heapq.heappop(self._events)
        step(*given)
        return True


class Ways:
    """From every host to every other; what a host says to itself is there at once.

    fifo: nobody overtakes on a pair, whatever he carries; else only what is sent `in_order` keeps its order.
    """

    def __init__(self, schedule: Schedule, law: Law, chance: random.Random, *, fifo: bool = True) -> None:
        self.schedule, self.law, self.chance, self.fifo = schedule, law, chance, fifo
        self._last: dict[tuple[int, int], int] = {}  # when the newest arrives

    def send(self, source: int, to: int, step: Callable[..., None], *given: Any, in_order: bool = True) -> None:
        now = self.schedule.now
        if source == to:
            self.schedule.at(now, step, *given)
            return
        arrival = now + round(self.law(self.chance, source, to) * MS)
        if self.fifo or in_order:
            arrival = max(arrival, self._last.get((source, to), 0) + 1)
            self._last[source, to] = arrival
        self.schedule.at(arrival, step, *given)


def exponential(low_ms: float, mean_ms: float) -> Law:
    """At least `low_ms`, and beside it something of this mean."""
    return lambda chance, source, to: low_ms + chance.expovariate(1 / mean_ms)


def repaired(law: Law, loss: float, after_ms: float) -> Law:
    """A share is lost, and sent again after a while, until it comes through."""

    def delay(chance: random.Random, source: int, to: int) -> float:
        took = law(chance, source, to)
        while chance.random() < loss:
            took += after_ms
        return took

    return delay


def chi_square(mean_ms: float, sd_ms: float) -> Callable[[random.Random], float]:
    """Of four degrees of freedom, scaled and shifted."""
    scale = sd_ms / 8**0.5
    return lambda chance: mean_ms - 4 * scale + scale * chance.gammavariate(2.0, 2.0)
