"""The application of `[load] regime = "sharing"`: senders share units of a resource (workload/sharing.py).

Operations and time-outs are counted among the notes of a run, as `operation` and `operation expired`.  What a message
says is kept beside it, by its id, so that payloads are those by which deliveries are judged.

`violating` plants what a quasi order does: such a share of the requests is taken one place too late, behind the next
request, by half of the sites.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ordercast.sim.application import Application
from ordercast.types import Batch, Service
from ordercast.workload.sharing import Allocation, Hold, Message, Release, Request, Site, Start, Step

if TYPE_CHECKING:
    from ordercast.sim.driver import Driver
    from ordercast.sim.host import Host
    from ordercast.sim.scenario import Scenario

MS = 1_000_000
AGAIN = 10  # time-outs after which a request that nobody served is taken for lost
Said = dict[tuple[int, int, int], Message]  # by sender, incarnation, counter


class Sharing(Application):
    """One site; a member that is no sender only listens."""

    def __init__(
        self, scenario: Scenario, driver: Driver, host: Host, service: Service, said: Said, groups: tuple[str, ...]
    ) -> None:
        self.table, self.said, self.talkers = scenario.load.sharing, said, scenario.talkers
        self.seed, self.size = scenario.seed, min(scenario.sizes)
        self.chance = scenario.generator(f"load/{host.id}")
        self.start_ns, self.limit = round(scenario.load.start_ms * MS), scenario.messages // len(self.talkers)
        super().__init__(scenario, driver, host, iter(()), service, None, groups)

    def reset(self) -> None:
        """A new life begins with nothing: what it controlled is lost."""
        super().reset()
        first = self.submitted == 0
        sharing = self.host.id in self.talkers and first
        self.site = Site(self.host.id, self.talkers, self.table.units) if sharing else None
        self.saying: list[Message | None] = []  # of what is still to be submitted; None: a burst of a fault
        self.late: tuple[int, Request] | None = None  # a request that waits for the next one
        self.begun = False

    # -------------------------------------------------------------------------------------------------------- saying

    def more(self, *extra: tuple[int, int]) -> None:
        self.saying += [None] * len(extra)
        super().more(*extra)

    def _say(self, steps: Iterable[Step]) -> None:
        site, later = self.site, self._later
        assert site is not None
        for step in steps:
            if type(step) is Start:
                self.driver.notes["operation"] += 1
                later(self.table.work_ms * self.chance.uniform(0.5, 1.5), self._finished)
            elif type(step) is Hold:
                later(self.table.patience_ms, self._expired)
            else:
                assert isinstance(step, Request | Allocation | Release)
                self.saying.append(step)
                self.extra.append((1, self.size))
        self.pump()

    def pump(self) -> None:
        if self.site is not None and not self.begun:
            self.begun = True
            self._later(self.chance.uniform(0, self.table.work_ms) + self.start_ns / MS, self._next)
        super().pump()

    def accepted(self) -> None:
        super().accepted()
        host, message = self.host, self.saying.pop(0)
        if message is not None:
            self.said[host.id, host.incarnation, host.counter] = message

    def _later(self, ms: float, call: Callable[[int, int], None]) -> None:
        number = self.site.number if self.site is not None else 0
        self.schedule.later(self.schedule.time + round(ms * MS), call, self.host.incarnation, number)

    # ---------------------------------------------------------------------------------------------------- operations

    def _next(self, incarnation: int, _: int) -> None:
        """The next operation, if there is any left."""
        if incarnation == self.host.incarnation and self.site is not None and self.submitted < self.limit:
            low, high = self.table.need
            self._request(self.chance.randint(low, high))

    def _request(self, need: int) -> None:
        assert self.site is not None
        steps = self.site.request(need)
        self._later(AGAIN * self.table.patience_ms, self._expired)
        self._say(steps)

    def _finished(self, incarnation: int, _: int) -> None:
        if incarnation == self.host.incarnation and self.site is not None:
            self._say(self.site.finished())
            self._next(incarnation, 0)

    def _expired(self, incarnation: int, number: int) -> None:
        if incarnation == self.host.incarnation and self.site is not None:
            need, steps = self.site.need, self.site.expired(number)
            if steps:
                self.driver.notes["operation expired"] += 1
                self._say(steps)
                self._request(need)

    # ------------------------------------------------------------------------------------------------------- hearing

    def hears(self, batches: list[Batch]) -> None:
        for batch in batches if self.site is not None else ():
            for counter in range(batch.counter, batch.counter + batch.count):
                message = self.said.get((batch.sender, batch.incarnation, counter))
                if message is not None:
                    self._take(batch.sender, message)

    def _take(self, sender: int, message: Message) -> None:
        assert self.site is not None
        if type(message) is not Request:
            self._say(self.site.heard(sender, message))
            return
        late, self.late = self.late, None
        if late is None and self._is_late(sender, message.number):
            self.late = sender, message
            return
        self._say(self.site.heard(sender, message))
        if late is not None:
            self._say(self.site.heard(*late))

    def _is_late(self, sender: int, number: int) -> bool:
        """The same requests at half of the sites."""
        if not self.table.violating:
            return False
        draw = random.Random(f"{self.seed}/late/{sender}/{number}")
        return draw.random() < self.table.violating and self.host.id in draw.sample(
            self.talkers, len(self.talkers) // 2
        )

    @property
    def idle(self) -> bool:
        away = self.host.left or not self.host.up
        spent = self.site is None or self.submitted >= self.limit
        return away or (spent and not self.extra and not self.asked)
