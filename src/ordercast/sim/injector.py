"""The fault injector: sets faults on and off at their times, heals the world, and writes it all into the trace."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.contract import Action, Transmit
from ordercast.sim import faults as f
from ordercast.sim.host import Host, slower
from ordercast.sim.links import FILTERS, Clogging, Cutting, Filter, Remembering, kinds_of
from ordercast.sim.network import Graph
from ordercast.sim.partitions import cut_pairs
from ordercast.sim.scenario import MS
from ordercast.trace.schema import Kind

if TYPE_CHECKING:
    from ordercast.sim.world import World

CLOSING_TIMEOUTS = 4  # after the heal point the core says a few words more
ROOM_AGAIN = 65_535  # frames an application takes that reads again and has no limit of its own
SWIZZLE_TIMEOUTS = 10  # how long a swizzle lasts that does not say
TRAP_TIMEOUTS = 25  # how long a run waits for a trap to spring


class Trap:
    """A crash or a pause that waits for a list of actions with its place in it."""

    def __init__(self, actions: int | None, on: str, for_ns: int | None, then: Callable[[], None]) -> None:
        self.actions, self.on, self.for_ns, self.then = actions, on, for_ns or 0, then
        self.pauses = for_ns is not None

    def springs(self, actions: list[Action]) -> int | None:
        """How many of these actions are carried out before it springs; None: not in this list."""
        if self.on:
            for k, action in enumerate(actions):
                if type(action) is Transmit and self.on in kinds_of(action.packet):
                    return k
            return None
        assert self.actions is not None
        return self.actions if len(actions) > self.actions else None


class Running:
    """A fault at work: how to end it, and what it did."""

    def __init__(self, fault: f.Fault, number: int, generator: random.Random) -> None:
        self.fault, self.number, self.random = fault, number, generator
        self.undo: list[Callable[[], None]] = []
        self.filters: list[Filter] = []
        self.member: int | None = None
        self.ended = False


class Injector:
    """Plays a scenario's faults."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.counts: Counter[str] = Counter()
        self.running: list[Running] = []
        self.waiting = 0  # onsets, ends and returns that are still to come
        self.trapped_at = 0  # when the last trap was set
        self.trap_ns = TRAP_TIMEOUTS * world.timeout_ns
        self.healed_at: int | None = None
        self.stable = False
        self._on: dict[type[f.Fault], Callable[[Running, Any], None]] = {
            f.Swizzle: self._swizzle,
            f.Replay: self._replay,
            f.Cut: self._cut,
            f.Partition: self._partition,
            f.Crash: self._crash,
            f.Storm: self._storm,
            f.Pause: self._pause,
            f.Leaving: self._leave,
            f.Slow: self._slow,
            f.Drift: self._drift,
            f.ClockJump: self._clock,
            f.DiskFault: self._disk,
            f.Burst: self._burst,
            f.SmallBuffer: self._buffer,
            f.Consumer: self._consumer,
        }

    # -------------------------------------------------------------------------------------------------------- the plan

    def begin(self) -> None:
        world, scenario = self.world, self.world.scenario
        for number, fault in enumerate(scenario.faults):
            running = Running(fault, number, world.generator(f"fault/{number}"))
            if isinstance(fault, f.Replay):
                memory = Remembering(fault, world, running.random)
                running.filters.append(memory)
                world.memories.append(memory)
                world.slow = True
            self._soon(fault.at_ms, lambda running=running: self._begin(running))
        if scenario.heal_ms is not None:
            self._soon(scenario.heal_ms, self._heal)
        self._perhaps_stable()

    def _soon(self, at_ms: float, call: Callable[[], None]) -> None:
        """Something the run must not end before."""
        self.waiting += 1
        self.world.later(round(at_ms * MS), self._now, call, None)

    def after(self, ns: int, call: Callable[[], None]) -> None:
        """The same, counted from now."""
        self.waiting += 1
        self.world.later(self.world.time + ns, self._now, call, None)

    def _now(self, call: Callable[[], None], _: None) -> None:
        self.waiting -= 1
        call()
        self._perhaps_stable()

    def pending(self) -> bool:
        """Whether something planned is still to come; a trap is waited for a while only, it may never spring."""
        if self.waiting:
            return True
        return any(host.traps for host in self.world.hosts) and self.world.time < self.trapped_at + self.trap_ns

    def _begin(self, running: Running) -> None:
        fault = running.fault
        if self.healed_at is not None and not getattr(fault, "lasting", False):
            return
        if isinstance(fault, f.MemberFault):
            running.member = fault.member or running.random.choice(self.world.scenario.ids)
        self.running.append(running)
        self.counts[fault.word] += 1
        self._write(running, "on")
        act = self._on.get(type(fault))
        if act is not None:
            act(running, fault)
        else:
            assert isinstance(fault, f.LinkFault)
            self._install(running, FILTERS[type(fault)](fault, self.world, running.random))
        if fault.until_ms is not None:
            self.after(max(0, round(fault.until_ms * MS) - self.world.time), lambda: self._finish(running))

    def _finish(self, running: Running) -> None:
        if running.ended:
            return
        running.ended = True
        self.running.remove(running)
        for undo in running.undo:
            undo()
        self._write(running, "off")

    def _write(self, running: Running, state: str) -> None:
        fields = msgspec.to_builtins(running.fault)
        fields.pop("fault")
        detail: dict[str, Any] = {"class": running.fault.word, "state": state, "number": running.number}
        if running.member is not None:
            detail["member"] = running.member
        if state == "off" and running.filters:
            detail["hits"] = sum(filter.hits for filter in running.filters)
        world = self.world
        world.log.event(world.time, world.time, Kind.FAULT, detail=detail | {"fields": fields})

    def end(self) -> None:
        """The run is over: what still acts is written with its count."""
        for running in self.running:
            self._write(running, "off")

    # -------------------------------------------------------------------------------------------------------- healing

    def _heal(self) -> None:
        """All ends but what lasts; the core is up for good, the others are not heard of any more."""
        world, scenario = self.world, self.world.scenario
        core = tuple(sorted(scenario.core)) or scenario.ids
        for running in list(self.running):
            if not getattr(running.fault, "lasting", False):
                self._finish(running)
        self.healed_at = world.time
        world.lose_stragglers()
        for host in world.hosts:
            host.traps.clear()
            world.refresh(host)
        away = [host for host in world.hosts if host.id not in core]
        if scenario.away == "crashed":
            for host in away:
                world.crash(host, "away for good")
        elif away:
            self._cut_off([host.id for host in away], core)
        for host in world.hosts:
            if host.id in core:
                world.resume(host)
                world.restart(host)
        self._say_stable(core)
        if scenario.closing:
            self.after(CLOSING_TIMEOUTS * world.timeout_ns, lambda: self._close(core))

    def _close(self, core: tuple[int, ...]) -> None:
        """The core submits its closing messages, in turn."""
        world, scenario = self.world, self.world.scenario
        for k in range(scenario.closing):
            application = world.applications[core[k % len(core)]]
            application.extra.append((1, min(scenario.sizes)))
            application.pump()

    def _cut_off(self, away: list[int], core: tuple[int, ...]) -> None:
        world = self.world
        cut = Cutting(f.Cut(), world, world.generator("away"))
        cut.pairs = frozenset((a, b) for x in away for y in core for a, b in ((x, y), (y, x)))
        world.filters.append(cut)
        world.slow = True

    def _perhaps_stable(self) -> None:
        """Without a heal point the world is stable when nothing acts and nothing is to come."""
        world = self.world
        if self.stable or self.waiting or world.scenario.heal_ms is not None:
            return
        if not self.running and not any(host.paused or host.traps for host in world.hosts):
            self._say_stable(tuple(host.id for host in world.hosts if host.up and not host.left))

    def _say_stable(self, core: tuple[int, ...]) -> None:
        world = self.world
        self.stable = True
        if self.healed_at is None and world.scenario.faults:
            self.healed_at = world.time
        delay = world.delay_ns
        world.log.event(world.time, world.time, Kind.STABLE, members=core, delay_ns=delay)

    # ---------------------------------------------------------------------------------------------------------- links

    def _install(self, running: Running, filter: Filter) -> None:
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

    def _swizzle(self, running: Running, fault: f.Swizzle) -> None:
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
                    self._install(part, clog)

            def stop(part: Running = part) -> None:
                if not part.ended:
                    part.ended = True
                    for undo in part.undo:
                        undo()

            running.undo.append(stop)
            self.after(k * step, start)
            self.after((len(chosen) + back.index(member)) * step, stop)
        if fault.until_ms is None:
            self.after(2 * len(chosen) * step, lambda: self._finish(running))

    def _replay(self, running: Running, fault: f.Replay) -> None:
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
            self._finish(running)

    def _cut(self, running: Running, fault: f.Cut) -> None:
        if not fault.edges:
            self._install(running, Cutting(fault, self.world, running.random))
            return
        for pair in fault.pairs:
            left, right, both = f.split_pair(pair)
            for edge in ((int(left), int(right)), (int(right), int(left)))[: 1 + both]:
                self._cut_edge(running, edge)

    def _cut_edge(self, running: Running, edge: tuple[int, int]) -> None:
        for graph in self._graphs():
            graph.cut_edges[edge] = graph.cut_edges.get(edge, 0) + 1
            running.undo.append(lambda graph=graph: _less(graph.cut_edges, edge))

    def _graphs(self) -> list[Graph]:
        return [medium for medium in self.world.media if isinstance(medium, Graph)]

    def _partition(self, running: Running, fault: f.Partition) -> None:
        world, ids = self.world, self.world.scenario.ids
        if fault.shape != "gateway":
            cut = Cutting(fault, world, running.random)
            cut.pairs = frozenset(cut_pairs(fault, ids, running.random))
            self._install(running, cut)
            return
        gateway = fault.member
        assert gateway is not None
        for graph in self._graphs():
            graph.dead_relays[gateway] = graph.dead_relays.get(gateway, 0) + 1
            running.undo.append(lambda graph=graph: _less(graph.dead_relays, gateway))
        if gateway in ids:
            nets = world.host[gateway].nets
            for net in nets[1:] if fault.net is None else (fault.net,):
                cut = Cutting(msgspec.structs.replace(fault, net=net), world, running.random)
                others = [x for x in world.media[net].members if x != gateway]
                cut.pairs = frozenset((a, b) for x in others for a, b in ((gateway, x), (x, gateway)))
                self._install(running, cut)

    # -------------------------------------------------------------------------------------------------------- process

    def _host(self, running: Running) -> Host:
        assert running.member is not None
        return self.world.host[running.member]

    def _back(self, host: Host, down_ms: float, disk: bool) -> None:
        """Start it again after a while, unless it is away for good by then."""

        def back() -> None:
            core = self.world.scenario.core
            if self.healed_at is None or self.world.scenario.heal_ms is None or not core or host.id in core:
                self.world.restart(host, disk)

        self.after(round(down_ms * MS), back)

    def _crash(self, running: Running, fault: f.Crash) -> None:
        world, host = self.world, self._host(running)

        def then() -> None:
            if fault.down_ms is not None:
                self._back(host, fault.down_ms, fault.disk)
            if not running.ended:
                self._finish(running)

        if fault.actions is None and not fault.on:
            world.crash(host)
            then()
        elif not host.up:
            self._finish(running)
        else:
            trap = Trap(fault.actions, fault.on, None, then)
            self._set_trap(running, host, trap)

    def _set_trap(self, running: Running, host: Host, trap: Trap) -> None:
        world = self.world
        host.traps.append(trap)
        self.trapped_at = world.time
        world.refresh(host)

        def disarm() -> None:
            if trap in host.traps:
                host.traps.remove(trap)
                world.refresh(host)

        running.undo.append(disarm)

    def _storm(self, running: Running, fault: f.Storm) -> None:
        world, host = self.world, self._host(running)

        def strike(left: int) -> None:
            if running.ended:
                return
            world.crash(host, "storm")
            self._back(host, fault.down_ms, fault.disk)
            if left > 1:
                self.after(round(fault.every_ms * MS), lambda: strike(left - 1))
            else:
                self._finish(running)

        strike(fault.times)

    def _pause(self, running: Running, fault: f.Pause) -> None:
        world, host = self.world, self._host(running)
        length = round(fault.for_ms * MS)

        def over() -> None:
            world.resume(host)
            if not running.ended:
                self._finish(running)

        if fault.on and host.up:
            trap = Trap(None, fault.on, length, over)
            self._set_trap(running, host, trap)
            return
        world.pause(host)
        incarnation = host.incarnation
        running.undo.append(lambda: world.resume(host) if host.incarnation == incarnation else None)
        self.after(length, over)

    def _leave(self, running: Running, fault: f.Leaving) -> None:
        world, host = self.world, self._host(running)
        if host.up and not host.left:
            world.give(host, ("leave",))
        if fault.away_ms is not None:
            self._back(host, fault.away_ms, True)
        self._finish(running)

    def _slow(self, running: Running, fault: f.Slow) -> None:
        world, host = self.world, self._host(running)
        before = host.cost
        host.cost = slower(before, fault.times, round(fault.step_us * 1000))
        world.refresh(host)

        def undo() -> None:
            host.cost = before
            world.refresh(host)

        running.undo.append(undo)

    def _drift(self, running: Running, fault: f.Drift) -> None:
        host = self._host(running)
        before = host.clock.ppm
        self._pace(host, round(fault.percent * 10_000))
        running.undo.append(lambda: self._pace(host, before))

    def _pace(self, host: Host, ppm: int) -> None:
        """Another pace: timers in the queue may come too late now, so each is put in again."""
        world = self.world
        host.clock.drift(world.time, ppm)
        world.refresh(host)
        for name, entry in host.timers.items():
            world.reset_timer(host, name, entry)

    def _clock(self, running: Running, fault: f.ClockJump) -> None:
        self._host(running).wall_ns += round(fault.by_ms * MS)
        self._finish(running)

    # ------------------------------------------------------------------------------------------------- disk, overload

    def _disk(self, running: Running, fault: f.DiskFault) -> None:
        disk = self._host(running).disk
        field, on, off = {
            "slow": ("times", fault.times, 1.0),
            "full": ("fails", "full", ""),
            "error": ("fails", "write error", ""),
            "lost": ("lost_since", self.world.time, None),
            "torn": ("torn", True, False),
            "flip": ("flip", True, False),
        }[fault.how]
        setattr(disk, field, on)
        running.undo.append(lambda: setattr(disk, field, off))

    def _burst(self, running: Running, fault: f.Burst) -> None:
        assert running.member is not None
        application = self.world.applications[running.member]
        left = fault.messages
        while left > 0:
            application.extra.append((min(fault.batch, left), fault.size))
            left -= fault.batch
        application.pump()
        self._finish(running)

    def _buffer(self, running: Running, fault: f.SmallBuffer) -> None:
        host = self._host(running)
        before = host.buffer_packets_max
        host.buffer_packets_max = fault.packets
        running.undo.append(lambda: setattr(host, "buffer_packets_max", before))

    def _consumer(self, running: Running, fault: f.Consumer) -> None:
        world, host = self.world, self._host(running)
        host.consumer = [fault.frames, 0]
        world.refresh(host)
        if host.up:
            world.give(host, ("room", fault.frames))

        def read_again() -> None:
            host.consumer = None
            world.refresh(host)
            if host.up:
                world.give(host, ("room", world.scenario.hosts.room_frames or ROOM_AGAIN))

        running.undo.append(read_again)


def _less(table: dict[Any, int], key: Any) -> None:
    table[key] -= 1
    if not table[key]:
        del table[key]
