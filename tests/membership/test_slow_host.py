"""A host so busy that every timer comes late is not taken for one that paused: the dead are noticed all the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ordercast import registry
from ordercast.contract import ALL, Action, CancelTimer, SetTimer, Setup, Store, Transmit, Up, ViewChange
from ordercast.stack import Stack
from ordercast.types import Identity, Peer

MS = 1_000_000
T = 200 * MS
DIES, ENDS = 3_000 * MS, 10_000 * MS


class Two:
    """Members 1 and 2; after 1 has died, all timers of 2 are handled `late`."""

    def __init__(self, late: int) -> None:
        self.late, self.now, self.dead = late, 0, False
        self.queue: list[tuple[int, Any, Any]] = []
        self.timers: dict[int, dict[str, int]] = {1: {}, 2: {}}
        self.views: list[tuple[int, tuple[int, ...]]] = []  # of member 2
        info = registry.get("totem")
        self.stacks: dict[int, Stack] = {}
        for me in (1, 2):
            identity = Identity(me, me, (1, 2))
            self.stacks[me] = info.factory(Setup(identity, T, info.options(), 1400, random.Random(me)))
            self.do(me, self.stacks[me].start(0, identity, {}))

    def do(self, me: int, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case SetTimer(name, at):
                    self.timers[me][name] = at
                case CancelTimer(name):
                    self.timers[me].pop(name, None)
                case Transmit(_, to, packet):
                    self.queue.append((me, to, packet))
                case Store(key, number):
                    self.do(me, self.stacks[me].stored(self.now, key, number))
                case Up(ViewChange(view)) if me == 2:
                    self.views.append((self.now, view.members))

    def run(self) -> None:
        while self.now < ENDS:
            while self.queue:
                source, to, packet = self.queue.pop(0)
                self.now += MS // 20
                other = 3 - source
                if not self.dead and to in (ALL, other):
                    self.do(other, self.stacks[other].receive(self.now, 0, Peer(source, source), packet))
                    self.do(other, self.stacks[other].drained(self.now, 0))
            if self.now > DIES and not self.dead:
                self.dead = True
                self.timers[1].clear()
            delay = self.late if self.dead else 0
            at, me, name = min((at, me, name) for me, own in self.timers.items() for name, at in own.items())
            self.now = max(self.now, at + delay)
            del self.timers[me][name]
            self.do(me, self.stacks[me].timer(self.now, name, at))


@pytest.mark.parametrize("late_ms", [0, 40, 60, 150])
def test_the_dead_are_noticed(late_ms: int) -> None:
    two = Two(late_ms * MS)
    two.run()
    assert two.views[0][1] == (1, 2), "they began together"
    alone = [at for at, members in two.views if members == (2,)]
    assert alone and alone[0] - DIES <= 6 * T
