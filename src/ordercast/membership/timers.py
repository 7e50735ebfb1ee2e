"""One configured timeout T, from which all others derive, and the deadlines of one member.

A deadline that moves often (token loss moves at every token) must not cost a timer each time: the driver's timer is
left where it stands, and when it fires too early it is set again for the deadline that holds now.  Only one that would
fire far too early is moved: an idle ring is not woken for nothing at every rotation.
"""

from __future__ import annotations

from msgspec import Struct

from ordercast.contract import Action, SetTimer
from ordercast.types import Nanoseconds

TICK = "m.tick"  # Hello or Join, and the own row
POLL = "m.poll"  # waits
LOSS = "m.loss"
COMMIT = "m.commit"
CONSENSUS = "m.consensus"
REPEAT = "m.repeat"  # a token
PART = "m.part"  # second Leave
SPARES = 2  # own pauses that one deadline, or the silence of one link, is given time for


class Times(Struct, frozen=True):
    """All durations of the membership, from T."""

    timeout: Nanoseconds
    hello: Nanoseconds
    join: Nanoseconds
    gap: Nanoseconds
    settle: Nanoseconds
    quiet: Nanoseconds
    consensus: Nanoseconds
    commit: Nanoseconds
    repeat: Nanoseconds
    late: Nanoseconds  # a timer overdue by more proves that we stood still
    grace: Nanoseconds  # what a due timer gets after our own pause

    @staticmethod
    def of(timeout_ns: Nanoseconds) -> Times:
        t = timeout_ns
        return Times(t, t // 4, t // 10, t // 20, t // 2, t // 4, t * 6 // 5, t, t * 10 // 42, t // 4, t // 2)


class Deadlines:
    """Named deadlines over timers that are moved only when they must be earlier, or can be much later."""

    __slots__ = ("_armed", "_early", "_spared", "due")

    def __init__(self, early: Nanoseconds) -> None:
        self.due: dict[str, Nanoseconds] = {}
        self._armed: dict[str, Nanoseconds] = {}
        self._early = early  # a timer may fire too early by so much
        self._spared: dict[str, tuple[int, Nanoseconds]] = {}  # own pauses since it was set, when the last one began

    def set(self, name: str, at: Nanoseconds) -> list[Action]:
        self._spared.pop(name, None)
        return self._set(name, at)

    def _set(self, name: str, at: Nanoseconds) -> list[Action]:
        self.due[name] = at
        if at - self._early < self._armed.get(name, at + 1) <= at:
            return []
        self._armed[name] = at
        return [SetTimer(name, at)]

    def clear(self, *names: str) -> None:
        for name in names:
            self.due.pop(name, None)

    def fired(self, now: Nanoseconds, name: str) -> tuple[bool, list[Action]]:
        """The driver's timer fired.  Is the deadline over?  If not, the timer is set again."""
        self._armed.pop(name, None)
        due = self.due.get(name)
        if due is None:
            return False, []
        if due > now:
            return False, self._set(name, due)
        del self.due[name]
        return True, []

    def postpone(self, now: Nanoseconds, grace: Nanoseconds, *names: str) -> list[Action]:
        """After our own pause: what is due, or would be at once, gets a little more time."""
        out: list[Action] = []
        for name in names:
            if self.due.get(name, now + grace) < now + grace:
                out += self.spare(now, grace, name) or []
        return out

    def spare(self, now: Nanoseconds, grace: Nanoseconds, name: str) -> list[Action] | None:
        """Give one deadline `grace` from now; None: a member that is late again and again is slow, and counts."""
        count, since = self._spared.get(name, (0, now - grace))
        if now - since >= grace:
            if count >= SPARES:
                return None
            count, since = count + 1, now
        self._spared[name] = (count, since)
        return self._set(name, now + grace)
