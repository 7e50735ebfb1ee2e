"""Datagrams on their way: the nets, the faults on links, the wire.

A datagram is the tuple (net, source, packet, bytes, encoded or None, multicast).  All receivers of a multicast that
hear it at the same time share one event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappush
from typing import Any

from ordercast.contract import ALL, Packet, Transmit
from ordercast.drivers.trains import cars, couple
from ordercast.sim.host import Host
from ordercast.sim.journal import Journal
from ordercast.sim.links import Datagram, Filter, Remembering, wire_reason
from ordercast.sim.network import Arrivals, Medium, media
from ordercast.sim.scenario import GROUP, Scenario
from ordercast.sim.schedule import Schedule
from ordercast.types import Peer
from ordercast.wire import header as wire_header
from ordercast.wire.codec import Codec
from ordercast.wire.header import PREFIX_BYTES


class Carrier:
    """Carries what hosts transmit to those who hear it: to `arrive_all`, encoded ones to `arrive` (the driver's)."""

    arrive_all: Callable[[tuple[Host, ...], Datagram], None]
    arrive: Callable[[Host, Datagram], None]

    def __init__(
        self,
        scenario: Scenario,
        schedule: Schedule,
        journal: Journal,
        hosts: dict[int, Host],
        codec: Codec,
        *,
        hears_self: bool,
        all_lives: bool,
        sizes: bool,
    ) -> None:
        self.scenario, self.schedule, self.journal, self.hosts, self.codec = scenario, schedule, journal, hosts, codec
        self.hears_self, self.all_lives = hears_self, all_lives
        self.group = wire_header.group_id(GROUP)
        self.media = media(scenario, scenario.generator("network"), hears_self)
        self.receivers = [  # net -> sender -> who hears its multicasts
            {m: tuple(hosts[x] for x in medium.others[m]) for m in medium.members} for medium in self.media
        ]
        self.trains = scenario.packet_largest > scenario.datagram_bytes  # larger packets are cut
        self.sizes = sizes or self.trains or any(medium.needs_size for medium in self.media)
        self.filters: list[Filter[Any]] = []  # faults on links, at work now
        self.memories: list[Remembering] = []
        self.seconds: dict[int, Host] = {}  # of members that two processes say they are
        self._weigh()
        self.transmitted = 0
        self._queue, self._number = schedule.queue, schedule.number

    # ---------------------------------------------------------------------------------------------------- transmitting

    def transmit(self, host: Host, action: Transmit) -> None:
        net, to, packet = action.net, action.to, action.packet
        medium = self.media[net]
        size = self.codec.size(packet) + wire_header.HEADER_BYTES if self.sizes else 0
        self.transmitted += 1
        host.transmitted += 1
        host.transmitted_bytes += size
        if self.slow:
            self._transmit_slowly(host, action, size)
            return
        if to == ALL:
            datagram = (net, host.peer, packet, size, None, True)
            if medium.together:
                at = medium.at(self.schedule.time, host.id, size)
                heappush(self._queue, (at, self._number(), self.arrive_all, self.receivers[net][host.id], datagram))
                return
            receivers = medium.others[host.id]
        else:
            datagram = (net, host.peer, packet, size, None, False)
            receivers = (to,) if to in medium.others[host.id] else ()
        for member, at in self._reach(medium, host.id, receivers, packet, size):
            heappush(self._queue, (at, self._number(), self.arrive_all, (self.hosts[member],), datagram))

    def transmit_bytes(self, host: Host, action: Transmit) -> None:
        """The same for what no core reads: it is bytes in every scenario, so that it is looked at where bytes are."""
        self.transmitted += 1
        host.transmitted += 1
        self._transmit_slowly(host, action, 0, wire=True)

    def _reach(self, medium: Medium, source: int, to: tuple[int, ...], packet: Packet, size: int) -> Arrivals:
        """Who hears it when; a graph with cut edges leaves some out."""
        arrivals = medium.reach(self.schedule.time, source, to, size)
        if len(arrivals) < len(to):
            reached = [member for member, _ in arrivals]
            for member in to:
                if member not in reached:
                    self.journal.lost(source, member, packet, "cut")
        return arrivals

    def _transmit_slowly(self, host: Host, action: Transmit, size: int, wire: bool = False) -> None:
        """Through the faults on links, and through encode and decode where the scenario asks for it."""
        net, to, packet = action.net, action.to, action.packet
        multicast = to == ALL
        medium = self.media[net]
        receivers = medium.others[host.id] if multicast else ((to,) if to in medium.others[host.id] else ())
        size = size or self.codec.size(packet) + wire_header.HEADER_BYTES
        for data in self._train(host, packet, size, wire or self.scenario.wire):
            size = size if data is None else len(data)
            if multicast:
                for fault in self.filters:
                    fault.multicast([m for m in receivers if m != host.id])
            datagram = (net, host.peer, packet, size, data, multicast)
            for member, at in self._reach(medium, host.id, receivers, packet, size):
                self._fly(host.id, member, at, datagram, multicast)
            if multicast and host.id in self.seconds:
                self._to_other(host, medium, datagram)

    def _to_other(self, host: Host, medium: Medium, datagram: Datagram) -> None:
        """Of two processes that are one member, what one says reaches the other as well."""
        second = self.seconds[host.id]
        other = self.hosts[host.id] if host is second else second
        self._put(self.schedule.time + medium.bound, other, datagram)

    def _train(self, host: Host, packet: Packet, size: int, wire: bool) -> Sequence[bytes | None]:
        """The bytes of each datagram it travels in; None for one that travels as an object."""
        if not self.trains or size <= self.scenario.datagram_bytes:
            return (self.encode(host.peer, packet, host.transmitted) if wire else None,)
        prefix = wire_header.pack(self.group, host.id, host.incarnation, 0)[:PREFIX_BYTES]
        train = couple(prefix, host.transmitted, self.codec.encode(packet), self.scenario.datagram_bytes)
        datagrams = cars(train, self.scenario.datagram_bytes)
        self.transmitted += len(datagrams) - 1
        host.transmitted += len(datagrams) - 1
        host.transmitted_bytes += len(train) - size
        return datagrams

    def _fly(self, source: int, to: int, at: int, datagram: Datagram, multicast: bool) -> None:
        copies = [(at, datagram)]
        net, packet = datagram[0], datagram[2]
        for fault in (*self.memories, *self.filters):
            if not fault.wants(net, source, to, multicast, packet):
                continue
            out: list[tuple[int, Datagram]] = []
            for when, copy in copies:
                fault.act(source, to, when, copy, out)
            copies = out
        for when, copy in copies:
            self.arrive_at(when, to, copy)

    def arrive_at(self, time: int, to: int, datagram: Datagram) -> None:
        self._put(time, self.hosts[to], datagram)
        if datagram[5] and to in self.seconds:
            self._put(time, self.seconds[to], datagram)

    def _put(self, time: int, host: Host, datagram: Datagram) -> None:
        if datagram[4] is not None:
            self.schedule.later(time, self.arrive, host, datagram)
        else:
            self.schedule.later(time, self.arrive_all, (host,), datagram)

    # ------------------------------------------------------------------------------------------------- faults on links

    def switch_on(self, filter: Filter[Any]) -> None:
        self.filters.append(filter)
        self.slow = True

    def switch_off(self, filter: Filter[Any]) -> None:
        if filter in self.filters:
            self.filters.remove(filter)
        self._weigh()
        filter.release()

    def remember(self, memory: Remembering) -> None:
        self.memories.append(memory)
        self.slow = True

    def forget(self, memory: Remembering) -> None:
        self.memories.remove(memory)
        self._weigh()

    def seat(self, second: Host) -> None:
        """A second process for a member that has one."""
        self.seconds[second.id] = second
        self._weigh()

    def unseat(self, member: int) -> None:
        del self.seconds[member]
        self._weigh()

    def _weigh(self) -> None:
        """Whether datagrams take the longer way."""
        self.slow = self.scenario.wire or self.trains or bool(self.filters or self.memories or self.seconds)

    @property
    def delay_ns(self) -> int:
        """The longest usual delay of one hop: the d of the promises."""
        return max(medium.bound for medium in self.media)

    def lose_stragglers(self) -> None:
        """What faults have put off beyond the usual delay is lost: from now on every datagram comes in time."""
        gone = self.schedule.forget(self.schedule.time + self.delay_ns, self.arrive_all, self.arrive)
        if gone:
            self.journal.drops["straggler"] += gone

    # ------------------------------------------------------------------------------------------------------------ wire

    def encode(self, peer: Peer, packet: Packet, counter: int = 0) -> bytes:
        head = wire_header.pack(self.group, peer.id, peer.incarnation, counter)
        return head + self.codec.encode(packet)

    def judge_bytes(self, data: bytes) -> str:
        return wire_reason(data, self.group, self.codec.decode)
