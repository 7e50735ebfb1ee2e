"""Calls on a replicated ledger, one member's, over all lives of its process: made at their times, retried by nobody."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ordercast.contract import Setup
from ordercast.sim.ledger import Ledger
from ordercast.stack import Node, Stack
from ordercast.state.layer import State
from ordercast.state.machine import Calls
from ordercast.types import Service

if TYPE_CHECKING:
    from ordercast.sim.driver import Driver
    from ordercast.sim.host import Host

BATCH = 3  # calls that are made together, at most
SAFE = 0.7  # of the calls, where the protocol has safe delivery


class Caller:
    """`times`: when it calls, in order; `durable`: with which chance a call is; `services`: what its protocol has."""

    def __init__(
        self,
        driver: Driver,
        host: Host,
        times: Iterator[int],
        draw: random.Random,
        durable: float,
        services: tuple[Service, ...],
    ) -> None:
        self.driver, self.schedule, self.host = driver, driver.schedule, host
        self.times, self.draw, self.durable, self.services = times, draw, durable, services
        self.done = False
        self.made = 0  # calls taken, over all lives
        self.ledger = Ledger()  # of the present life
        self.reset()

    def reset(self) -> None:
        """A new life of the process, which counts its calls anew."""
        self.next = 1

    def above(self, stack: Stack, setup: Setup) -> Stack:
        """A member's stack with a replica of the ledger on top."""
        self.ledger = Ledger()
        return Stack(Node(State(self.ledger, setup, self.services, self.host.disk.own.found()), [stack.top]))

    def silent(self, host: Host) -> Caller:
        """Of another process that says it is this member; it has a replica, and calls nothing."""
        return Caller(self.driver, host, iter(()), self.draw, 0.0, self.services)

    def begin(self) -> None:
        at = next(self.times, None)
        if at is None:
            self.done = True
        else:
            self.schedule.later(max(at, self.schedule.time), self._due, None, None)

    def _due(self, a: None, b: None) -> None:
        if self.host.up and not self.host.left:
            self.driver.call(self.host, self)
        self.begin()

    def calls(self) -> Calls:
        count = self.draw.randint(1, BATCH)
        first, self.next = self.next, self.next + count
        durable = self.draw.random() < self.durable
        size = self.draw.choice((0, 20, 200))
        safe = Service.SAFE in self.services and self.draw.random() < SAFE
        return Calls(first, [bytes(size)] * count, self.schedule.time, safe, durable)

    def taken(self, refused: str) -> None:
        self.made += not refused
