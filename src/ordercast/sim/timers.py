"""Timers of the members' stacks, by each member's own clock, in the one queue of virtual time."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush

from ordercast.sim.host import Host
from ordercast.sim.inputs import Item
from ordercast.sim.schedule import Schedule

NEVER = 2**63  # a cancelled timer whose event is still in the queue


class Timers:
    """One event per timer is in the queue, however often it is set again; one that comes too early goes back in.

    `host.timers` holds, by name, [when it is due by the member's clock, virtual time of its event].  A plain host's
    timer is told by `tell(host, now, name, due)`; that of any other waits for the packets before it (`give`).
    """

    def __init__(
        self,
        schedule: Schedule,
        tell: Callable[[Host, int, str, int], None],
        give: Callable[[Host, Item], None],
    ) -> None:
        self.schedule, self._tell, self._give = schedule, tell, give
        self._queue, self._number = schedule.queue, schedule.number

    def set(self, host: Host, name: str, at: int) -> None:
        entry = host.timers.get(name)
        if entry is None:
            entry = host.timers[name] = [at, NEVER]
        else:
            entry[0] = at
        self._put(host, name, entry)

    def cancel(self, host: Host, name: str) -> None:
        entry = host.timers.get(name)
        if entry is not None:
            entry[0] = NEVER

    def again(self, host: Host) -> None:
        """The clock's pace changed: events in the queue may come too late now, so each is put in again."""
        for name, entry in host.timers.items():
            entry[1] = NEVER
            self._put(host, name, entry)

    def due(self, host: Host, now: int, name: str, entry: list[int]) -> int | None:
        """When a late timer was due; None if it was set again, or cancelled, while it waited."""
        if host.timers.get(name) is not entry:
            return None
        due = entry[0]
        if due > now:
            self._put(host, name, entry)
            return None
        del host.timers[name]
        return due

    def _put(self, host: Host, name: str, entry: list[int]) -> None:
        due = entry[0]
        if due == NEVER:
            return
        clock, now = host.clock, self.schedule.time
        time = due - host.offset if clock.ppm == 0 else clock.time(due)
        if time < now:
            time = now
        if time < entry[1]:
            entry[1] = time
            heappush(self._queue, (time, self._number(), self._fire, host, name))

    def _fire(self, host: Host, name: str) -> None:
        entry = host.timers.get(name)
        time = self.schedule.time
        if entry is None or entry[1] != time:
            return
        due = entry[0]
        if due == NEVER:
            del host.timers[name]
            return
        entry[1] = NEVER
        now = host.clock.now(time)
        if due > now:
            self._put(host, name, entry)
        elif host.plain:
            del host.timers[name]
            self._tell(host, now, name, due)
        else:
            self._give(host, ("timer", name, entry))
