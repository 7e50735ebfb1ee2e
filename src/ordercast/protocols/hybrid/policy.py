"""When a member changes its role: it looks at how often it sends and how far the others are (6.2).

Differs from the paper: H15 nobody tries to become passive who knows of no other active process.  Beyond it, as an
option: the messages of the others count as well (assignment.shared).
"""

from __future__ import annotations

from ordercast.protocols.hybrid.assignment import shared, switch
from ordercast.protocols.hybrid.detector import Detector
from ordercast.protocols.hybrid.process import ACTIVE, PASSIVE, Process
from ordercast.protocols.hybrid.ways import Ways
from ordercast.types import Nanoseconds

SEQUENCER = "sequencer"


class Policy:
    """Of one member."""

    def __init__(self, detector: Detector, threshold: float, ways: Ways, null_ns: Nanoseconds, whole: bool) -> None:
        self.detector, self.threshold, self.ways, self.null_ns = detector, threshold, ways, null_ns
        self.whole = whole  # the others' messages count
        self.last: Nanoseconds | None = None  # when it sent last
        self.heard, self.since = 0, 0  # messages of the others since then
        self.others = 0.0  # of theirs, per nanosecond

    def submitted(self, now: Nanoseconds) -> None:
        if self.last is not None:
            self.detector.sample(now - self.last)
        self.last = now

    def count(self, now: Nanoseconds) -> None:
        """Now and then: how much the others send."""
        if self.since and now > self.since:
            rate = self.heard / (now - self.since)
            self.others = rate if not self.others else (3 * self.others + rate) / 4
        self.heard, self.since = 0, now

    def decide(self, now: Nanoseconds, process: Process) -> str | None:
        """What this member should become: active, passive, or passive at another sequencer."""
        if not process.steady:
            return None
        far = self.ways.distance
        others = [far[q] for q in process.actives if q != process.me and q in far]
        if not others:  # H15, and nothing to compare with
            return None
        closest, wanted = min(others), None
        t = None if self.last is None else self.detector.mean(now - self.last)
        if t is not None:
            if self.whole:
                t = shared(t, self.others, self.null_ns)
            wanted = switch(process.state is ACTIVE, t, closest, self.threshold)
        mine = far.get(process.S[0])
        if wanted is None and process.state is PASSIVE and mine is not None:
            wanted = SEQUENCER if closest < (1 - self.threshold) * mine else None
        return wanted
