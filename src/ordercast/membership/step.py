"""The frame of one input: what is said in it, which deadlines move, and whether this member itself had stood still.

A pause of this member is told from a silence of the others: who comes later than its own timers allow suspects nobody
in that step, and what was due gets a little more time.
"""

from __future__ import annotations

from ordercast.contract import Action, Note
from ordercast.membership.evidence import Evidence
from ordercast.membership.timers import COMMIT, CONSENSUS, LOSS, TICK, Deadlines, Times
from ordercast.types import Nanoseconds

NEVER: Nanoseconds = 2**63
SPARED = (LOSS, COMMIT, CONSENSUS)  # deadlines that speak against others


class Step:
    def __init__(self, times: Times) -> None:
        self.times, self.deadlines = times, Deadlines(times.timeout // 8)
        self.out: list[Action] = []
        self.paused = False  # it came out in this step that this member itself had stood still
        self.alarm: Nanoseconds = NEVER  # an input later than this proves that we stood still

    def say(self, action: Action) -> None:
        self.out.append(action)

    def set(self, name: str, at: Nanoseconds) -> None:
        self.out += self.deadlines.set(name, at)

    def tick_at(self, at: Nanoseconds) -> None:
        self.set(TICK, at)
        self.alarm = at + self.times.late

    def begin(self, now: Nanoseconds, late: Nanoseconds, evidence: Evidence) -> None:
        """Own pause: if we come later than a timer allows, it was us who stood still, not the others."""
        self.paused = now > late
        if self.paused:
            self.alarm = now + self.times.late
            evidence.stood_still(now, self.times.grace)
            self.out += self.deadlines.postpone(now, self.times.grace, *SPARED)
            self.say(Note("own_pause", {"late_ns": now - late + self.times.late}))

    def over(self, now: Nanoseconds, name: str) -> bool:
        """The driver's timer fired.  Is its deadline over?  If not, the timer is set again."""
        over, again = self.deadlines.fired(now, name)
        self.out += again
        return over

    def spare(self, now: Nanoseconds, name: str) -> bool:
        """After an own pause: does the deadline that is over get more time?"""
        if not self.paused or name not in SPARED:
            return False
        more = self.deadlines.spare(now, self.times.grace, name)
        self.out += more or []
        return more is not None

    def end(self) -> list[Action]:
        out, self.out = self.out, []
        return out
