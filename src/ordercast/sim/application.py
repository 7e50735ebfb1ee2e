"""The application on each member: submits what its source says, waits when it is refused, reads what is delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.types import Batch, Service, Submission
from ordercast.workload.payload import payload
from ordercast.workload.sources import ANSWERING, Submissions

if TYPE_CHECKING:
    from ordercast.sim.driver import Driver
    from ordercast.sim.host import Host
    from ordercast.sim.scenario import Scenario
    from ordercast.sim.schedule import Schedule


class Turns:
    """One message at a time: whose turn it is."""

    def __init__(self, schedule: Schedule, talkers: list[Host]) -> None:
        self.schedule, self.talkers = schedule, talkers
        self.at = 0

    @property
    def current(self) -> Host:
        return self.talkers[self.at]

    def pass_on(self) -> None:
        """To the next who has something to say."""
        for _ in self.talkers:
            self.at = (self.at + 1) % len(self.talkers)
            application = self.current.application
            if not application.idle:
                self.schedule.later(self.schedule.time, lambda a, b: a.pump(), application, None)
                return


class Application:
    """One member's, over all lives of its process."""

    def __init__(
        self,
        scenario: Scenario,
        driver: Driver,
        host: Host,
        source: Submissions,
        service: Service,
        turns: Turns | None,
        groups: tuple[str, ...],
    ) -> None:
        self.driver, self.schedule, self.host, self.source = driver, driver.schedule, host, source
        self.groups = groups  # process groups it is in, and submits to; none: everything goes to everybody
        self.draw = scenario.generator(f"groups/{host.id}")
        self.shares = {group.name: group.share for group in scenario.named_groups}
        self.pure = host.id in scenario.pure
        self.answering = scenario.load.regime in ANSWERING  # deliveries bring on the next submission
        self.window, self.turns, self.service = scenario.load.window, turns, service
        self.retry_ns = scenario.timeout_ns // 4
        self.next: tuple[int, int, int] | None = None
        self.extra: list[tuple[int, int]] = []  # bursts of a fault: (messages, bytes) ahead of the source
        self.done = False
        self.submitted = 0  # messages accepted, over all lives
        self.reset()

    def reset(self) -> None:
        """A new life of the process."""
        self.asked = False  # a submission is on its way into the core
        self.pumping = False
        self.blocked = False  # refused; waits for room
        self.halted = False  # the view is not primary
        self.closed = False  # it is leaving: nothing more is taken
        self.woken = False  # a call at the next submission's time is in the queue
        self.joined = not self.groups

    def more(self, *extra: tuple[int, int]) -> None:
        """Submit these (messages, bytes) as well, ahead of the source; a pure gateway has nothing to say."""
        if not self.pure:
            self.extra += extra
            self.pump()

    def pump(self) -> None:
        """Submit all that is due now; what is delivered at once, from inside, goes on in the same loop."""
        if self.pumping:
            return
        self.pumping = True
        try:
            self._pump()
        finally:
            self.pumping = False

    def _pump(self) -> None:
        host = self.host
        while host.up and self.joined and not self.asked and not self.blocked and not host.left:
            if self.extra:
                self.asked = True
                self.driver.submit(host, self)
                continue
            if self.next is None:
                self.next = next(self.source, None)
                if self.next is None:
                    self.done = True
                    return
            if self.next[0] > self.schedule.time:
                if not self.woken:
                    self.woken = True
                    self.schedule.later(self.next[0], self._wake, host.incarnation, 0)
                return
            if not self._may():
                return
            self.asked = True
            self.driver.submit(host, self)

    def _wake(self, incarnation: int, _: int) -> None:
        if incarnation == self.host.incarnation:
            self.woken = False
            self.pump()

    def _may(self) -> bool:
        assert self.next is not None
        host, count = self.host, self.next[1]
        outstanding = host.counter - host.own
        if self.turns is not None:
            return self.turns.current is host and outstanding == 0
        return not self.answering or outstanding == 0 or outstanding + count <= self.window

    def submission(self) -> Submission:
        """The bytes of what is asked for, now that the counters before it are known."""
        if self.extra:
            count, size = self.extra[0]
        else:
            assert self.next is not None
            _, count, size = self.next
        host = self.host
        first = host.counter + 1
        payloads = [payload(host.id, host.incarnation, first + k, size) for k in range(count)]
        return Submission(payloads, self.service, self._address())

    def _address(self) -> tuple[str, ...]:
        """One of the groups it is in, by their shares if they are named; else evenly, now and then two."""
        if not self.groups:
            return ()
        if self.shares:
            return tuple(self.draw.choices(self.groups, [self.shares[name] for name in self.groups]))
        return tuple(
            sorted(self.draw.sample(self.groups, 2 if len(self.groups) > 1 and self.draw.random() < 0.2 else 1))
        )

    def away_from(self, group: str) -> None:
        self.groups = tuple(name for name in self.groups if name != group)

    def back_in(self, group: str) -> None:
        if group not in self.groups:
            self.groups = (*self.groups, group)
            if self.host.up and self.joined:
                self.driver.give(self.host, ("regroup", group, True))

    def join(self) -> None:
        """The first view of a life in which it can: join the process groups, then submit."""
        for group in self.groups:
            self.driver.give(self.host, ("regroup", group, True))
        self.joined = True
        self.pump()

    def accepted(self) -> None:
        self.asked = False
        if self.extra:
            del self.extra[0]
        else:
            self.next = None

    def refused(self, why: str) -> None:
        """Wait until the core says there is room, or give up what can never be taken; else try again a little later."""
        self.asked = False
        if why in ("overloaded", "no view", "not primary"):
            self.blocked = True
        elif why in ("too large", "service", "empty"):
            self.accepted()
        elif why == "closed":
            self.blocked = self.closed = True  # for the rest of this life
        else:
            self.blocked = True
            self.schedule.later(self.schedule.time + self.retry_ns, self._retry, self.host.incarnation, 0)

    def queues(self) -> dict[str, int]:
        """What still waits here because the core had no room for it."""
        return {"refused": 1} if self.blocked and self.host.up and not self.closed else {}

    def _retry(self, incarnation: int, _: int) -> None:
        if incarnation == self.host.incarnation:
            self.room()

    def room(self) -> None:
        self.blocked = False
        self.pump()

    def own_delivered(self) -> None:
        """An own message came back: the next one may go."""
        if self.turns is not None:
            if self.turns.current is self.host and self.host.own >= self.host.counter:
                self.turns.pass_on()
        else:
            self.pump()

    def hears(self, batches: list[Batch]) -> None:
        """What was delivered, if its host listens."""

    def absent(self) -> None:
        """Its process crashed: nobody waits for its turn."""
        if self.turns is not None and self.turns.current is self.host:
            self.turns.pass_on()

    @property
    def idle(self) -> bool:
        """Nothing left to submit, for good or as long as this process is away, or its view is not primary."""
        away = self.host.left or not self.host.up
        return (self.done and not self.extra and not self.asked) or away or self.halted


def service_of(word: str) -> Service:
    return next(service for service in Service if service.word == word)
