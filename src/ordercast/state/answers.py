"""Own calls, from when they are taken until their caller is told: the answer, or that their fate is unknown.

An answer is given when the call was applied, and then:
- at once, if it was delivered in a regular view and need not be durable;
- after the next decision, if it was delivered in a transitional view, or its view ended before it was applied: members
  that departed may have other calls before it, or have decided without it, and their state may win;
- when every member of the view has told that it is on disk, if it is durable; if one of them has no disk at all, the
  caller is told so.
If the state here is replaced by another before that, nobody knows here what became of the call.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from ordercast.contract import Action, Note, Refuse, Room, Up
from ordercast.limits import FRAGMENTS_MAX, HISTORY_CALLS_MAX
from ordercast.state.machine import Answered, Calls, FateUnknown
from ordercast.state.packets import Called, call, encode
from ordercast.types import Service

CALLS_BYTES_MAX = 8 * 2**20  # that are ordered together
FRAME_HEAD_BYTES = 64  # of a frame, not for what it carries


class Waiting(Struct, frozen=True):
    """Calls that were applied here, and are not answered yet."""

    n: int  # the last of them
    first: int
    answers: list[Any]
    durable: bool
    irregular: bool


class Answers:
    """`bytes_max`: of calls that have no place in the order yet."""

    def __init__(self, services: tuple[Service, ...], bytes_max: int, frame_bytes: int) -> None:
        self.services, self.bytes_max = services, bytes_max
        self._largest = min(CALLS_BYTES_MAX, FRAGMENTS_MAX * (frame_bytes - FRAME_HEAD_BYTES))
        self.bytes = 0  # taken, and not ordered yet
        self._taken: dict[int, tuple[int, int]] = {}  # first -> (calls, bytes)
        self._waiting: deque[Waiting] = deque()
        self._next = 0  # numbers below were used
        self.refused = False  # somebody waits for room
        self._lacks = ""  # why no call becomes durable in this view

    def __len__(self) -> int:
        return len(self._taken) + len(self._waiting)

    @property
    def durable(self) -> int:
        """The last place that a durable call waits for; 0: none does."""
        return max((waiting.n for waiting in self._waiting if waiting.durable), default=0)

    # ------------------------------------------------------------------------------------------------------- on the way

    def call(self, calls: Calls, lacks: str, *, crowded: bool) -> list[Action]:
        """Ordered, or refused; `lacks`: why nothing can be durable; `crowded`: too much waits here already."""
        service = Service.SAFE if calls.safe else Service.AGREED
        raw = encode(Called(calls.first, calls.time_ns, calls.durable, calls.payloads))
        why = "empty" if not calls.payloads else "" if service in self.services else "service"
        large = len(raw) > self._largest or len(calls.payloads) > HISTORY_CALLS_MAX
        why = why or ("too large" if large else lacks if calls.durable else "")
        if not why and (crowded or self.bytes > self.bytes_max):
            self.refused, why = True, "overloaded"
        if why:
            return [Refuse(why)]
        assert calls.first >= self._next, "numbers of calls go up"
        self._taken[calls.first] = len(calls.payloads), len(raw)
        self.bytes += len(raw)
        self._next = calls.first + len(calls.payloads)
        return [call(raw, service)]

    def ordered(self, first: int, count: int) -> bool:
        """They have their place in the order; whether they are calls of this life that wait for an answer."""
        if first not in self._taken or self._taken[first][0] != count:
            return False
        self.bytes -= self._taken.pop(first)[1]
        return True

    def room(self, *, crowded: bool) -> list[Action]:
        """Who was refused hears if there is room now."""
        if self.refused and not crowded and self.bytes <= self.bytes_max // 2:
            self.refused = False
            return [Up(Room())]
        return []

    # ------------------------------------------------------------------------------------------------------------- told

    def applied(self, n: int, first: int, answers: list[Any], *, durable: bool, irregular: bool) -> list[Action]:
        waiting = Waiting(n, first, answers, durable, irregular)
        if durable and self._lacks:
            return [unknown(first, len(answers), f"it was applied, and cannot become durable: {self._lacks}")]
        if not durable and not irregular:
            return _answer(waiting)
        self._waiting.append(waiting)
        return []

    def beside(self, lacks: str) -> list[Action]:
        """Who takes part in this view is known: if somebody has no disk, durable calls would wait for it in vain."""
        self._lacks = lacks
        gone = [waiting for waiting in self._waiting if lacks and waiting.durable]
        self._waiting = deque(waiting for waiting in self._waiting if waiting not in gone)
        why = f"it was applied, and cannot become durable: {lacks}"
        return [unknown(waiting.first, len(waiting.answers), why) for waiting in gone]

    def settled(self, synced: int) -> list[Action]:
        """A decision, and this state is the one; `synced`: up to here every member has it on disk."""
        self._waiting = deque(Waiting(w.n, w.first, w.answers, w.durable, False) for w in self._waiting)
        return self.synced(synced)

    def synced(self, upto: int) -> list[Action]:
        out: list[Action] = []
        rest: deque[Waiting] = deque()
        for waiting in self._waiting:
            if waiting.irregular or (waiting.durable and waiting.n > upto):
                rest.append(waiting)
            else:
                out += _answer(waiting)
        self._waiting = rest
        return out

    def replaced(self, why: str) -> list[Action]:
        """The state in which they were applied is no more."""
        gone, self._waiting = self._waiting, deque()
        return [unknown(waiting.first, len(waiting.answers), why) for waiting in gone]

    def give_up(self, why: str) -> list[Action]:
        """Nothing will be answered here any more."""
        out = self.replaced(why) + [unknown(first, count, why) for first, (count, _) in self._taken.items()]
        self._taken.clear()
        self.bytes = 0
        return out


def unknown(first: int, count: int, why: str) -> Action:
    return Up(FateUnknown(first, count, why))


def _answer(waiting: Waiting) -> list[Action]:
    fields = {"first": waiting.first, "count": len(waiting.answers), "n": waiting.n, "durable": waiting.durable}
    return [Note("answered", fields), Up(Answered(waiting.first, waiting.answers))]
