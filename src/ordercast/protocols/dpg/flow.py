"""When a site speaks: the pause between own messages, and the times of reports.

Differs from the paper:
  E8  The report timer is staggered by chance, the more the more sites report; else all expire together.
  E9  A report is brought forward (waived) at most once per two Report_Cycles, for a new loss or repeated body too.
  E10 Message_Cycle grows with the misses that the detector sees, spreads only when clearly larger, and decays.
"""

from __future__ import annotations

import random

from ordercast.contract import Action, CancelTimer, SetTimer
from ordercast.types import Nanoseconds

CYCLE_NS_MAX = 50_000_000
GROWTH, DECAY = 1.25, 0.98
DELTA = 8  # another's pause counts when it exceeds ours by this part of a fair one
REPORTERS = 3  # up to so many the stagger is one Report_Cycle
WAIVER_COUNTS = 3  # within so many counts of the clock, by chance, a report goes that is brought forward
REPORT = "report"  # the timer
DUE, WAIVER = "due", "waiver"


class MessageCycle:
    """The pause between two own messages; `fair` is the one at which all speak alike at today's pace."""

    __slots__ = ("ns",)

    def __init__(self) -> None:
        self.ns: Nanoseconds = 0

    def missed(self, fair_ns: Nanoseconds) -> None:
        self.ns = min(CYCLE_NS_MAX, int(max(self.ns, fair_ns) * GROWTH))

    def heard(self, ns: Nanoseconds, fair_ns: Nanoseconds) -> None:
        if ns > self.ns + fair_ns // DELTA:
            self.ns = min(ns, CYCLE_NS_MAX)

    def decay(self) -> None:
        self.ns = int(self.ns * DECAY)


class Reports:
    """When the next report goes, on the site's own clock, which counts messages; within a count by time, so that the
    first to speak spares the others."""

    __slots__ = ("_at", "_cycle", "_planned", "_random", "_waived", "due", "reporters")

    def __init__(self, cycle: int, generator: random.Random) -> None:
        self._cycle, self._random = cycle, generator
        self.reporters: dict[int, float] = {}  # who reported -> when last
        self._waived = float("-inf")
        self._planned, self._at = "", 0  # the timer runs: for one that is due, or for a waiver
        self.due = 0.0
        self.restart(0)

    def restart(self, clock: float) -> None:
        self.due = clock + self._cycle * (1 + self._random.random() * max(1.0, len(self.reporters) / REPORTERS))

    def heard(
        self, now: Nanoseconds, clock: float, pace_ns: Nanoseconds, sender: int, waive: bool, whole: bool = True
    ) -> list[Action]:
        """Another's report; waive: there is something it should hear soon; whole: it spares ours."""
        self.reporters[sender] = clock
        old = clock - 20 * self._cycle
        self.reporters = {who: at for who, at in self.reporters.items() if at > old}
        out: list[Action] = []
        if whole:
            self.restart(clock)
            out = self.settled() if not waive or self._planned == DUE else []
        if waive and not self._planned and clock - self._waived >= 2 * self._cycle:
            out += self._plan(WAIVER, now + 1 + int(self._random.random() * WAIVER_COUNTS * pace_ns))
        return out

    def _plan(self, why: str, at: Nanoseconds) -> list[Action]:
        self._planned, self._at = why, at
        return [SetTimer(REPORT, at)]

    def passed(self, now: Nanoseconds, clock: float, pace_ns: Nanoseconds) -> list[Action]:
        """The clock went on, and no report is overdue: it may fall within this count."""
        if self.due - clock >= 1 or self._planned:
            return []
        return self._plan(DUE, now + 1 + int((self.due - clock) * pace_ns))

    def overdue(self, now: Nanoseconds, clock: float, urgent: bool) -> bool:
        """What is urgent does not wait for a timer that cannot come, because there is ever more to read."""
        return clock >= self.due or (urgent and self._planned != "" and now >= self._at)

    def goes(self, clock: float) -> bool:
        """One goes now; whether it was waived."""
        waived = self._planned == WAIVER
        if waived:
            self._waived = clock
        self.restart(clock)
        return waived

    def settled(self) -> list[Action]:
        """What was to be told is told."""
        if not self._planned:
            return []
        self._planned = ""
        return [CancelTimer(REPORT)]
