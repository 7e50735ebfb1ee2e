"""Self-tuned T_loss: twice the longest token rotation (or silence) of the last 64 to 128 T, between T and 8 T.

A ring that runs as it should waits exactly T; a stall of 0.9 T makes the next 64 T tolerant of 1.8 T.  A smoothed mean
plus deviation is worse: many fast rotations between two stalls wipe the deviation out.
"""

from __future__ import annotations

from ordercast.types import Nanoseconds

BUCKET_TIMEOUTS = 64
LOSS_TIMEOUTS_MAX = 8


class Tuning:
    """Two buckets of 64 T, each with the longest rotation seen in it; the older one is kept while the newer fills."""

    __slots__ = ("_begun", "_newer", "_older", "loss_ns", "timeout_ns")

    def __init__(self, timeout_ns: Nanoseconds) -> None:
        self.timeout_ns = timeout_ns
        self.loss_ns = timeout_ns  # T_loss in force
        self._begun: Nanoseconds = 0  # of the newer bucket
        self._newer: Nanoseconds = 0
        self._older: Nanoseconds = 0

    def start(self, now: Nanoseconds) -> None:
        self._begun = now

    def observe(self, now: Nanoseconds, rotation_ns: Nanoseconds) -> bool:
        """A rotation took so long.  True if T_loss changed."""
        turned = self.tick(now)
        if rotation_ns <= self._newer:
            return turned
        self._newer = rotation_ns
        return self._set() or turned

    def tick(self, now: Nanoseconds) -> bool:
        """Turn the buckets when it is time.  True if T_loss changed."""
        width = BUCKET_TIMEOUTS * self.timeout_ns
        passed = (now - self._begun) // width
        if passed <= 0:
            return False
        self._older = self._newer if passed == 1 else 0
        self._newer = 0
        self._begun += passed * width
        return self._set()

    def _set(self) -> bool:
        longest = 2 * max(self._older, self._newer)
        loss_ns = max(self.timeout_ns, min(longest, LOSS_TIMEOUTS_MAX * self.timeout_ns))
        changed = loss_ns != self.loss_ns
        self.loss_ns = loss_ns
        return changed
