"""How faults on processes strike: crashes in and between handlers, pauses, storms, leaving, another timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.contract import Action
from ordercast.sim import faults as f
from ordercast.sim.host import Host
from ordercast.sim.lives import Lives
from ordercast.sim.scenario import MS
from ordercast.sim.strikes.running import Acts, Overrides, Running
from ordercast.sim.traps import Trap

if TYPE_CHECKING:
    from ordercast.sim.fault_plan import FaultPlan

RETRY_MS = 10.0  # until a process that could not start is started again
LOOK_MS = 10.0  # from one look whether a process that leaves is gone to the next


class ProcessStrikes:
    """Faults on lives of members."""

    def __init__(self, plan: FaultPlan, lives: Lives) -> None:
        self.plan, self.lives = plan, lives
        self._overrides = Overrides()
        self.acts: Acts = {
            f.Crash: self._crash, f.Storm: self._storm, f.OtherTimeout: self._other_timeout, f.Pause: self._pause,
            f.Leaving: self._leave, f.Claimant: self._claimant,
        }  # fmt: skip

    def _back(self, host: Host, down_ms: float, disk: bool) -> None:
        """Start it again after a while, unless it is away for good by then."""

        def back() -> None:
            if not self.plan.away_for_good(host):
                self._restart(host, disk)

        self.plan.after(round(down_ms * MS), back)

    def _restart(self, host: Host, disk: bool = True) -> None:
        """A process that cannot store its incarnation ends at once; somebody starts it again."""
        self.lives.restart(host, disk)
        if not host.up:
            self._back(host, RETRY_MS, True)

    def _crash(self, running: Running, fault: f.Crash) -> None:
        host = running.host

        def then() -> None:
            if fault.down_ms is not None:
                self._back(host, fault.down_ms, fault.disk)
            self.plan.finish(running)

        if fault.actions is None and not fault.on:
            self.lives.crash(host)
            then()
        elif not host.up:
            self.plan.finish(running)
        else:
            dies = Trap(fault.actions, fault.on, lambda rest: self.lives.crash_inside(host, then), fault.nth)
            self._set_trap(running, dies)

    def _set_trap(self, running: Running, trap: Trap) -> None:
        host = running.host
        host.traps.append(trap)
        host.refresh()
        self.plan.trapped()

        def disarm() -> None:
            if trap in host.traps:
                host.traps.remove(trap)
                host.refresh()

        running.undo.append(disarm)

    def _storm(self, running: Running, fault: f.Storm) -> None:
        def strike(left: int) -> None:
            if running.ended:
                return
            self.lives.crash(running.host, "storm")
            self._back(running.host, fault.down_ms, fault.disk)
            if left > 1:
                self.plan.after(round(fault.every_ms * MS), lambda: strike(left - 1))
            else:
                self.plan.finish(running)

        strike(fault.times)

    def _other_timeout(self, running: Running, fault: f.OtherTimeout) -> None:
        host = running.host

        def use(times: float) -> None:
            host.timeouts = times
            if host.up:
                self.lives.crash(host, "another timeout")
                self._restart(host)

        self._overrides.put(running, "timeout", 1.0, fault.times, use)

    def _claimant(self, running: Running, fault: f.Claimant) -> None:
        host, lives = running.host, self.lives
        carrier = lives.driver.carrier
        if host.id in carrier.seconds:  # there is one already
            self.plan.finish(running)
            return
        second = lives.second(host)

        def over() -> None:
            lives.crash(second, "claimant")
            carrier.unseat(host.id)
            if host.id in lives.outdone:
                lives.outdone.discard(host.id)
                self._back(host, RETRY_MS, True)

        running.undo.append(over)

    def _pause(self, running: Running, fault: f.Pause) -> None:
        host, lives, length = running.host, self.lives, round(fault.for_ms * MS)

        def over() -> None:
            lives.resume(host)
            self.plan.finish(running)

        def spring(rest: list[Action]) -> None:
            lives.pause_inside(host, rest)
            self.plan.after(length, over)

        if fault.on and host.up:
            self._set_trap(running, Trap(None, fault.on, spring))
            return
        lives.pause(host)
        incarnation = host.incarnation
        running.undo.append(lambda: lives.resume(host) if host.incarnation == incarnation else None)
        self.plan.after(length, over)

    def _leave(self, running: Running, fault: f.Leaving) -> None:
        """It takes its time; who has not left at the heal point is stopped on the way."""
        host, lives, since = running.host, self.lives, self.plan.schedule.time
        incarnation = host.incarnation

        def leaves() -> bool:
            return host.up and host.incarnation == incarnation

        def look() -> None:
            if running.ended:
                return
            if leaves():
                self.plan.after(round(LOOK_MS * MS), look)
                return
            if fault.away_ms is not None:
                self._back(host, max(0.0, fault.away_ms - (self.plan.schedule.time - since) / MS), True)
            self.plan.finish(running)

        if host.up and not host.left:
            within = fault.within_ms
            lives.driver.give(host, ("leave", None if within is None else host.clock.now(since) + round(within * MS)))
        running.undo.append(lambda: lives.crash(host, "still leaving") if leaves() else None)
        look()
