"""Networks: when a datagram reaches whom, before faults.  One object per net of a scenario; members sit on several.

lan    one channel: transmissions follow each other, a multicast reaches everybody at the same time.
links  a link per ordered pair; what one sender transmits follows each other, links do not disturb one another.
graph  members and relays joined by edges; a datagram takes the shortest way, one copy per edge, and waits there for the
       one before it.  Ways are fixed: a cut edge is not gone around.
"""

from __future__ import annotations

import heapq
import random

from ordercast.contract import TAGGER
from ordercast.sim.law import US, Delay, Sampler
from ordercast.sim.scenario import Edge, Net, Scenario

Arrivals = list[tuple[int, int]]  # (member, time)


class Medium:
    """Base: who sits here, how long a datagram occupies the wire."""

    def __init__(self, spec: Net, index: int, scenario: Scenario, generator: random.Random, hears_self: bool) -> None:
        self.spec, self.index = spec, index
        self.members = scenario.on_net(spec)
        self.ns_per_byte = 8_000 / spec.mbit if spec.mbit else 0.0
        self.needs_size = spec.mbit > 0
        self.overhead = spec.overhead_bytes
        self.draw = spec.delay.sampler(generator)
        self.fixed = self.draw() if spec.delay.same_for_all else 0
        self.hears_self = hears_self
        self.others = {m: tuple(x for x in self.members if x != m or hears_self) for m in self.members}
        self.together = False  # one arrival time for all receivers, given by `at`
        self._last: dict[tuple[int, int], int] = {}

    def at(self, time: int, source: int, size: int) -> int:
        """When a datagram of `size` bytes, transmitted now, is at every receiver (only where `together`)."""
        raise NotImplementedError

    def reach(self, time: int, source: int, to: tuple[int, ...], size: int) -> Arrivals:
        """When it is at each of `to`; those it cannot reach are left out."""
        raise NotImplementedError

    @property
    def bound(self) -> int:
        """The longest usual delay, in ns."""
        return self.spec.delay.bound + int(2000 * self.ns_per_byte)

    def _in_order(self, source: int, arrivals: Arrivals) -> Arrivals:
        """Nobody overtakes on one pair."""
        if not self.spec.fifo:
            return arrivals
        last, out = self._last, []
        for to, at in arrivals:
            at = last[source, to] = max(at, last.get((source, to), -1) + 1)
            out.append((to, at))
        return out


class Lan(Medium):
    """One serialised channel."""

    def __init__(self, spec: Net, index: int, scenario: Scenario, generator: random.Random, hears_self: bool) -> None:
        super().__init__(spec, index, scenario, generator, hears_self)
        self.together = spec.delay.same_for_all
        self.free = 0

    def at(self, time: int, source: int, size: int) -> int:
        free = self.free
        self.free = free = (time if time > free else free) + int((size + self.overhead) * self.ns_per_byte)
        return free + self.fixed

    def reach(self, time: int, source: int, to: tuple[int, ...], size: int) -> Arrivals:
        if self.together:
            at = self.at(time, source, size)
            return [(member, at) for member in to]
        sent = self.at(time, source, size)
        return self._in_order(source, [(member, sent + self.draw()) for member in to])


class Links(Medium):
    """A link of its own for every ordered pair."""

    def __init__(self, spec: Net, index: int, scenario: Scenario, generator: random.Random, hears_self: bool) -> None:
        super().__init__(spec, index, scenario, generator, hears_self)
        self.more: dict[tuple[int, int], Sampler] = {}
        for edge in spec.edges:
            law = edge.delay or Delay("constant", mean_us=edge.us)
            self.more[edge.a, edge.b] = self.more[edge.b, edge.a] = law.sampler(generator)
        self.together = spec.delay.same_for_all and not self.more
        self.free = dict.fromkeys(self.members, 0)

    def at(self, time: int, source: int, size: int) -> int:
        free = self.free[source]
        free = (time if time > free else free) + int((size + self.overhead) * self.ns_per_byte)
        self.free[source] = free
        return free + self.fixed

    def reach(self, time: int, source: int, to: tuple[int, ...], size: int) -> Arrivals:
        sent = self.at(time, source, size) - self.fixed
        draw, more = self.draw, self.more
        if more:
            arrivals = [(m, sent + (more[source, m]() if (source, m) in more else draw())) for m in to]
        else:
            arrivals = [(m, sent + draw()) for m in to]
        return self._in_order(source, arrivals)

    @property
    def bound(self) -> int:
        return max([super().bound, *map(_bound, self.spec.edges)])


