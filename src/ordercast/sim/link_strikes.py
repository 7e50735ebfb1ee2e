"""How faults on links set in and end: filters switched on and off, cut edges, dead gateways, replays."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from ordercast.sim import faults as f
from ordercast.sim.links import Clogging, Cutting, Filter, Remembering
from ordercast.sim.network import Graph
from ordercast.sim.partitions import cut_pairs
from ordercast.sim.plan import Plan, Running
from ordercast.sim.scenario import MS

SWIZZLE_TIMEOUTS = 10  # how long a swizzle lasts that does not say


class LinkStrikes(Plan):
    """Faults on the way of datagrams."""

    def install(self, running: Running, filter: Filter) -> None:
        """Switch a filter on, and on and off while the fault flaps."""
        world, fault = self.world, running.fault
        assert isinstance(fault, f.LinkFault)
        running.filters.append(filter)

        def on() -> None:
            world.filters.append(filter)
            world.slow = True

        def off() -> None:
            if filter in world.filters:
                world.filters.remove(filter)
            world.slow = world.scenario.wire or bool(world.filters) or bool(world.memories)
            filter.release()

        def flap(a: None, b: None) -> None:
            if running.ended:
                return
            if filter in world.filters:
                off()
                wait = fault.up_ms
            else:
                on()
                wait = fault.down_ms
            world.later(world.time + max(1, round(wait * MS)), flap, None, None)

        running.undo.append(off)
        on()
        if fault.down_ms:
            world.later(world.time + max(1, round(fault.down_ms * MS)), flap, None, None)

    def swizzle(self, running: Running, fault: f.Swizzle) -> None:
        world = self.world
        ids = world.scenario.ids
        chosen = list(fault.members) or running.random.sample(ids, running.random.randint(1, len(ids)))
        until = (
            fault.at_ms * MS + SWIZZLE_TIMEOUTS * world.timeout_ns if fault.until_ms is None else fault.until_ms * MS
        )
        step = max(1, (round(until) - world.time) // (2 * len(chosen)))
        back = running.random.sample(chosen, len(chosen))
        for k, member in enumerate(chosen):
            clog = Clogging(f.Clog(pairs=(f"{member}-*",)), world, running.random)
            part = Running(fault, running.number, running.random)
            part.fault = clog.fault
            running.filters.append(clog)

            def start(part: Running = part, clog: Clogging = clog) -> None:
                if not running.ended:
                    self.install(part, clog)

            def stop(part: Running = part) -> None:
                if not part.ended:
                    part.ended = True
                    for undo in part.undo:
                        undo()

            running.undo.append(stop)
            self.after(k * step, start)
            self.after((len(chosen) + back.index(member)) * step, stop)
        if fault.until_ms is None:
            self.after(2 * len(chosen) * step, lambda: self.finish(running))

    def replay(self, running: Running, fault: f.Replay) -> None:
        world = self.world
        memory = running.filters[0]
        assert isinstance(memory, Remembering)

        def fire(a: None = None, b: None = None) -> None:
            if running.ended:
                return
            memory.fire()
            if fault.every_ms:
                world.later(world.time + round(fault.every_ms * MS), fire, None, None)

        def forget() -> None:
            world.memories.remove(memory)
            world.slow = world.scenario.wire or bool(world.filters) or bool(world.memories)

        running.undo.append(forget)
        fire()
        if not fault.every_ms:
            self.finish(running)

    def cut(self, running: Running, fault: f.Cut) -> None:
        if not fault.edges:
            self.install(running, Cutting(fault, self.world, running.random))
            return
        for pair in fault.pairs:
            left, right, both = f.split_pair(pair)
            for edge in ((int(left), int(right)), (int(right), int(left)))[: 1 + both]:
                self._cut_edge(running, edge)

    def _cut_edge(self, running: Running, edge: tuple[int, int]) -> None:
        for graph in self._graphs():
            graph.cut_edges[edge] = graph.cut_edges.get(edge, 0) + 1
            running.undo.append(partial(_less, graph.cut_edges, edge))

    def _graphs(self) -> list[Graph]:
        return [medium for medium in self.world.media if isinstance(medium, Graph)]

    def partition(self, running: Running, fault: f.Partition) -> None:
        world, ids = self.world, self.world.scenario.ids
        if fault.shape != "gateway":
            cut = Cutting(fault, world, running.random)
            cut.pairs = frozenset(cut_pairs(fault, ids, running.random))
            self.install(running, cut)
            return
        gateway = fault.member
        assert gateway is not None
        for graph in self._graphs():
            graph.dead_relays[gateway] = graph.dead_relays.get(gateway, 0) + 1
            running.undo.append(partial(_less, graph.dead_relays, gateway))
        if gateway in ids:
            nets = world.host[gateway].nets
            for net in nets[1:] if fault.net is None else (fault.net,):
                cut = Cutting(msgspec.structs.replace(fault, net=net), world, running.random)
                others = [x for x in world.media[net].members if x != gateway]
                cut.pairs = frozenset((a, b) for x in others for a, b in ((gateway, x), (x, gateway)))
                self.install(running, cut)


def _less(table: dict[Any, int], key: Any) -> None:
    table[key] -= 1
    if not table[key]:
        del table[key]
