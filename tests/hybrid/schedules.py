"""Processes and FIFO channels in the author's hand, or in that of chance; the paper's view changes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from ordercast.conformance.golden_hybrid import Network
from ordercast.contract import Body
from ordercast.protocols.hybrid.carry import carry
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.process import ACTIVE, PASSIVE, Process

ROUNDS = 6


class Group(Network):
    """All processes of a run; what was ticketed and received is counted."""

    def __init__(
        self,
        n: int,
        active: list[int],
        sequencer: dict[int, int] | None = None,
        dist: dict[int, dict[int, float]] | None = None,
        process: type[Process] = Process,
        change: Any = carry,
        numbers: Any = Lamport,
    ) -> None:
        ids = range(1, n + 1)
        case = {
            "processes": n,
            "active": active,
            "sequencer": {str(p): (sequencer or {}).get(p, p if p in active else active[0]) for p in ids},
            "dist": {str(p): {str(q): (dist or {}).get(p, {}).get(q, abs(p - q)) for q in ids} for p in ids},
        }
        super().__init__(case, process, change, numbers)
        self.tickets: Counter[tuple[int, int]] = Counter()
        self.came: Counter[tuple[int, int]] = Counter()  # packets, by channel

    def multicast(self, p: int, body: Body) -> None:
        for _, sender, c in getattr(body, "tickets", ()):
            self.tickets[sender, c] += 1
        super().multicast(p, body)

    def recv(self, b: int, a: int) -> None:
        self.came[a, b] += 1
        super().recv(b, a)

    def play(self, *events: str) -> Group:
        """Each as "send 3", "recv 1 3"; "crash 1" with nothing on its way kept, "view"."""
        for event in events:
            what, *numbers = event.split()
            if what == "crash":
                self.crash(list(map(int, numbers)), {})
            elif what == "view":
                self.empty()
                self.view(sorted(self.up))
            else:
                getattr(self, what)(*map(int, numbers))
        return self

    def empty(self) -> None:
        """All that is on its way arrives."""
        while waiting := [(a, b) for (a, b), channel in self.channels.items() if channel and b in self.up]:
            for a, b in waiting:
                self.recv(b, a)

    def settle(self) -> Group:
        """Everything arrives, and active processes send nulls."""
        for _ in range(ROUNDS):
            self.empty()
            for p in sorted(self.up):
                self.null(p)
        self.empty()
        return self

    def order(self, p: int) -> list[tuple[int, int]]:
        return [tuple(mid) for mid, _ in self.up[p].order]

    def wrong(self) -> str:
        """What is not as promised at those that are left: one order, everything delivered, nothing waits."""
        first = min(self.up)
        for p, process in self.up.items():
            if self.order(p) != self.order(first):
                return f"{p} delivered {self.order(p)}, {first} {self.order(first)}"
            if process.Q or process.UT or process.LT or process.own or self.backlog[p]:
                return f"something waits at {p}"
            if not process.actives or (process.actives, process.rn) != (self.up[first].actives, self.up[first].rn):
                return f"roles at {p}: {process.actives} {process.rn}"
            delivered = [c for sender, c in self.order(first) if sender == p]
            if delivered != list(range(1, process.c + 1)):
                return f"messages of {p}: {delivered} of {process.c}"
        return ""


def random_run(seed: int, process: type[Process] = Process, change: Any = carry, numbers: Any = Lamport) -> str:
    """Sends, receptions, role changes, up to two crashes with view changes; what went wrong, or nothing."""
    rng = random.Random(seed)
    n = rng.randint(3, 6)
    ids = list(range(1, n + 1))
    active = rng.sample(ids, rng.randint(1, n))
    dist = {p: {q: rng.choice((1, 2, 5)) for q in ids} for p in ids}
    group = Group(n, active, {p: rng.choice(active) for p in ids if p not in active}, dist, process, change, numbers)
    crashes = rng.choice((0, 1, 2))
    for step in range(120):
        p = rng.choice(sorted(group.up))
        what = rng.choice(("send", "send", "null", "recv", "recv", "recv", "recv", "role"))
        if what == "recv":
            waiting = [(b, a) for (a, b), channel in group.channels.items() if channel and b in group.up]
            if waiting:
                group.recv(*rng.choice(waiting))
        elif what != "role":
            getattr(group, what)(p)
        elif group.up[p].state is ACTIVE:
            group.go_passive(p)
        elif group.up[p].state is PASSIVE:
            getattr(group, rng.choice(("go_active", "change_sequencer")))(p)
        if crashes and step in (50, 90) and len(group.up) > 1:
            crashes -= 1
            _crash(group, rng)
    return group.settle().wrong()


def _crash(group: Group, rng: random.Random) -> None:
    """One or two die; of each everybody gets the same first part of what it sent; what is said meanwhile waits."""
    dead = rng.sample(sorted(group.up), rng.randint(1, min(2, len(group.up) - 1)))
    left = [p for p in group.up if p not in dead]
    keep: dict[str, dict[str, int]] = {}
    for f in dead:
        came = {q: group.came[f, q] for q in left}
        sent = max(came[q] + len(group.channels[f, q]) for q in left)
        prefix = rng.randint(max(came.values()), sent)
        keep[str(f)] = {str(q): prefix - came[q] for q in left}
    group.crash(dead, keep)
    for p in rng.choices(left, k=2):
        group.send(p)
    group.empty()
    group.view(sorted(group.up))
