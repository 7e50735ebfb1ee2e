"""The draws behind what is expected of ToTo: who sends when, and how long each message travels to whom.

What is expected was found in single runs, or in ten, and single runs differ by more than the tolerances around it.
So it is judged on its own draws: one generator of Python's, seeded with a small number.  It gives each member's first
interval; then, at every send, the ways to the others by rank, if they differ, and the sender's next interval.  A period
has eight phases, the same shares of it at every load.  How the draws were found, and what others give: decision 0151.

The cores of the product run on them, alone on an ideal network: a member has its own message at once, the others' after
their way and behind their past.  A tenth of the messages does not count at either end.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from heapq import heapify, heapreplace
from typing import Any, NamedTuple

from ordercast.contract import Note, Ordered, Received, Up
from ordercast.papers.ideal import MS, Ideal

N = 8
Ways = tuple[float, ...]  # to each member, ms


class Send(NamedTuple):
    at: float  # ms
    rank: int
    ways: Ways


class Index(NamedTuple):
    """A delivery: of which message, where, how long after it was sent and after it came, and its index of latency."""

    key: tuple[int, int]
    rank: int
    since_sent: int
    since_came: int
    tau: int
    omega: int


def poisson(draw: random.Random, rate: float, messages: int, low: float, mean: float) -> Iterator[Send]:
    """`rate` messages a second in all; ways of `mean` ms, or of `low` ms and an exponential part."""
    each = rate / N / 1000
    due = [(draw.expovariate(each), rank) for rank in range(N)]
    heapify(due)

    def way() -> float:
        return low + draw.expovariate(1 / (mean - low)) if mean > low else mean

    for _ in range(messages):
        at, rank = due[0]
        yield Send(at, rank, tuple(0.0 if other == rank else way() for other in range(N)))
        heapreplace(due, (at + draw.expovariate(each), rank))


def periodic(draw: random.Random, rate: float, messages: int, mean: float) -> Iterator[Send]:
    """Every member once in each period, at a phase of its own."""
    period = 1000 * N / rate
    phases = sorted((draw.random() * period, rank) for rank in range(N))
    for number in range(messages):
        turn, place = divmod(number, N)
        phase, rank = phases[place]
        yield Send(turn * period + phase, rank, (mean,) * N)


class Drawn(Ideal):
    """Cores on these sends; every receiver has its own way, and what comes before its past waits for it."""

    def __init__(self, sends: list[Send], quorum: Callable[[int], int]) -> None:
        super().__init__(N, quorum, 0, timers=False)
        self.held: list[list[Received]] = [[] for _ in range(N)]
        self.came: dict[tuple[tuple[int, int], int], int] = {}
        self.found: list[Index] = []
        self.ways: dict[tuple[int, int], Ways] = {}
        self.keys: list[tuple[int, int]] = []  # of the messages, as they are sent
        sent = Counter[int]()
        for at, rank, ways in sends:
            sent[rank] += 1
            self.keys.append((rank + 1, sent[rank]))
            self.ways[rank + 1, sent[rank]] = ways
            self.at(round(at * MS), rank, None)

    def _multicast(self, rank: int, body: Any) -> None:
        have = self.have[rank]
        have[rank] += 1
        event = Received(rank + 1, have[rank], body, tuple(have))
        for other, way in enumerate(self.ways[rank + 1, have[rank]]):
            if other != rank:
                self.at(self.now + round(way * MS), other, event)
        self._enter(rank, event)

    def _arrive(self, rank: int, event: Received) -> None:
        """At one receiver: `rank` is its own."""
        have, held = self.have[rank], self.held[rank]
        held.append(event)
        while ready := [each for each in held if _follows(each, have)]:
            held.remove(ready[0])
            have[ready[0].sender - 1] = ready[0].seq
            self._enter(rank, ready[0])

    def _enter(self, rank: int, event: Received) -> None:
        self.came[(event.sender, event.seq), rank] = self.now
        self._up(rank, event)

    def _do(self, rank: int, actions: list[Any]) -> None:
        notes = deque(each.fields for each in actions if isinstance(each, Note) and each.name == "index")
        for action in actions:
            if isinstance(action, Up) and isinstance(action.event, Ordered):
                key, note = (action.event.frame.sender, action.event.frame.counter), notes.popleft()
                since_sent, since_came = self.now - self.sent[key], self.now - self.came[key, rank]
                self.found.append(Index(key, rank, since_sent, since_came, note["tau"], note["omega"]))
        super()._do(rank, actions)

    def counted(self) -> list[Index]:
        """Deliveries of all messages but the first and the last tenth."""
        cut = len(self.keys) // 10
        counts = set(self.keys[cut : len(self.keys) - cut])
        return [each for each in self.found if each.key in counts]


def _follows(event: Received, have: list[int]) -> bool:
    """Whether all that it follows is here."""
    return all(last <= have[rank] + (rank == event.sender - 1) for rank, last in enumerate(event.vec))


def _joint(found: list[Index]) -> dict[str, Any]:
    pairs = Counter((each.tau, each.omega) for each in found)
    return {
        "tau": sum(each.tau for each in found) / len(found),
        "omega": sum(each.omega for each in found) / len(found),
        "joint": {f"{tau},{omega}": pairs[tau, omega] / len(found) for tau, omega in sorted(pairs)},
    }


def drawn(parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    """One run: protocol, regime, rate (messages a second in all), mean_ms, low_ms, options.phi in eighths, messages.
    The figures have the names of those of a simulated run; `view`: since a message came to a member."""
    draw, rate, messages = random.Random(seed), float(parameters["rate"]), parameters["messages"]
    mean = parameters["mean_ms"]
    if parameters["regime"] == "periodic":
        sends = list(periodic(draw, rate, messages, mean))
    else:
        sends = list(poisson(draw, rate, messages, parameters.get("low_ms", mean), mean))
    phi = N if parameters["protocol"] == "allack" else int(parameters.get("options", {}).get("phi", "4/8")[0])
    world = Drawn(sends, lambda n: n * phi // N + 1)
    world.run()
    found = world.counted()
    own = [each for each in found if each.key[0] == each.rank + 1]
    return {
        "latency": {
            "sender": {"count": len(own), "mean": sum(each.since_sent for each in own) / len(own) / MS},
            "view": {"count": len(found), "mean": sum(each.since_came for each in found) / len(found) / MS},
        },
        "index": _joint(found),
        "sender_index": _joint(own),
    }
