"""Datagrams on their way: time and its queue of events, the nets, the faults on links, the wire.

An event is the tuple (time, number, what to call, two arguments).  A datagram is the tuple (net, source, packet, bytes,
encoded or None, multicast).  All receivers of a multicast that hear it at the same time share one event.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from heapq import heapify, heappush
from itertools import count
from typing import Any

from ordercast.contract import ALL, Packet, Transmit
from ordercast.registry import ProtocolInfo
from ordercast.sim.host import CostFunction, Host
from ordercast.sim.links import Datagram, Filter, Remembering, wire_reason
from ordercast.sim.network import Arrivals, Medium, media
from ordercast.sim.scenario import Hosts, Scenario
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Kind, Level
from ordercast.trace.trace import MemorySink
from ordercast.types import Peer
from ordercast.wire import header as wire_header
from ordercast.wire.codec import Codec

GROUP = "simulated"


class Traffic:
    """Carries what hosts transmit to those who hear it."""

    hosts: list[Host]
    host: dict[int, Host]
    receivers: list[dict[int, tuple[Host, ...]]]  # net -> sender -> who hears its multicasts

    def __init__(self, scenario: Scenario, level: Level, info: ProtocolInfo, cost: CostFunction | None) -> None:
        self.scenario, self.level, self.info = scenario, level, info
        self.time = 0
        self.queue: list[tuple[int, int, Callable[[Any, Any], None], Any, Any]] = []
        self.number = count().__next__
        self.codec = Codec(info.packets)
        self.group = wire_header.group_id(GROUP)
        self.media = media(scenario, self.generator("network"), info.hears_self)
        plain = not scenario.faults and cost is None and scenario.hosts == Hosts()
        self.sizes = not plain or any(medium.needs_size for medium in self.media)
        self.filters: list[Filter] = []  # faults on links, at work now
        self.memories: list[Remembering] = []
        self.slow = scenario.wire  # datagrams take the longer way
        self.datagrams = 0  # received
        self.transmitted = 0
        self.drops: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()  # datagrams that a fault of this class touched
        self.sink = MemorySink()
        self.log = Recorder(self.sink, 0, 1, level)

    def generator(self, name: str) -> random.Random:
        """A stream of its own for each use, so that a smaller scenario keeps the draws of the rest."""
        return random.Random(f"{self.scenario.seed}/{name}")

    def later(self, time: int, call: Callable[[Any, Any], None], a: Any, b: Any) -> None:
        """Call it at this time, after what is in the queue for the same time already."""
        heappush(self.queue, (time, self.number(), call, a, b))

    def arrive_all(self, hosts: tuple[Host, ...], datagram: Datagram) -> None:
        raise NotImplementedError

    def arrive(self, host: Host, datagram: Datagram) -> None:
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------------- transmitting

    def _transmit(self, host: Host, action: Transmit) -> None:
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
                at = medium.at(self.time, host.id, size)
                heappush(self.queue, (at, self.number(), self.arrive_all, self.receivers[net][host.id], datagram))
                return
            receivers = medium.others[host.id]
        else:
            datagram = (net, host.peer, packet, size, None, False)
            receivers = (to,) if to in medium.others[host.id] else ()
        for member, at in self._reach(medium, host.id, receivers, packet, size):
            heappush(self.queue, (at, self.number(), self.arrive_all, (self.host[member],), datagram))

    def _reach(self, medium: Medium, source: int, to: tuple[int, ...], packet: Packet, size: int) -> Arrivals:
        """Who hears it when; a graph with cut edges leaves some out."""
        arrivals = medium.reach(self.time, source, to, size)
        if len(arrivals) < len(to):
            reached = [member for member, _ in arrivals]
            for member in to:
                if member not in reached:
                    self.lost(source, member, packet, "cut")
        return arrivals

    def _transmit_slowly(self, host: Host, action: Transmit, size: int) -> None:
        """Through the faults on links, and through encode and decode where the scenario asks for it."""
        net, to, packet = action.net, action.to, action.packet
        multicast = to == ALL
        medium = self.media[net]
        size = size or self.codec.size(packet) + wire_header.HEADER_BYTES
        data = self.encode(host.peer, packet) if self.scenario.wire else None
        datagram = (net, host.peer, packet, size, data, multicast)
        receivers = medium.others[host.id] if multicast else ((to,) if to in medium.others[host.id] else ())
        if multicast:
            for fault in self.filters:
                fault.multicast([m for m in receivers if m != host.id])
        for member, at in self._reach(medium, host.id, receivers, packet, size):
            self._fly(host.id, member, at, datagram, multicast)

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
        host = self.host[to]
        if datagram[4] is not None:
            self.later(time, self.arrive, host, datagram)
        else:
            self.later(time, self.arrive_all, (host,), datagram)

    @property
    def delay_ns(self) -> int:
        """The longest usual delay of one hop: the d of the promises."""
        return max(medium.bound for medium in self.media)

    def lose_stragglers(self) -> None:
        """What faults have put off beyond the usual delay is lost: from now on every datagram comes in time."""
        limit, arrivals = self.time + self.delay_ns, (self.arrive_all, self.arrive)
        kept = [event for event in self.queue if event[0] <= limit or event[2] not in arrivals]
        if len(kept) < len(self.queue):
            self.drops["straggler"] += len(self.queue) - len(kept)
            self.queue[:] = kept
            heapify(self.queue)

    # ------------------------------------------------------------------------------------------------------------ wire

    def encode(self, peer: Peer, packet: Packet) -> bytes:
        head = wire_header.pack(self.group, peer.id, peer.incarnation, self.transmitted)
        return head + self.codec.encode(packet)

    def decode(self, data: bytes) -> tuple[Peer, Packet]:
        head = wire_header.unpack(data, self.group)
        return Peer(head.sender, head.incarnation), self.codec.decode(memoryview(data)[wire_header.HEADER_BYTES :])

    def judge_bytes(self, data: bytes) -> str:
        return wire_reason(data, self.group, self.codec.decode)

    # --------------------------------------------------------------------------------------------------- what was lost

    def lost(self, source: int, to: int, packet: Packet, reason: str) -> None:
        """Lost on its way: the simulator's own row."""
        self.drops[reason] += 1
        if self.level >= Level.FULL:
            kind = type(packet).__name__
            self.log.event(self.time, self.time, Kind.DROP, sender=source, reason=reason, to=to, packet=kind)

    def refused(self, source: int, to: int, packet: Packet, reason: str) -> None:
        """Refused by its receiver: that member's row."""
        self.drops[reason] += 1
        host = self.host[to]
        if host.up:
            host.recorder.event(
                self.time, host.clock.now(self.time), Kind.DROP, reason=reason, source=source,
                packet=type(packet).__name__,
            )  # fmt: skip
