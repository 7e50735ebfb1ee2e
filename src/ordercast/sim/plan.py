"""The plan of a run's faults: when each sets in and ends, when the world heals, and what the trace says of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.contract import Action, Transmit
from ordercast.sim import faults as f
from ordercast.sim.links import Cutting, Filter, Remembering, kinds_of
from ordercast.sim.scenario import MS
from ordercast.trace.schema import Kind

if TYPE_CHECKING:
    from ordercast.sim.world import World

CLOSING_TIMEOUTS = 4  # after the heal point the core says a few words more
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


class Plan:
    """Keeps the times; subclasses know how each class of faults strikes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.counts: Counter[str] = Counter()
        self.running: list[Running] = []
        self.waiting = 0  # onsets, ends and returns that are still to come
        self.trapped_at = 0  # when the last trap was set
        self.trap_ns = TRAP_TIMEOUTS * world.timeout_ns
        self.healed_at: int | None = None
        self.stable = False

    def strike(self, running: Running) -> None:
        """Let a fault act; what ends it goes to `running.undo`."""
        raise NotImplementedError

    def begin(self) -> None:
        world, scenario = self.world, self.world.scenario
        for number, fault in enumerate(scenario.faults):
            running = Running(fault, number, world.generator(f"fault/{number}"))
            if isinstance(fault, f.Replay):
                memory = Remembering(fault, world, running.random)
                running.filters.append(memory)
                world.memories.append(memory)
                world.slow = True
            self._soon(fault.at_ms, partial(self._begin, running))
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
        if self.world.scenario.heal_ms is None and any(getattr(r.fault, "lasting", False) for r in self.running):
            return True  # a fault that never ends is watched to the limit
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
        self.strike(running)
        if fault.until_ms is not None:
            self.after(max(0, round(fault.until_ms * MS) - self.world.time), lambda: self.finish(running))

    def finish(self, running: Running) -> None:
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
        if getattr(running.fault, "lasting", False):
            detail["delay_ns"] = self.world.delay_ns
        if state == "off" and running.filters:
            detail["hits"] = sum(filter.hits for filter in running.filters)
        world = self.world
        world.log.event(world.time, world.time, Kind.FAULT, detail=detail | {"fields": fields})

    def end(self) -> None:
        """The run is over: what still acts is written with its count."""
        for running in self.running:
            self._write(running, "off")

    # --------------------------------------------------------------------------------------------------------- healing

    def _heal(self) -> None:
        """All ends but what lasts; the core is up for good, the others are not heard of any more."""
        world, scenario = self.world, self.world.scenario
        core = tuple(sorted(scenario.core)) or scenario.ids
        for running in list(self.running):
            if not getattr(running.fault, "lasting", False):
                self.finish(running)
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
        world.log.event(world.time, world.time, Kind.STABLE, members=core, delay_ns=world.delay_ns)
