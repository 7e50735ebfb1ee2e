"""How faults on applications strike: bursts, one that does not read, one that leaves a process group for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.sim import faults as f
from ordercast.sim.driver import Driver
from ordercast.sim.scenario import MS
from ordercast.sim.strikes.running import Acts, Overrides, Running

if TYPE_CHECKING:
    from ordercast.sim.fault_plan import FaultPlan

ROOM_AGAIN = 65_535  # frames an application takes that reads again and has no limit of its own


class LoadStrikes:
    """Faults on what applications do."""

    def __init__(self, plan: FaultPlan, driver: Driver) -> None:
        self.plan, self.driver = plan, driver
        self._overrides = Overrides()
        self.acts: Acts = {f.Burst: self._burst, f.Consumer: self._consumer, f.Regroup: self._regroup}

    def _burst(self, running: Running, fault: f.Burst) -> None:
        application = running.host.application
        whole, rest = divmod(fault.messages, fault.batch)
        application.more(*[(fault.batch, fault.size)] * whole, *[(rest, fault.size)] * (rest > 0))
        self.plan.finish(running)

    def _consumer(self, running: Running, fault: f.Consumer) -> None:
        host = running.host
        usual = self.plan.scenario.hosts.room_frames or ROOM_AGAIN

        def use(frames: int | None) -> None:
            host.consumer = None if frames is None else [frames, 0]
            host.refresh()
            if host.up:
                self.driver.give(host, ("room", usual if frames is None else frames))

        self._overrides.put(running, "consumer", None, fault.frames, use)

    def _regroup(self, running: Running, fault: f.Regroup) -> None:
        host, application = running.host, running.host.application
        if host.up and len(application.groups) > 1:  # it always stays in its first one, to which it submits meanwhile
            group = running.random.choice(application.groups[1:])
            application.away_from(group)
            self.driver.give(host, ("regroup", group, False))
            if fault.away_ms is not None:
                self.plan.after(round(fault.away_ms * MS), lambda: application.back_in(group))
        self.plan.finish(running)
