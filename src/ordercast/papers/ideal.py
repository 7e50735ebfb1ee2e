"""Cores of ToTo alone on an ideal network: every message reaches the others after a constant delay, in causal order.

For groups so large, or runs so many, that the layers below would cost more than what is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import islice
from typing import Any

from ordercast.contract import (
    CancelTimer,
    Down,
    Multicast,
    Ordered,
    Received,
    SetTimer,
    Setup,
    Submit,
    Up,
    ViewChange,
    Window,
)
from ordercast.protocols.toto.core import Toto
from ordercast.types import Identity, Submission, View, ViewId, ViewKind
from ordercast.workload.sources import portions, source

MS = 1_000_000


class Ideal:
    """n members; one message per frame; times in nanoseconds; with `timers` false nobody is ever asked for a vote."""

    def __init__(
        self, n: int, quorum: Callable[[int], int], delay_ns: int, timeout_ns: int = 1000 * MS, timers: bool = True
    ) -> None:
        members = tuple(range(1, n + 1))
        self.n, self.delay_ns, self.timed, self.now, self.count = n, delay_ns, timers, 0, 0
        self.queue: list[tuple[int, int, int, Any]] = []  # when, number, rank, what
        self.timers: dict[tuple[int, str], int] = {}
        self.have = [[0] * n for _ in members]
        self.sent: dict[tuple[int, int], int] = {}  # sender and counter -> when
        self.waits: list[tuple[int, int]] = []  # when it was sent, latency at the sender
        self.nulls = 0
        self.cores = [
            Toto(Setup(Identity(me, 1, members), timeout_ns, None, 1_000, random.Random(0)), quorum) for me in members
        ]
        for rank in range(n):
            self._up(rank, ViewChange(View(ViewId(4, 1), ViewKind.REGULAR, members)))
            self._up(rank, Window(10**9))

    def at(self, when: int, rank: int, what: Any) -> None:
        self.count += 1
        heappush(self.queue, (when, self.count, rank, what))

    def run(self) -> None:
        while self.queue:
            self.now, _, rank, what = heappop(self.queue)
            if isinstance(what, Received):
                self._arrive(rank, what)
            elif isinstance(what, str):
                if self.timers.get((rank, what)) == self.now:
                    del self.timers[rank, what]
                    self._do(rank, self.cores[rank].timer(self.now, what, self.now))
            else:
                core = self.cores[rank]
                self.sent[rank + 1, core.sender.outbox.counter + 1] = self.now
                self._do(rank, core.down(self.now, Submit(Submission([b"x"]))))

    def _arrive(self, rank: int, event: Received) -> None:
        """At all but its sender, whose rank this is."""
        for other in range(self.n):
            if other != rank:
                self.have[other][rank] = event.seq
                self._up(other, event)

    def _up(self, rank: int, event: Any) -> None:
        self._do(rank, self.cores[rank].up(self.now, event, 0))

    def _do(self, rank: int, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, Down) and isinstance(action.event, Multicast):
                self._multicast(rank, action.event.body)
            elif isinstance(action, Up) and isinstance(action.event, Ordered):
                frame = action.event.frame
                if frame.sender == rank + 1:
                    since = self.sent[frame.sender, frame.counter]
                    self.waits.append((since, self.now - since))
            elif isinstance(action, SetTimer) and self.timed:
                self.timers[rank, action.name] = action.at
                self.at(action.at, rank, action.name)
            elif isinstance(action, CancelTimer):
                self.timers.pop((rank, action.name), None)

    def _multicast(self, rank: int, body: Any) -> None:
        self.nulls += not hasattr(body, "frame")
        have = self.have[rank]
        have[rank] += 1
        event = Received(rank + 1, have[rank], body, tuple(have))
        self.at(self.now + self.delay_ns, rank, event)
        self._up(rank, event)


def sender_latency_ms(parameters: dict[str, Any], seed: int) -> dict[str, float]:
    """A run without the timer: n, protocol (toto or allack), regime, rate in all, delay_us, messages.  The first and
    the last tenth of the messages do not count, nor what the last votes leave undelivered."""
    n, messages = parameters["n"], parameters["messages"]
    world = Ideal(
        n,
        (lambda n: n // 2 + 1) if parameters["protocol"] == "toto" else (lambda n: n + 1),
        round(parameters["delay_us"] * 1000),
        timers=False,
    )

    def line(rank: int) -> Any:
        generator = random.Random(f"{seed}/{rank}")
        return source(parameters["regime"], generator, messages, (1,), rate=parameters["rate"] / n)

    for rank, share in portions(messages, {rank: line(rank) for rank in range(n)}).items():
        for when, _, _ in islice(line(rank), share):
            world.at(when, rank, None)
    world.run()
    sends, cut = sorted(world.sent.values()), messages // 10
    begin, end = sends[cut], sends[-1 - cut]
    waits = [wait for since, wait in world.waits if begin <= since <= end]
    return {"latency": sum(waits) / len(waits) / MS, "count": len(waits)}
