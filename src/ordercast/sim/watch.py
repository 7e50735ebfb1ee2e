"""When a run is over: everything delivered and drained after the heal point, calm for long, or out of time.

Liveness is not judged here.  A run that stands still ends after a calm of 25 T (at least the scenario's `settle_ms`),
or, when the live members do not share one view, at its limit; the verifier says what was missing.
"""

from __future__ import annotations

from collections.abc import Callable

from ordercast.contract import TAGGER
from ordercast.registry import ProtocolInfo
from ordercast.sim.fault_plan import FaultPlan
from ordercast.sim.host import Host
from ordercast.sim.scenario import MS, Scenario
from ordercast.sim.schedule import Ended, Schedule

DRAIN_NS = 5_000 * MS  # how long queues may take to empty after the last delivery
CALM_TIMEOUTS = 25
GROUP_TIMEOUTS = 5


class Watch:
    """Looks twice per timeout T."""

    def __init__(
        self, scenario: Scenario, schedule: Schedule, hosts: dict[int, Host], plan: FaultPlan, info: ProtocolInfo
    ) -> None:
        self.scenario, self.schedule, self.plan, self.info = scenario, schedule, plan, info
        self.hosts = tuple(host for host in hosts.values() if host.id != TAGGER)
        self.every = max(1, scenario.timeout_ns // 2)
        self.limit = round(scenario.limit_ms * MS)
        self.settle = round(scenario.settle_ms * MS)
        self.calm = max(CALM_TIMEOUTS * scenario.timeout_ns, self.settle)
        self.why = ""
        self.moved = (0, 0, 0)  # messages submitted, messages delivered, views installed
        self.moved_at = 0
        self.delivered_at: int | None = None  # when everything was found delivered
        self.tell: Callable[[int], None] | None = None  # somebody waits: messages delivered so far

    def begin(self) -> None:
        self.schedule.later(self.every, self._look, None, None)
        self.schedule.later(self.limit, self._out_of_time, None, None)

    def _out_of_time(self, a: None, b: None) -> None:
        self._end("limit")

    def _look(self, a: None, b: None) -> None:
        time, healed = self.schedule.time, self.plan.healed_at
        self._measure()
        if self.tell is not None:
            self.tell(min((host.delivered for host in self.hosts if host.up), default=0))
        if not self.plan.pending() and all(host.application.idle and host.calls_nothing for host in self._live()):
            if self._delivered():
                if self.delivered_at is None:
                    self.delivered_at = time
                settled = healed is None or time - healed >= self.settle
                if settled and (self._drained() or time - self.delivered_at >= DRAIN_NS):
                    self._end("delivered")
            else:
                self.delivered_at = None
                if self._one_view() and time - max(self.moved_at, healed or 0) >= self.calm:
                    self._end("calm")
        else:
            self.delivered_at = None
        self.schedule.later(time + self.every, self._look, None, None)

    def _measure(self) -> None:
        """Whether anything moved since the last look."""
        hosts = self.hosts
        submitted = sum(host.application.submitted for host in hosts)
        moved = submitted, sum(host.delivered_all for host in hosts), sum(host.views for host in hosts)
        if moved != self.moved:
            self.moved, self.moved_at = moved, self.schedule.time

    def _end(self, why: str) -> None:
        self.why = why
        raise Ended

    def _live(self) -> list[Host]:
        """Who is up; after the heal point only the core counts."""
        core = self.scenario.core if self.scenario.heal_ms is not None and self.plan.healed_at else ()
        return [host for host in self.hosts if host.up and (not core or host.id in core)]

    def _one_view(self) -> bool:
        """Whether the live members share a view, as far as the protocol has views."""
        live = self._live()
        if not self.info.views:
            return True
        ids = tuple(host.id for host in live)
        if self.info.changes_views:
            return all(host.view == ids for host in live)
        return all(tuple(m for m in host.view if m in ids) == ids for host in live)

    def _delivered(self) -> bool:
        """Every live member has all that every live member submitted in this life."""
        live = self._live()
        if self.scenario.groups:  # who gets what is not known here: all own ones are back, and it is calm
            back = all(host.own == host.counter for host in live)
            calm = self.schedule.time - self.moved_at >= GROUP_TIMEOUTS * self.scenario.timeout_ns
            return back and calm and self._one_view()
        return self._one_view() and all(
            not sender.counter or host.last.get(sender.id) == sender.counter + 1 for host in live for sender in live
        )

    def _drained(self) -> bool:
        stacks = [host.stack for host in self._live() if host.stack is not None]
        return not any(any(stack.queues().values()) for stack in stacks)
