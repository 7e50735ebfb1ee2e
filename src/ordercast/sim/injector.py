"""The fault injector: how each class of a scenario's faults acts on members, disks and applications."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ordercast.sim import faults as f
from ordercast.sim.host import CostFunction, Host, slower
from ordercast.sim.link_strikes import LinkStrikes
from ordercast.sim.links import FILTERS
from ordercast.sim.plan import Running, Trap
from ordercast.sim.scenario import MS

if TYPE_CHECKING:
    from ordercast.sim.world import World

RETRY_MS = 10.0  # until a process that could not start is started again
ROOM_AGAIN = 65_535  # frames an application takes that reads again and has no limit of its own


class Injector(LinkStrikes):
    """Plays a scenario's faults."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._overrides: dict[tuple[int | None, str], list[tuple[Running, Any]]] = {}
        self._paces: dict[int, int] = {}  # of clocks, before any fault
        self._on: dict[type[f.Fault], Callable[[Running, Any], None]] = {
            f.Swizzle: self.swizzle,
            f.Replay: self.replay,
            f.Cut: self.cut,
            f.Partition: self.partition,
            f.Crash: self._crash,
            f.Storm: self._storm,
            f.OtherTimeout: self._other_timeout,
            f.Pause: self._pause,
            f.Leaving: self._leave,
            f.Regroup: self._regroup,
            f.Slow: self._slow,
            f.Drift: self._drift,
            f.ClockJump: self._clock,
            f.DiskFault: self._disk,
            f.Burst: self._burst,
            f.SmallBuffer: self._buffer,
            f.Consumer: self._consumer,
        }

    def strike(self, running: Running) -> None:
        fault = running.fault
        act = self._on.get(type(fault))
        if act is not None:
            act(running, fault)
        else:
            assert isinstance(fault, f.LinkFault)
            self.install(running, FILTERS[type(fault)](fault, self.world, running.random))

    # ------------------------------------------------------------------------------------------------------- processes

    def _host(self, running: Running) -> Host:
        assert running.member is not None
        return self.world.host[running.member]

    def _back(self, host: Host, down_ms: float, disk: bool) -> None:
        """Start it again after a while, unless it is away for good by then."""

        def back() -> None:
            core = self.world.scenario.core
            if self.healed_at is None or self.world.scenario.heal_ms is None or not core or host.id in core:
                self._restart(host, disk)

        self.after(round(down_ms * MS), back)

    def _restart(self, host: Host, disk: bool = True) -> None:
        """A process that cannot store its incarnation ends at once; somebody starts it again."""
        self.world.restart(host, disk)
        if not host.up:
            self._back(host, RETRY_MS, True)

    def _crash(self, running: Running, fault: f.Crash) -> None:
        world, host = self.world, self._host(running)

        def then() -> None:
            if fault.down_ms is not None:
                self._back(host, fault.down_ms, fault.disk)
            if not running.ended:
                self.finish(running)

        if fault.actions is None and not fault.on:
            world.crash(host)
            then()
        elif not host.up:
            self.finish(running)
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
                self.finish(running)

        strike(fault.times)

    def _other_timeout(self, running: Running, fault: f.OtherTimeout) -> None:
        host = self._host(running)

        def use(times: float) -> None:
            host.timeouts = times
            if host.up:
                self.world.crash(host, "another timeout")
                self._restart(host)

        self._override(running, "timeout", 1.0, fault.times, use)

    def _pause(self, running: Running, fault: f.Pause) -> None:
        world, host = self.world, self._host(running)
        length = round(fault.for_ms * MS)

        def over() -> None:
            world.resume(host)
            if not running.ended:
                self.finish(running)

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
        self.finish(running)

    def _regroup(self, running: Running, fault: f.Regroup) -> None:
        world, host = self.world, self._host(running)
        groups = world.applications[host.id].groups
        if host.up and len(groups) > 1:  # it always stays in its first one, to which it submits meanwhile
            group = running.random.choice(groups[1:])
            world.applications[host.id].away_from(group)
            world.give(host, ("regroup", group, False))
            if fault.away_ms is not None:
                self.after(round(fault.away_ms * MS), lambda: world.applications[host.id].back_in(group))
        self.finish(running)

    # ------------------------------------------------------------------------------------------------ slowness, clocks

    def _override(self, running: Running, what: str, usual: Any, value: Any, use: Callable[[Any], None]) -> None:
        """Use a value while the fault lasts; of several faults on one thing the latest that still lasts counts."""
        values = self._overrides.setdefault((running.member, what), [])
        values.append((running, value))
        use(value)

        def undo() -> None:
            values.remove((running, value))
            use(values[-1][1] if values else usual)

        running.undo.append(undo)

    def _slow(self, running: Running, fault: f.Slow) -> None:
        world, host = self.world, self._host(running)

        def use(cost: CostFunction | None) -> None:
            host.cost = cost
            world.refresh(host)

        self._override(running, "cost", world.cost, slower(world.cost, fault.times, round(fault.step_us * 1000)), use)

    def _drift(self, running: Running, fault: f.Drift) -> None:
        host = self._host(running)
        usual = self._paces.setdefault(host.id, host.clock.ppm)
        self._override(running, "pace", usual, round(fault.percent * 10_000), lambda ppm: self._pace(host, ppm))

    def _pace(self, host: Host, ppm: int) -> None:
        """Another pace: timers in the queue may come too late now, so each is put in again."""
        world = self.world
        host.clock.drift(world.time, ppm)
        world.refresh(host)
        for name, entry in host.timers.items():
            world.reset_timer(host, name, entry)

    def _clock(self, running: Running, fault: f.ClockJump) -> None:
        self._host(running).wall_ns += round(fault.by_ms * MS)
        self.finish(running)

    # -------------------------------------------------------------------------------------------------- disk, overload

    def _disk(self, running: Running, fault: f.DiskFault) -> None:
        disk = self._host(running).disk
        field, on, off = {
            "slow": ("times", fault.times, 1.0),
            "full": ("fails", "full", ""),
            "error": ("fails", "error", ""),
            "lost": ("lies", True, False),
            "torn": ("torn", True, False),
            "flip": ("flip", True, False),
        }[fault.how]
        self._override(running, f"disk {field}", off, on, lambda value: setattr(disk, field, value))

    def _burst(self, running: Running, fault: f.Burst) -> None:
        assert running.member is not None
        application = self.world.applications[running.member]
        left = fault.messages
        while left > 0:
            application.extra.append((min(fault.batch, left), fault.size))
            left -= fault.batch
        application.pump()
        self.finish(running)

    def _buffer(self, running: Running, fault: f.SmallBuffer) -> None:
        host, usual = self._host(running), self.world.scenario.hosts.buffer_packets
        self._override(running, "buffer", usual, fault.packets, lambda k: setattr(host, "buffer_packets_max", k))

    def _consumer(self, running: Running, fault: f.Consumer) -> None:
        world, host = self.world, self._host(running)
        usual = world.scenario.hosts.room_frames or ROOM_AGAIN

        def use(frames: int | None) -> None:
            host.consumer = None if frames is None else [frames, 0]
            world.refresh(host)
            if host.up:
                world.give(host, ("room", usual if frames is None else frames))

        self._override(running, "consumer", None, fault.frames, use)
