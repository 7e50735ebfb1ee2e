"""How faults on hosts strike: slowness, clocks, disks, small buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ordercast.sim import faults as f
from ordercast.sim.driver import Driver
from ordercast.sim.host import CostFunction, Host, slower
from ordercast.sim.scenario import MS
from ordercast.sim.strikes.running import Acts, Overrides, Running

if TYPE_CHECKING:
    from ordercast.sim.fault_plan import FaultPlan


class HostStrikes:
    """Faults on the machine under a member.  `cost` is what the steps of each cost when all is well."""

    def __init__(self, plan: FaultPlan, driver: Driver, cost: Mapping[int, CostFunction | None]) -> None:
        self.plan, self.driver, self.cost = plan, driver, cost
        self.schedule = driver.schedule
        self._overrides = Overrides()
        self._paces: dict[int, int] = {}  # of clocks, before any fault
        self.acts: Acts = {
            f.Slow: self._slow, f.Drift: self._drift, f.ClockJump: self._clock, f.DiskFault: self._disk,
            f.SmallBuffer: self._buffer,
        }  # fmt: skip

    def _slow(self, running: Running, fault: f.Slow) -> None:
        host = running.host

        def use(cost: CostFunction | None) -> None:
            host.cost = cost
            host.refresh()

        slow = slower(self.cost[host.id], fault.times, round(fault.step_us * 1000))
        self._overrides.put(running, "cost", self.cost[host.id], slow, use)

    def _drift(self, running: Running, fault: f.Drift) -> None:
        host = running.host
        usual = self._paces.setdefault(host.id, host.clock.ppm)
        self._overrides.put(running, "pace", usual, round(fault.percent * 10_000), lambda ppm: self._pace(host, ppm))

    def _pace(self, host: Host, ppm: int) -> None:
        host.clock.drift(self.schedule.time, ppm)
        host.refresh()
        self.driver.timers.again(host)

    def _clock(self, running: Running, fault: f.ClockJump) -> None:
        running.host.wall_ns += round(fault.by_ms * MS)
        self.plan.finish(running)

    def _disk(self, running: Running, fault: f.DiskFault) -> None:
        disk = running.host.disk
        field, on, off = {
            "slow": ("times", fault.times, 1.0),
            "full": ("fails", "full", ""),
            "error": ("fails", "error", ""),
            "lost": ("lies", True, False),
            "torn": ("torn", True, False),
            "flip": ("flip", True, False),
        }[fault.how]
        self._overrides.put(running, f"disk {field}", off, on, lambda value: setattr(disk, field, value))

    def _buffer(self, running: Running, fault: f.SmallBuffer) -> None:
        host = running.host
        usual = self.plan.scenario.hosts.buffer_packets
        self._overrides.put(running, "buffer", usual, fault.packets, lambda k: setattr(host, "buffer_packets_max", k))
