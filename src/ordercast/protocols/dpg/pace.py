"""The clock of the algorithm: it counts messages heard; 5 ms of silence count as one (E11).

By it a site also sees that it was away: its own timer comes later than Deliv_Cycle.  Who is kept busy by what it hears
is here, however late its timers.
"""

from __future__ import annotations

from ordercast.types import Nanoseconds

TICK_NS = 5_000_000  # silence that counts as one message; less where T is short
TICKS = 16  # of them in T
QUIET_TICKS = 10  # how many of them one timer may be worth while there is nothing to do
SMOOTH = 8


class Pace:
    """Of one site."""

    __slots__ = ("_at", "_due", "_heard", "_last", "_seen", "clock", "count_ns", "tick_ns")

    def __init__(self, timeout_ns: Nanoseconds) -> None:
        self.tick_ns = min(TICK_NS, max(1, timeout_ns // TICKS))
        self.clock = 0
        self.count_ns = self.tick_ns  # what one count takes, smoothed
        self._heard = self._last = 0  # messages since the last tick; the clock when there was one
        self._at = self._due = self._seen = 0

    def heard(self) -> None:
        self.clock += 1
        self._heard += 1

    def tick(self, now: Nanoseconds) -> None:
        """The timer came: silence counts."""
        passed = now - self._at
        silent = max(1, round(passed / self.tick_ns)) if not self._heard else 0
        self.count_ns += (max(1, passed // max(1, self._heard + silent)) - self.count_ns) // SMOOTH
        self.clock += min(silent, QUIET_TICKS)

    def next(self, now: Nanoseconds, busy: bool, recent: int) -> Nanoseconds:
        """When the next tick is due; sites that heard a message within `recent` keep one pace."""
        if self._heard:
            self._last = self.clock
        busy = busy or self.clock - self._last <= recent
        self._due = now + (self.tick_ns if busy else QUIET_TICKS * self.tick_ns)
        self._at, self._heard = now, 0
        return self._due

    def away(self, now: Nanoseconds, counts: int) -> Nanoseconds | None:
        """Since when this site was away, if its timer is later than so many counts."""
        since, self._seen = max(self._due, self._seen), now
        if not self._due or now - since <= max(2 * self.tick_ns, counts * self.count_ns):
            return None
        self._due = self._at = now
        return since
