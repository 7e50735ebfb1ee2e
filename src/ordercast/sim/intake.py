"""The longer way into a host that is busy, paused, costly or recorded: one server with a finite input buffer.

Datagrams come first, then drained, then late timers and everything else.  Of several nets one is read until nothing of
it waits, and drained is said, before the next: each has a socket of its own, as live.
"""

from __future__ import annotations

from collections.abc import Callable

from ordercast.limits import DRAIN_DATAGRAMS_MAX
from ordercast.sim.host import Host
from ordercast.sim.inputs import Item
from ordercast.sim.journal import Journal
from ordercast.sim.links import Datagram
from ordercast.sim.schedule import Schedule


class Intake:
    """Keeps what waits, in its order, and hands it to `carry_out` when the host is free."""

    def __init__(self, schedule: Schedule, journal: Journal, carry_out: Callable[[Host, Item], None]) -> None:
        self.schedule, self.journal, self._carry_out = schedule, journal, carry_out

    def take(self, host: Host, datagram: Datagram) -> None:
        """A datagram is at a host: into its buffer, if there is room."""
        net, size = datagram[0], _room(host, datagram)
        over = host.buffer_packets_max and len(host.buffer) >= host.buffer_packets_max
        host.plain = False
        if host.buffer and (over or host.buffer_bytes + size > host.buffer_bytes_max):
            host.drops[net] = host.drops.get(net, 0) + 1
            self.journal.refused(host, "buffer", source=datagram[1].id, packet=type(datagram[2]).__name__)
            if host.machine is not None:
                host.owed += host.machine.lost(datagram)
            return
        host.buffer.append((datagram, host.drops.pop(net, 0)))
        host.buffer_bytes += size
        if not host.busy and not host.paused:
            self.work(host)

    def give(self, host: Host, item: Item) -> None:
        """An input that is no datagram: after the datagrams that are there already."""
        host.late.append(item)
        host.plain = False
        if host.up and not host.busy and not host.paused:
            self.work(host)

    def was_read(self, host: Host, net: int) -> None:
        """A datagram was read; drained(net) is owed."""
        host.read += 1
        host.reading = net

    def work(self, host: Host) -> None:
        """Serve what waits: datagrams, then drained, then late timers and the rest."""
        while host.up and not host.busy and not host.paused:
            place = _next(host)
            if place is not None:
                datagram, drops = host.buffer[place]
                del host.buffer[place]
                host.buffer_bytes -= _room(host, datagram)
                item: Item = ("receive", datagram, drops)
                self.was_read(host, datagram[0])
            elif host.read:
                host.read = 0
                self._carry_out(host, ("drained", host.reading))
                continue
            elif host.late:
                item = host.late.popleft()
            else:
                host.refresh()
                return
            if host.cost is not None:
                busy, latency = host.cost(*_measure(item))
                if host.machine is not None:
                    busy, host.owed = busy + host.owed, 0
                    busy += host.machine.stalled(self.schedule.time, self.schedule.time + busy)
                if busy + latency > 0:
                    host.busy = True
                    self.schedule.later(
                        self.schedule.time + busy + latency, self._served, host, (host.incarnation, item)
                    )
                    return
            self._carry_out(host, item)

    def occupy(self, host: Host, until: int) -> None:
        """What it does keeps the host busy."""
        host.busy = True
        host.plain = False
        self.schedule.later(until, self._free, host, host.incarnation)

    def _served(self, host: Host, job: tuple[int, Item]) -> None:
        """A costly input is done with: the core answers now."""
        incarnation, item = job
        if not host.up or host.incarnation != incarnation:
            return
        host.busy = False
        if host.paused:
            self._put_back(host, item)
            return
        self._carry_out(host, item)
        if not host.busy:
            self.work(host)

    def _put_back(self, host: Host, item: Item) -> None:
        """The host stands still and has not answered: what it was at comes first again, datagrams before the rest."""
        if item[0] != "receive":
            host.late.appendleft(item)
            return
        _, datagram, drops = item
        host.buffer.appendleft((datagram, drops))
        host.buffer_bytes += _room(host, datagram)
        host.read -= 1

    def _free(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            host.busy = False
            self.work(host)


def _next(host: Host) -> int | None:
    """Which datagram is read now; None: nothing more of the net that is read."""
    if not host.buffer or host.read >= DRAIN_DATAGRAMS_MAX:
        return None
    if not host.read or len(host.nets) == 1:
        return 0
    return next((place for place, (datagram, _) in enumerate(host.buffer) if datagram[0] == host.reading), None)


def messages_in(packet: object) -> int:
    """Of the frame it carries; none: it is the protocol's own."""
    frame = getattr(packet, "frame", None)
    return frame.count if frame is not None else 0


def _room(host: Host, datagram: Datagram) -> int:
    """What it takes of the buffer."""
    return datagram[3] if host.machine is None else host.machine.buffered(datagram)


def _measure(item: Item) -> tuple[str, int, int, int, object]:
    """What a cost is reckoned by: word, bytes, messages, work, packet."""
    what = item[0]
    if what == "receive":
        return what, item[1][3], messages_in(item[1][2]), 0, item[1][2]
    if what == "submit":
        submission = item[1].submission()
        return what, sum(map(len, submission.payloads)), len(submission.payloads), 0, None
    return what, 0, 0, 0, None
