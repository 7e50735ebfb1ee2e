"""What an application waits for at its member: own messages to be delivered, joins and leaves of process groups."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from heapq import heappop, heappush

from ordercast.contract import GroupView
from ordercast.errors import Closed
from ordercast.live.calls import Receipt
from ordercast.types import Incarnation, MemberId

Waiter = asyncio.Future[None]
PASSED_MAX = 100_000  # runs of own messages that were not for this member; what is older is forgotten


class Awaited:
    """Of one member; each wait is a future of the event loop that joined."""

    def __init__(self, me: MemberId) -> None:
        self.me = me
        self.own = 0  # the last own message that has had its place in the order
        self._passed: list[tuple[int, int]] = []  # those of them that were not for this member: first, last, ascending
        self._forgotten = 0  # up to here it is no longer known which
        self.groups: set[str] = set()  # process groups this member is in
        self._deliveries: list[tuple[int, int, Waiter]] = []  # heap: wait for own message so-and-so
        self._regrouping: list[tuple[str, bool, Waiter]] = []  # joins and leaves on their way

    def delivery(self, counter: int) -> Waiter:
        """Until this own message has had its place; it fails if the message was not for this member there."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        if counter <= self.own:
            self._answer(counter, waiter)
        else:
            heappush(self._deliveries, (counter, id(waiter), waiter))
        return waiter

    def delivery_of(self, receipt: Receipt, incarnation: Incarnation, over: bool) -> Waiter:
        """Until an own message (of a batch: its last) has had its place."""
        last = receipt.id.counter + receipt.count - 1
        if (receipt.id.sender, receipt.id.incarnation) != (self.me, incarnation):
            raise ValueError(f"message {receipt.id} was not sent by this life of member {self.me}")
        if last > self.own and over:
            raise Closed("the group was left before the message was delivered")
        return self.delivery(last)

    def delivered(self, last: int) -> None:
        """Own messages up to this one have had their place."""
        self.own = last
        while self._deliveries and self._deliveries[0][0] <= last:
            counter, _, waiter = heappop(self._deliveries)
            if not waiter.done():
                self._answer(counter, waiter)

    def passed_by(self, first: int, last: int) -> None:
        """Own messages had their place and were not for this member, who was in none of their groups there."""
        if self._passed and self._passed[-1][1] == first - 1:
            first, _ = self._passed.pop()
        self._passed.append((first, last))
        if len(self._passed) > PASSED_MAX:
            self._forgotten = self._passed[PASSED_MAX // 2][1]
            del self._passed[: PASSED_MAX // 2 + 1]
        self.delivered(last)

    def _answer(self, counter: int, waiter: Waiter) -> None:
        k = bisect_right(self._passed, counter, key=lambda run: run[0]) - 1
        if counter <= self._forgotten:
            why = f"message {counter} is too long ago: it is no longer known whether it was delivered here"
        elif k >= 0 and counter <= self._passed[k][1]:
            why = f"message {counter} has its place, but this member was in none of its groups there"
        else:
            waiter.set_result(None)
            return
        waiter.set_exception(ValueError(why))
        waiter.exception()  # it is no fault if nobody asks any more

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
