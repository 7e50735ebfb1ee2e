"""Virtual time, and what is to happen in it: one queue of events for a whole run.

An event is the tuple (time, number, what to call, two arguments).  Of two at one time the one put in first comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

Call = Callable[[Any, Any], None]


class Ended(Exception):
    """The run is over."""


class Schedule:
    """The clock and the queue.  Hot paths push onto `queue` themselves, with the next `number()`."""

    __slots__ = ("number", "queue", "time")

    def __init__(self) -> None:
        self.time = 0
        self.queue: list[tuple[int, int, Call, Any, Any]] = []
        self.number = count().__next__

    def later(self, time: int, call: Call, a: Any, b: Any) -> None:
        """Call it at this time, after what is in the queue for the same time already."""
        heappush(self.queue, (time, self.number(), call, a, b))

    def run(self) -> None:
        """Let events happen until one of them raises Ended."""
        queue, pop = self.queue, heappop
        try:
            while True:
                self.time, _, call, a, b = pop(queue)
                call(a, b)
        except Ended:
            return

    def forget(self, after: int, *calls: Call) -> int:
        """Take out these calls where they come after a time; how many there were."""
        queue = self.queue
        kept = [event for event in queue if event[0] <= after or event[2] not in calls]
        gone = len(queue) - len(kept)
        if gone:
            queue[:] = kept
            heapify(queue)
        return gone
