"""The clock of the algorithm: it counts messages heard; 5 ms of silence count as one (E11).

By it a site also sees that it was away: its own timer comes later than Deliv_Cycle.  Who is kept busy by what it hears
is here, however late its timers.  For this a count is what the *group* says, lost datagrams too: a site that hears a
third of them would take an absence for a third of what it is.
"""

from __future__ import annotations

from ordercast.types import Nanoseconds

TICK_NS = 5_000_000  # silence that counts as one message; less where T is short
TICKS = 16  # of them in T
QUIET_TICKS = 10  # how many of them one timer may be worth while there is nothing to do
SMOOTH = 8


class Pace:
    """Of one site."""

    __slots__ = ("_at", "_due", "_heard", "_last", "_lost", "_seen", "beat_ns", "clock", "count_ns", "tick_ns")

    def __init__(self, timeout_ns: Nanoseconds) -> None:
        self.tick_ns = min(TICK_NS, max(1, timeout_ns // TICKS))
        self.clock = 0
        self.count_ns = self.tick_ns  # what one count takes, smoothed
        self.beat_ns = self.tick_ns  # the same of what the group says, heard or lost
        self._heard = self._lost = 0  # messages, and datagrams lost, since the last tick
        self._last = 0  # the clock when there was a message
        self._at = self._due = self._seen = 0

    def heard(self) -> None:
        self.clock += 1
        self._heard += 1

    def lost(self, count: int) -> None:
        self._lost += count

    def tick(self, now: Nanoseconds) -> None:
        """The timer came: silence counts."""
        passed = now - self._at
        silent = max(1, round(passed / self.tick_ns)) if not self._heard else 0
        counts = self._heard + silent
        self.count_ns += (max(1, passed // max(1, counts)) - self.count_ns) // SMOOTH
        self.beat_ns += (min(self.tick_ns, max(1, passed // max(1, counts + self._lost))) - self.beat_ns) // SMOOTH
        self.clock += min(silent, QUIET_TICKS)

    def next(self, now: Nanoseconds, busy: bool, recent: int) -> Nanoseconds:
        """When the next tick is due; sites that heard a message within `recent` keep one pace."""
        if self._heard:
            self._last = self.clock
        busy = busy or self.clock - self._last <= recent
        self._due = now + (self.tick_ns if busy else QUIET_TICKS * self.tick_ns)
        self._at, self._heard, self._lost = now, 0, 0
        return self._due

    def away(self, now: Nanoseconds, counts: int) -> Nanoseconds | None:
        """Since when this site was away, if its timer is later than so many counts."""
        since, self._seen = max(self._due, self._seen), now
        if not self._due or now - since <= max(2 * self.tick_ns, counts * self.beat_ns):
            return None
        self._due = self._at = now
        return since
