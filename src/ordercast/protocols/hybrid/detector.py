"""How often a member sends: estimates of the time between its submissions, sample by sample.

The paper's (6.1) is a mean-shift detector: the mean of the first k samples holds until a run of k falls all above it or
all below it; then the mean of that run does.  On exponential intervals short runs are mostly below the mean: it takes a
slow Poisson source for a faster one.  The window does not: time that has passed without a sample is known, too, and the
mean over a fixed number of intervals and the time since is right for every law.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ordercast.types import Nanoseconds

WINDOW = 3  # times k: intervals that a window holds


class Detector(Protocol):
    """One source."""

    def sample(self, interval: float) -> None:
        """It sent again, this long after the time before."""

    def mean(self, silent: Nanoseconds) -> float | None:
        """The estimate, `silent` after the last sample; None: too few came."""


class MeanShift:
    """The paper's.  A sample equal to the mean breaks a run."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.estimate: float | None = None
        self.run: list[float] = []  # the first ones; then those on one side

    def sample(self, interval: float) -> None:
        run, mean = self.run, self.estimate
        if mean is not None:
            if interval == mean:
                run.clear()
                return
            if run and (run[0] > mean) != (interval > mean):
                run.clear()
        run.append(interval)
        if len(run) >= self.k:
            self.estimate = sum(run) / len(run)
            run.clear()

    def mean(self, silent: Nanoseconds) -> float | None:
        return self.estimate


class Window:
    """The last intervals, and the silence since when that is long: it counts as far as it exceeds the mean."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.intervals: deque[float] = deque(maxlen=WINDOW * k)
        self.total = 0.0

    def sample(self, interval: float) -> None:
        if len(self.intervals) == self.intervals.maxlen:
            self.total -= self.intervals[0]
        self.intervals.append(interval)
        self.total += interval

    def mean(self, silent: Nanoseconds) -> float | None:
        count = len(self.intervals)
        if count < self.k:
            return None
        mean = self.total / count
        return mean if silent <= mean else (self.total + silent) / (count + 1)


DETECTORS: dict[str, Callable[[int], Detector]] = {"mean_shift": MeanShift, "window": Window}
