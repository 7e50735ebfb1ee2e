"""The plan of a run's faults: when each sets in and ends, when the world heals, and what the trace says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from ordercast.contract import TAGGER
from ordercast.sim import faults as f
from ordercast.sim.host import CostFunction, Host
from ordercast.sim.lives import Lives
from ordercast.sim.scenario import MS
from ordercast.sim.strikes.hosts import HostStrikes
from ordercast.sim.strikes.links import LinkStrikes
from ordercast.sim.strikes.load import LoadStrikes
from ordercast.sim.strikes.processes import ProcessStrikes
from ordercast.sim.strikes.running import Running
from ordercast.trace.schema import Kind

CLOSING_TIMEOUTS = 4  # after the heal point the core says a few words more
TRAP_TIMEOUTS = 25  # how long a run waits for a trap to spring


class FaultPlan:
    """Keeps the times; how each class of faults strikes, its strikers know."""

    def __init__(self, lives: Lives, cost: Mapping[int, CostFunction | None]) -> None:
        driver = lives.driver
        self.lives, self.carrier = lives, driver.carrier
        self.scenario, self.schedule, self.journal = lives.scenario, lives.schedule, lives.journal
        self.hosts = tuple(self.carrier.hosts.values())
        self.links = LinkStrikes(self, self.carrier)
        strikers = self.links, ProcessStrikes(self, lives), HostStrikes(self, driver, cost), LoadStrikes(self, driver)
        self._acts = {fault: act for striker in strikers for fault, act in striker.acts.items()}
        self.counts: Counter[str] = Counter()
        self.running: list[Running] = []
        self.waiting = 0  # onsets, ends and returns that are still to come
        self._trapped_at = 0  # when the last trap was set
        self._trap_ns = TRAP_TIMEOUTS * self.scenario.timeout_ns
        self.healed_at: int | None = None
        self.stable = False

    def begin(self) -> None:
        scenario = self.scenario
        for number, fault in enumerate(scenario.faults):
            running = Running(fault, number, scenario.generator(f"fault/{number}"))
            if isinstance(fault, f.Replay):
                self.links.memorise(running, fault)
            self.after(round(fault.at_ms * MS), partial(self._begin, running))
        if scenario.heal_ms is not None:
            self.after(round(scenario.heal_ms * MS), self._heal)
        self._perhaps_stable()

    def after(self, ns: int, call: Callable[[], None]) -> None:
        """Something the run must not end before, so long after now."""
        self.waiting += 1
        self.schedule.later(self.schedule.time + ns, self._now, call, None)

    def _now(self, call: Callable[[], None], _: None) -> None:
        self.waiting -= 1
        call()
        self._perhaps_stable()

    def trapped(self) -> None:
        """A trap was set."""
        self._trapped_at = self.schedule.time

    def pending(self) -> bool:
        """Whether something planned is still to come; a trap is waited for a while only, it may never spring."""
        if self.waiting:
            return True
        if self.scenario.heal_ms is None and any(running.lasting for running in self.running):
            return True  # a fault that never ends is watched to the limit
        waits = self.schedule.time < self._trapped_at + self._trap_ns
        return waits and any(host.traps for host in self.hosts)

    def _begin(self, running: Running) -> None:
        fault = running.fault
        if self.healed_at is not None and not running.lasting:
            return
        if isinstance(fault, f.MemberFault):
            member = running.random.choice(self.scenario.ids) if fault.member is None else fault.member
            running.struck = self.carrier.hosts[member]
        self.running.append(running)
        self.counts[fault.word] += 1
        self._write(running, "on")
        self._acts[type(fault)](running, fault)
        if fault.until_ms is not None:
            self.after(max(0, round(fault.until_ms * MS) - self.schedule.time), lambda: self.finish(running))

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
        if running.struck is not None:
            detail["member"] = running.struck.id
        if running.lasting:
            detail["delay_ns"] = self.carrier.delay_ns
        if state == "off" and running.filters:
            detail["hits"] = sum(filter.hits for filter in running.filters)
        self.journal.event(Kind.FAULT, detail=detail | {"fields": fields})

    def end(self) -> None:
        """The run is over: what still acts is written with its count."""
        for running in self.running:
            self._write(running, "off")

    # --------------------------------------------------------------------------------------------------------- healing

    def _heal(self) -> None:
        """All ends but what lasts; the core is up for good, the others are not heard of any more."""
        scenario, lives = self.scenario, self.lives
        core = tuple(sorted(scenario.core)) or scenario.ids
        for running in list(self.running):
            if not running.lasting:
                self.finish(running)
        self.healed_at = self.schedule.time
        self.carrier.lose_stragglers()
        for host in self.hosts:
            host.traps.clear()
            host.refresh()
        away = [host for host in self.hosts if host.id not in core and host.id != TAGGER]
        if scenario.away == "crashed":
            for host in away:
                lives.crash(host, "away for good")
        elif away:
            self.links.cut_off([host.id for host in away], core)
        for host in self.hosts:
            if host.id in core or host.id == TAGGER:
                lives.resume(host)
                lives.restart(host)
        self._say_stable(core)
        if scenario.closing:
            self.after(CLOSING_TIMEOUTS * scenario.timeout_ns, lambda: self._close(core))

    def away_for_good(self, host: Host) -> bool:
        core = self.scenario.core
        return self.healed_at is not None and self.scenario.heal_ms is not None and bool(core) and host.id not in core

    def _close(self, core: tuple[int, ...]) -> None:
        """The core submits its closing messages, in turn."""
        core = tuple(id for id in core if id not in self.scenario.pure) or core
        for k in range(self.scenario.closing):
            self.carrier.hosts[core[k % len(core)]].application.more((1, min(self.scenario.sizes)))

    def _perhaps_stable(self) -> None:
        """Without a heal point the world is stable when nothing acts and nothing is to come."""
        if self.stable or self.waiting or self.scenario.heal_ms is not None:
            return
        if not self.running and not any(host.paused or host.traps for host in self.hosts):
            self._say_stable(tuple(host.id for host in self.hosts if host.id != TAGGER and host.up and not host.left))

    def _say_stable(self, core: tuple[int, ...]) -> None:
        self.stable = True
        if self.healed_at is None and self.scenario.faults:
            self.healed_at = self.schedule.time
        self.journal.event(Kind.STABLE, members=core, delay_ns=self.carrier.delay_ns)
