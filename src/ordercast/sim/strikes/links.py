"""How faults on links set in and end: filters switched on and off, cut edges, dead gateways, replays."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.sim import faults as f
from ordercast.sim.carrier import Carrier
from ordercast.sim.links import FILTERS, Clogging, Cutting, Filter, Remembering
from ordercast.sim.network import Graph
from ordercast.sim.partitions import cut_pairs
from ordercast.sim.scenario import MS
from ordercast.sim.strikes.running import Acts, Running

if TYPE_CHECKING:
    from ordercast.sim.fault_plan import FaultPlan

SWIZZLE_TIMEOUTS = 10  # how long a swizzle lasts that does not say


class LinkStrikes:
    """Faults on the way of datagrams."""

    def __init__(self, plan: FaultPlan, carrier: Carrier) -> None:
        self.plan, self.carrier = plan, carrier
        self.scenario, self.schedule = carrier.scenario, carrier.schedule
        self.acts: Acts = dict.fromkeys(FILTERS, self._plain) | {
            f.Swizzle: self._swizzle, f.Replay: self._replay, f.Cut: self._cut, f.Partition: self._partition,
        }  # fmt: skip

    def _plain(self, running: Running, fault: f.LinkFault) -> None:
        self._install(running, FILTERS[type(fault)](fault, self.carrier, running.random))

    def _install(self, running: Running, filter: Filter[Any]) -> None:
        """Switch a filter on, and on and off while the fault flaps."""
        carrier, schedule, fault = self.carrier, self.schedule, running.fault
        assert isinstance(fault, f.LinkFault)
        running.filters.append(filter)

        def flap(a: None, b: None) -> None:
            if running.ended:
                return
            if filter in carrier.filters:
                carrier.switch_off(filter)
                wait = fault.up_ms
            else:
                carrier.switch_on(filter)
                wait = fault.down_ms
            schedule.later(schedule.time + max(1, round(wait * MS)), flap, None, None)

        running.undo.append(partial(carrier.switch_off, filter))
        carrier.switch_on(filter)
        if fault.down_ms:
            schedule.later(schedule.time + max(1, round(fault.down_ms * MS)), flap, None, None)

    def _swizzle(self, running: Running, fault: f.Swizzle) -> None:
        ids, timeout_ns = self.scenario.ids, self.scenario.timeout_ns
        chosen = list(fault.members) or running.random.sample(ids, running.random.randint(1, len(ids)))
        until = fault.at_ms * MS + SWIZZLE_TIMEOUTS * timeout_ns if fault.until_ms is None else fault.until_ms * MS
        step = max(1, (round(until) - self.schedule.time) // (2 * len(chosen)))
        back = running.random.sample(chosen, len(chosen))
        for k, member in enumerate(chosen):
            clog = Clogging(f.Clog(pairs=(f"{member}-*",)), self.carrier, running.random)
            part = Running(clog.fault, running.number, running.random)
            running.filters.append(clog)

            def start(part: Running = part, clog: Clogging = clog) -> None:
                if not running.ended:
                    self._install(part, clog)

            def stop(part: Running = part) -> None:
                if not part.ended:
                    part.ended = True
                    for undo in part.undo:
                        undo()

            running.undo.append(stop)
            self.plan.after(k * step, start)
            self.plan.after((len(chosen) + back.index(member)) * step, stop)
        if fault.until_ms is None:
            self.plan.after(2 * len(chosen) * step, lambda: self.plan.finish(running))

    def memorise(self, running: Running, fault: f.Replay) -> None:
        """From the beginning of the run, so that there is something to replay."""
        memory = Remembering(fault, self.carrier, running.random)
        running.filters.append(memory)
        self.carrier.remember(memory)

    def _replay(self, running: Running, fault: f.Replay) -> None:
        schedule, memory = self.schedule, running.filters[0]
        assert isinstance(memory, Remembering)

        def fire(a: None = None, b: None = None) -> None:
            if running.ended:
                return
            memory.fire()
            if fault.every_ms:
                schedule.later(schedule.time + round(fault.every_ms * MS), fire, None, None)

        running.undo.append(partial(self.carrier.forget, memory))
        fire()
        if not fault.every_ms:
            self.plan.finish(running)

    def _cut(self, running: Running, fault: f.Cut) -> None:
        if not fault.edges:
            self._plain(running, fault)
            return
        for pair in fault.pairs:
            left, right, both = f.split_pair(pair)
            for edge in ((int(left), int(right)), (int(right), int(left)))[: 1 + both]:
                for graph in self._graphs():
                    _more(graph.cut_edges, edge, running)

    def cut_off(self, away: list[int], core: tuple[int, ...]) -> None:
        """For good."""
        cut = Cutting(f.Cut(), self.carrier, self.scenario.generator("away"))
        cut.pairs = frozenset((a, b) for x in away for y in core for a, b in ((x, y), (y, x)))
        self.carrier.switch_on(cut)

    def _graphs(self) -> list[Graph]:
        return [medium for medium in self.carrier.media if isinstance(medium, Graph)]

    def _partition(self, running: Running, fault: f.Partition) -> None:
        ids = self.scenario.ids
        if fault.shape != "gateway":
            cut = Cutting(fault, self.carrier, running.random)
            cut.pairs = frozenset(cut_pairs(fault, ids, running.random))
            self._install(running, cut)
            return
        gateway = fault.member
        assert gateway is not None
        for graph in self._graphs():
            _more(graph.dead_relays, gateway, running)
        if gateway in ids:
            nets = self.carrier.hosts[gateway].nets
            for net in nets[1:] if fault.net is None else (fault.net,):
                cut = Cutting(msgspec.structs.replace(fault, net=net), self.carrier, running.random)
                others = [x for x in self.carrier.media[net].members if x != gateway]
                cut.pairs = frozenset((a, b) for x in others for a, b in ((gateway, x), (x, gateway)))
                self._install(running, cut)


def _more(table: dict[Any, int], key: Any, running: Running) -> None:
    """One more fault that has this down, as long as it lasts."""
    table[key] = table.get(key, 0) + 1
    running.undo.append(partial(_less, table, key))


def _less(table: dict[Any, int], key: Any) -> None:
    table[key] -= 1
    if not table[key]:
        del table[key]
