"""Replicated objects in simulated groups: members call at their times; what was called, when and with which answer."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ordercast.contract import Action, Event, Layer, Setup, Up
from ordercast.replica.counter import Counter
from ordercast.replica.dict import Dict
from ordercast.replica.entries import Bound, Raised, head_of, key_of
from ordercast.replica.lock import Lock
from ordercast.replica.objects import Objects
from ordercast.replica.queue import Queue
from ordercast.replica.replica import Replica
from ordercast.sim import world
from ordercast.sim.caller import Caller
from ordercast.sim.scenario import Scenario
from ordercast.stack import Node, Stack
from ordercast.state.layer import State
from ordercast.state.machine import Answered, Calls, FateUnknown
from ordercast.types import ALL_CONTINUE, Nanoseconds, Peer, Service

from .linear import Op

KINDS: dict[str, type[Replica]] = {"d": Dict[str, int], "n": Counter, "q": Queue[int], "l": Lock}
METHODS = [  # object, method, its arguments by a generator
    ("d", "set", lambda draw: (draw.choice("abc"), draw.randrange(5))),
    ("d", "delete", lambda draw: (draw.choice("abc"),)),
    (
        "d",
        "compare_and_set",
        lambda draw: (draw.choice("abc"), draw.choice([None, *range(5)]), draw.choice([None, 7, 8])),
    ),
    ("n", "add", lambda draw: (draw.randint(1, 9),)),
    ("q", "put", lambda draw: (draw.randrange(10**6),)),
    ("q", "get_nowait", lambda draw: ()),
    ("l", "_ask", lambda draw: (draw.randrange(1, 10**6), False)),
]


class Histories:
    """Of one run: what was called on each object, and whose lives ended."""

    def __init__(self) -> None:
        self.ops: dict[str, list[Op]] = defaultdict(list)
        self.answers = self.unknown = 0
        self.callers: list[ObjectCaller] = []


class Tap(Layer):
    """On top of the stack: hears what callers hear."""

    name = "tap"

    def __init__(self, caller: ObjectCaller) -> None:
        self._caller = caller

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        if type(event) is Answered:
            self._caller.answered(event)
        elif type(event) is FateUnknown:
            self._caller.unknown(event)
        return [Up(event)]


class ObjectCaller(Caller):
    """In the place of the ledger's caller."""

    histories: Histories
    safe = True

    def above(self, stack: Stack, setup: Setup) -> Stack:
        """A new life: its objects are brought to life when they are called."""
        self.end_of_life()
        identity = setup.identity
        self.peer = Peer(identity.me, identity.incarnation)
        self.machine = Objects(self.peer, setup.partition == ALL_CONTINUE)
        self.open: dict[int, tuple[int, str, str, tuple[Any, ...]]] = {}  # number -> begin, object, method, arguments
        self.held = 0  # the lock, by this number
        if self not in self.histories.callers:
            self.histories.callers.append(self)
        state = State(self.machine, setup, self.services, self.host.disk.own.found())
        return Stack(Node(Tap(self), [Node(state, [stack.top])]))

    def end_of_life(self) -> None:
        """What it had called has no answer, and what it held is given up at some time."""
        for begin, name, method, args in getattr(self, "open", {}).values():
            self._keep(begin, None, name, method, args, None)
        self.open = {}

    def calls(self) -> Calls:
        first, self.next = self.next, self.next + 1
        payload = self._call(first)
        return Calls(
            first, [payload], self.schedule.time, self.safe and Service.SAFE in self.services, self.durable == 1
        )

    def _call(self, number: int) -> bytes:
        name, method, arguments = self.draw.choice(METHODS)
        kind = KINDS[name]
        entry = self.machine.find(name)
        if entry is None:
            return self.machine.creation(name, kind())
        if not isinstance(entry, Bound):
            for _ in self.machine.bind(name, kind(), None):  # type: ignore[arg-type]
                pass
        args = arguments(self.draw)
        if name == "l" and self.held:
            method, args = "_release", (self.held,)
        found = kind._methods[method]
        self.open[number] = self.schedule.time, name, method, args
        return key_of(head_of(name, kind())) + bytes((found.number,)) + found.arguments(args, {})

    def answered(self, event: Answered) -> None:
        for number, answer in enumerate(event.answers, event.first):
            if number in self.open:
                begin, name, method, args = self.open.pop(number)
                assert not isinstance(answer, Raised), answer.why
                self.histories.answers += 1
                if name == "l":
                    self.held = answer if method == "_ask" else 0
                self._keep(begin, self.schedule.time, name, method, args, answer)

    def unknown(self, event: FateUnknown) -> None:
        for number in range(event.first, event.first + event.count):
            if number in self.open:
                self.histories.unknown += 1
                self._keep(*self.open[number][:1], None, *self.open.pop(number)[1:], None)

    def _keep(self, begin: int, end: int | None, name: str, method: str, args: tuple[Any, ...], answer: Any) -> None:
        if name == "d":  # each key is an object of its own
            name, args = f"d.{args[0]}", args[1:]
        elif name == "q":
            answer = None if method == "put" or answer is None else answer.value
        self.histories.ops[name].append(Op(begin, end, method, args, answer, self.peer))


def run(scenario: Scenario) -> tuple[Histories, Any]:
    histories = Histories()
    kind = type("Here", (ObjectCaller,), {"histories": histories})
    before, world.Caller = world.Caller, kind  # type: ignore[misc]
    try:
        outcome = world.run(scenario)
    finally:
        world.Caller = before  # type: ignore[misc]
    for caller in histories.callers:
        for begin, name, method, args in caller.open.values():
            caller._keep(begin, None, name, method, args, None)
    return histories, outcome
