"""A group of the hybrid family as its paper simulates it: the shipped ordering layer over ways that lose nothing.

The layer below the order has windows in the product, 64 frames of a sender that are not known to be everywhere; with a
way of 540 ms, there and back, that is 60 frames a second.  The paper sends 100 and knows no such limit.  Neither does
it know nulls, unless they are asked for, nor a timeout that distances are measured by.  So the cores (`Tickets` with
its roles, detector and numbers) are driven here without that layer; every frame holds one message.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from ordercast import registry
from ordercast.contract import (
    Action,
    CancelTimer,
    Down,
    Event,
    Multicast,
    Note,
    Ordered,
    Received,
    SetTimer,
    Setup,
    Submit,
    UnicastReceived,
    UnicastTo,
    Up,
    ViewChange,
    Window,
)
from ordercast.papers.ways import MS, Law, Schedule, Ways
from ordercast.protocols.hybrid import tickets
from ordercast.protocols.hybrid.layer import Tickets
from ordercast.protocols.hybrid.process import ACTIVE
from ordercast.types import Frame, Identity, Submission, View, ViewId, ViewKind

NEVER_MS = 1e9
PROBE_MS = 2000.0  # "an interval of a few seconds" (6.1)
DEVIATION = 0.02  # of a quasi-periodic source
FRAMES = 2**31  # the layer below takes everything
VIEW = ViewId(4, 1)


class Restless(Tickets):
    """Nulls by the clock alone, whatever is known of the others; the product sends one when it knows that
    somebody waits, so that an idle group falls silent; across a distance that is known a way later."""

    def _owes(self) -> bool:
        return self.process.state is ACTIVE and not self.frozen


class Load(Struct, frozen=True):
    """Messages a second of each member, for so long."""

    rates: tuple[float, ...]
    seconds: float


class Message(Struct):
    sent: int
    last: int = 0  # delivered
    count: int = 0  # of members that delivered it


class Group:
    """Members 1..n; `nulls_ms` 0: none; `shipped`: by the rule of the product."""

    def __init__(
        self,
        protocol: str,
        options: dict[str, Any],
        law: Law,
        loads: Sequence[Load],
        *,
        source: str,
        nulls_ms: float,
        seed: int,
        shipped: bool = False,
    ) -> None:
        self.schedule, self.source, self.restless = Schedule(), source, nulls_ms > 0 and not shipped
        self.members = tuple(range(1, len(loads[0].rates) + 1))
        self.chance = {p: random.Random(f"{seed}/load/{p}") for p in self.members}
        self.ways = Ways(self.schedule, law, random.Random(f"{seed}/ways"))
        self.messages: dict[tuple[int, int], Message] = {}
        self.timers: dict[tuple[int, str], int] = {}
        self.said = self.open = 0  # multicasts; messages that are not yet everywhere
        self.count = dict.fromkeys(self.members, 0)
        self.switched: list[int] = []  # when a member took another role
        self.seq = dict.fromkeys(self.members, 0)
        kind = registry.get(protocol).options
        assert kind is not None
        self.cores = {p: self._core(p, protocol, kind(**options), nulls_ms, seed) for p in self.members}
        view = View(VIEW, ViewKind.REGULAR, self.members)
        for p, core in self.cores.items():
            core.process.enter(self.members, dict.fromkeys(self.members, 0), self.members)  # 5.1: all are active
            self._do(p, core.up(0, ViewChange(view), 0))
            self._do(p, core.up(0, Window(FRAMES), 0))
        self.switched.clear()
        self.end = round(sum(load.seconds for load in loads) * 1e9)
        begin = 0
        for k, load in enumerate(loads):
            for p, rate in zip(self.members, load.rates, strict=True):
                if k == 0 or rate != loads[k - 1].rates[p - 1]:
                    phase = self.chance[p].random() * 1e9 / rate
                    self.schedule.at(begin + round(phase), self._submit, p, rate, self._until(loads, k, p, begin))
            begin += round(load.seconds * 1e9)

    @staticmethod
    def _until(loads: Sequence[Load], k: int, p: int, begin: int) -> int:
        """When the rate of p changes next; with the last load it goes on for ever."""
        for j in range(k, len(loads)):
            if loads[j].rates[p - 1] != loads[k].rates[p - 1]:
                return begin
            begin += round(loads[j].seconds * 1e9)
        return 2**62

    def _core(self, p: int, protocol: str, options: Any, nulls_ms: float, seed: int) -> Any:
        identity = Identity(p, 1, self.members)
        setup = Setup(identity, round(NEVER_MS * MS), options, 1400, random.Random(f"{seed}/{p}"), pack=False)
        core = tickets(protocol, setup, Restless if self.restless else Tickets)
        core.null_ns = round((nulls_ms or NEVER_MS) * MS)
        core.probe_ns = round(PROBE_MS * MS)
        if core.policy is not None:
            core.policy.null_ns = core.null_ns
        return core

    # -------------------------------------------------------------------------------------------------------- running

    def run(self) -> None:
        """Until everything sent while the loads last is delivered everywhere; sources go on meanwhile."""
        while self.schedule.now < self.end or self.open:
            self.schedule.step()

    def latency_ms(self, begin: int, end: int) -> float:
        """From the call to the last delivery, the mean over what was sent in this time."""
        waits = [each.last - each.sent for each in self.messages.values() if begin <= each.sent < end]
        return sum(waits) / len(waits) / MS

    def _submit(self, p: int, rate: float, until: int) -> None:
        now, chance = self.schedule.now, self.chance[p]
        if now >= until:
            return
        self.count[p] += 1
        self.messages[p, self.count[p]] = Message(now)
        self.open += now < self.end
        self._tell(p, self.cores[p].down(now, Submit(Submission([b"x"]))))
        wait = 1 / rate * chance.gauss(1.0, DEVIATION) if self.source == "quasi" else chance.expovariate(rate)
        self.schedule.at(now + max(1, round(wait * 1e9)), self._submit, p, rate, until)

    def _tell(self, p: int, actions: list[Action]) -> None:
        """Carry out what a core said, then let it say what waited for the end of its input."""
        self._do(p, actions)
        self._do(p, self.cores[p].drained(self.schedule.now, 0))

    def _do(self, p: int, actions: Iterable[Action]) -> None:
        todo = deque(actions)
        while todo:
            action = todo.popleft()
            match action:
                case Down(event=Multicast(body=body)):
                    self.said += 1
                    self.seq[p] += 1
                    received = Received(p, self.seq[p], body)
                    todo.extendleft(reversed(self.cores[p].up(self.schedule.now, received, 0)))
                    for q in self.members:
                        if q != p:
                            self.ways.send(p, q, self._arrive, q, received)
                case Down(event=UnicastTo(to=to, body=body)):
                    self.ways.send(p, to, self._arrive, to, UnicastReceived(p, body))
                case Up(event=Ordered(frame=frame)):
                    self._delivered(frame)
                case SetTimer(name=name, at=due):
                    self.timers[p, name] = due
                    self.schedule.at(max(due, self.schedule.now), self._timer, p, name, due)
                case CancelTimer(name=name):
                    self.timers.pop((p, name), None)
                case Note(name="mode"):
                    self.switched.append(self.schedule.now)

    def _arrive(self, p: int, event: Event) -> None:
        self._tell(p, self.cores[p].up(self.schedule.now, event, 0))

    def _timer(self, p: int, name: str, due: int) -> None:
        if self.timers.get((p, name)) == due:
            del self.timers[p, name]
            self._tell(p, self.cores[p].timer(self.schedule.now, name, due))

    def _delivered(self, frame: Frame) -> None:
        message = self.messages[frame.sender, frame.counter]
        message.count += 1
        message.last = self.schedule.now
        if message.count == len(self.members):
            self.open -= message.sent < self.end