def _bound(edge: Edge) -> int:
    return edge.delay.bound if edge.delay else round(edge.us * US)


class Graph(Medium):
    """Members and relays joined by edges; each edge is a channel in each direction."""

    def __init__(self, spec: Net, index: int, scenario: Scenario, generator: random.Random, hears_self: bool) -> None:
        super().__init__(spec, index, scenario, generator, hears_self)
        self.edges: dict[int, dict[int, int]] = {}
        self.laws: dict[tuple[int, int], Sampler] = {}  # of edges that have one of their own
        for edge in spec.edges:
            length = round(edge.delay.mean if edge.delay else edge.us * US)
            for a, b in ((edge.a, edge.b), (edge.b, edge.a)):
                self.edges.setdefault(a, {})[b] = length
                if edge.delay:
                    self.laws[a, b] = edge.delay.sampler(generator)
        if scenario.tagger:  # it sits beside the first node
            beside = min(self.edges)
            self.edges[TAGGER] = {beside: 0}
            self.edges[beside][TAGGER] = 0
        self.ways = {m: self._way(m) for m in self.members}
        self.free: dict[tuple[int, int], int] = {}
        self.cut_edges: dict[tuple[int, int], int] = {}  # directed edge -> how many faults cut it
        self.dead_relays: dict[int, int] = {}

    def _way(self, source: int) -> dict[int, int]:
        """node -> the node before it on the shortest way from `source`, nearest first."""
        mean = self.spec.delay.mean
        before: dict[int, int] = {}
        queue = [(0.0, source, source)]
        while queue:
            length, node, previous = heapq.heappop(queue)
            if node in before:
                continue
            before[node] = previous
            for neighbour, fixed in sorted(self.edges.get(node, {}).items()):
                if neighbour not in before:
                    heapq.heappush(queue, (length + (fixed or mean) + 1, neighbour, node))
        return before

    def reach(self, time: int, source: int, to: tuple[int, ...], size: int) -> Arrivals:
        way = self.ways[source]
        at: dict[int, int | None] = {source: time}
        busy = int((size + self.overhead) * self.ns_per_byte)
        arrivals: Arrivals = []
        for member in to:
            when = self._arrival(member, way, at, busy)
            if when is not None:
                arrivals.append((member, when))
        return self._in_order(source, arrivals)

    def _arrival(self, node: int, way: dict[int, int], at: dict[int, int | None], busy: int) -> int | None:
        """When a copy is at `node`, by the way from the source; shared stretches are travelled once."""
        if node in at:
            return at[node]
        if node not in way:
            return None
        before = way[node]
        start = self._arrival(before, way, at, busy)
        if start is None or (before, node) in self.cut_edges or (before in self.dead_relays and way[before] != before):
            at[node] = None
            return None
        edge = (before, node)
        free = self.free.get(edge, 0)
        self.free[edge] = free = (start if start > free else free) + busy
        law = self.laws.get(edge)
        at[node] = free + (law() if law else self.edges[before][node] or self.draw())
        return at[node]

    @property
    def bound(self) -> int:
        usual = super().bound
        lengths = [_bound(edge) for edge in self.spec.edges] + ([0] if TAGGER in self.edges else [])
        longest = max(length or usual for length in lengths)
        return longest * max(1, len(self.edges) - 1)


_MODELS: dict[str, type[Medium]] = {"lan": Lan, "links": Links, "graph": Graph}


def media(scenario: Scenario, generator: random.Random, hears_self: bool) -> list[Medium]:
    """One medium per net of the scenario."""
    return [_MODELS[net.model](net, k, scenario, generator, hears_self) for k, net in enumerate(scenario.nets)]
