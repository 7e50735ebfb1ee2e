"""What an application waits for at its member: own messages to be delivered, joins and leaves of process groups."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush

from ordercast.contract import GroupView
from ordercast.errors import Closed
from ordercast.types import MemberId

Waiter = asyncio.Future[None]


class Awaited:
    """Of one member; each wait is a future of the event loop that joined."""

    def __init__(self, me: MemberId) -> None:
        self.me = me
        self.own = 0  # last own message delivered here
        self.groups: set[str] = set()  # process groups this member is in
        self._deliveries: list[tuple[int, int, Waiter]] = []  # heap: wait for own message so-and-so
        self._regrouping: list[tuple[str, bool, Waiter]] = []  # joins and leaves on their way

    def delivery(self, counter: int) -> Waiter:
        """Until this own message is delivered."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        heappush(self._deliveries, (counter, id(waiter), waiter))
        return waiter

    def delivered(self, last: int) -> None:
        """Own messages up to this one are."""
        self.own = last
        while self._deliveries and self._deliveries[0][0] <= last:
            waiter = heappop(self._deliveries)[2]
            if not waiter.done():
                waiter.set_result(None)

    def regrouping(self, name: str, join: bool) -> Waiter:
        """Until this member is in the group, or out of it."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._regrouping.append((name, join, waiter))
        self._settle()
        return waiter

    def group_view(self, event: GroupView) -> None:
        (self.groups.add if self.me in event.members else self.groups.discard)(event.group)
        self._settle()

    def _settle(self) -> None:
        for name, join, waiter in self._regrouping:
            if (name in self.groups) is join and not waiter.done():
                waiter.set_result(None)
        self._regrouping = [each for each in self._regrouping if not each[2].done()]

    def close(self) -> None:
        """The group was left: nothing of it will come."""
        before = "the group was left before the message was delivered"
        waits = [(waiter, before) for *_, waiter in self._deliveries]
        waits += [(waiter, "the group was left") for *_, waiter in self._regrouping]
        for waiter, why in waits:
            if not waiter.done():
                waiter.set_exception(Closed(why))
                waiter.exception()  # it is no fault if nobody asks any more
        self._deliveries.clear()
        self._regrouping.clear()
