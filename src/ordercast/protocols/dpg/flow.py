"""When a site speaks: the pause between own messages, and the times of reports.

Differs from the paper:
  E8  The report timer is staggered by chance, the more the more sites report; else all expire together.
  E9  A report is brought forward (waived) at most once per two Report_Cycles, for a new loss or repeated body too.
  E10 Message_Cycle grows with the misses that the detector sees, spreads only when clearly larger, and decays.
"""

from __future__ import annotations

import random

from ordercast.types import Nanoseconds

STEP_NS = 1_000_000  # the first pause, and what another's must exceed ours by
CYCLE_NS_MAX = 50_000_000
GROWTH, DECAY = 1.25, 0.98
REPORTERS = 12  # up to so many the stagger is one Report_Cycle


class MessageCycle:
    """The pause between two own messages."""

    __slots__ = ("ns",)

    def __init__(self) -> None:
        self.ns: Nanoseconds = 0

    def missed(self) -> None:
        self.ns = min(CYCLE_NS_MAX, max(STEP_NS, int(self.ns * GROWTH)))

    def heard(self, ns: Nanoseconds) -> None:
        if ns > self.ns + STEP_NS:
            self.ns = min(ns, CYCLE_NS_MAX)

    def decay(self) -> None:
        self.ns = int(self.ns * DECAY) if self.ns > STEP_NS // 4 else 0


class ReportTimes:
    """On the site's own clock, which counts messages."""

    __slots__ = ("_cycle", "_random", "_waived", "due", "reporters")

    def __init__(self, cycle: int, generator: random.Random) -> None:
        self._cycle, self._random = cycle, generator
        self.reporters: dict[int, float] = {}  # who reported -> when last
        self._waived = float("-inf")
        self.due = 0.0
        self.restart(0)

    def restart(self, clock: float) -> None:
        self.due = clock + self._cycle * (1 + self._random.random() * max(1.0, len(self.reporters) / REPORTERS))

    def heard(self, clock: float, sender: int) -> None:
        self.reporters[sender] = clock
        old = clock - 20 * self._cycle
        self.reporters = {who: at for who, at in self.reporters.items() if at > old}
        self.restart(clock)

    def waive(self, clock: float) -> bool:
        """Whether a report may go before its time."""
        if clock - self._waived < 2 * self._cycle:
            return False
        self._waived = clock
        return True
