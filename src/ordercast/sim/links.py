"""Faults on links at work: each decides, datagram by datagram and receiver by receiver, what becomes of it.

A datagram is the tuple (net, source peer, packet, bytes, encoded or None, multicast); one on its way to one receiver is
a copy (time of arrival, datagram).  A filter turns one copy into any number of copies.
"""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ordercast.errors import WireError
from ordercast.sim import faults as f
from ordercast.sim.scenario import MS
from ordercast.types import Peer
from ordercast.wire import header as wire_header

if TYPE_CHECKING:
    from ordercast.sim.carrier import Carrier

Datagram = tuple[int, Any, Any, int, "bytes | None", bool]
Copies = list[tuple[int, Datagram]]
Fault = TypeVar("Fault", bound=f.LinkFault)


def kinds_of(packet: Any) -> tuple[str, ...]:
    """The names a packet goes by: its own type's, and its body's."""
    inner = packet.data if hasattr(packet, "data") and hasattr(packet.data, "body") else packet
    body = getattr(inner, "body", None)
    name = type(packet).__name__
    return (name,) if body is None else (name, type(body).__name__)


def expand_pairs(pairs: tuple[str, ...], ids: tuple[int, ...]) -> frozenset[tuple[int, int]] | None:
    """The ordered pairs meant; None: all."""
    if not pairs:
        return None
    out: list[tuple[int, int]] = []
    for pair in pairs:
        left, right, both = f.split_pair(pair)
        froms = ids if left == "*" else (int(left),)
        tos = ids if right == "*" else (int(right),)
        for a in froms:
            for b in tos:
                if a != b:
                    out.append((a, b))
                    if both:
                        out.append((b, a))
    return frozenset(out)


class Filter(Generic[Fault]):
    """Base: what it acts on, how often it did."""

    def __init__(self, fault: Fault, carrier: Carrier, generator: random.Random) -> None:
        self.fault, self.carrier, self.random = fault, carrier, generator
        self.pairs = expand_pairs(fault.pairs, carrier.scenario.ids)
        self.packets = frozenset(fault.packets)
        self.hits = 0

    def wants(self, net: int, source: int, to: int, multicast: bool, packet: Any) -> bool:
        fault = self.fault
        if self.pairs is not None and (source, to) not in self.pairs:
            return False
        if fault.net is not None and fault.net != net:
            return False
        if fault.cast != "any" and (fault.cast == "multicast") != multicast:
            return False
        if fault.count is not None and self.hits >= fault.count:
            return False
        return not self.packets or any(name in self.packets for name in kinds_of(packet))

    def multicast(self, receivers: list[int]) -> None:
        """A multicast is about to be handed to these receivers, one by one."""

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        raise NotImplementedError

    def release(self) -> None:
        """The fault ends."""

    def hit(self) -> None:
        self.hits += 1
        self.carrier.journal.effects[self.fault.word] += 1

    def lose(self, source: int, to: int, datagram: Datagram, reason: str) -> None:
        self.hit()
        self.carrier.journal.lost(source, to, datagram[2], reason)


class Chance(Filter[Fault]):
    """Acts on a copy with probability p."""

    def __init__(self, fault: Fault, carrier: Carrier, generator: random.Random) -> None:
        super().__init__(fault, carrier, generator)
        self.p: float = fault.p  # type: ignore[attr-defined]

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        if self.p >= 1.0 or self.random.random() < self.p:
            self.strike(source, to, at, datagram, out)
        else:
            out.append((at, datagram))

    def strike(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        raise NotImplementedError


class Losing(Chance[f.Loss]):
    def strike(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        self.lose(source, to, datagram, "loss")


class BurstLosing(Filter[f.BurstLoss]):
    """Gilbert-Elliott, one state per ordered pair."""

    def __init__(self, fault: f.BurstLoss, carrier: Carrier, generator: random.Random) -> None:
        super().__init__(fault, carrier, generator)
        self.bad: dict[tuple[int, int], bool] = {}

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        law, draw = self.fault, self.random.random
        bad = self.bad.get((source, to), False)
        bad = draw() >= law.to_good if bad else draw() < law.to_bad
        self.bad[source, to] = bad
        if draw() < (law.p_bad if bad else law.p_good):
            self.lose(source, to, datagram, "burst_loss")
        else:
            out.append((at, datagram))


class SubsetOnly(Filter[f.Subset]):
    """Draws, per multicast, whom it does not reach."""

    def __init__(self, fault: f.Subset, carrier: Carrier, generator: random.Random) -> None:
        super().__init__(fault, carrier, generator)
        self.missed: list[int] = []

    def wants(self, net: int, source: int, to: int, multicast: bool, packet: Any) -> bool:
        return multicast and super().wants(net, source, to, multicast, packet)

    def multicast(self, receivers: list[int]) -> None:
        self.missed = []
        if receivers and self.random.random() < self.fault.p:
            self.missed = self.random.sample(receivers, self.random.randint(1, len(receivers)))

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        if to in self.missed:
            self.lose(source, to, datagram, "subset")
        else:
            out.append((at, datagram))


class MtuLimit(Filter[f.Mtu]):
    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        if datagram[3] > self.fault.bytes:
            self.lose(source, to, datagram, "mtu")
        else:
            out.append((at, datagram))


class Duplicating(Chance[f.Duplication]):
    def strike(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        self.hit()
        out.append((at, datagram))
        within = round(self.fault.within_ms * MS)
        out.extend((at + self.random.randint(0, within), datagram) for _ in range(self.fault.copies))


class Reordering(Chance[f.Reordering]):
    def strike(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        self.hit()
        out.append((at + self.random.randint(0, round(self.fault.within_ms * MS)), datagram))


class Slowing(Chance[f.Slowness]):
    def __init__(self, fault: f.Slowness, carrier: Carrier, generator: random.Random) -> None:
        super().__init__(fault, carrier, generator)
        self.draw = fault.law.sampler(generator)

    def strike(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        self.hit()
        out.append((at + self.draw(), datagram))


class Clogging(Filter[f.LinkFault]):
    """Holds copies; they are all there at once when it ends."""

    def __init__(self, fault: f.LinkFault, carrier: Carrier, generator: random.Random) -> None:
        super().__init__(fault, carrier, generator)
        self.held: list[tuple[int, int, Datagram]] = []

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        self.hit()
        self.held.append((at, to, datagram))

    def release(self) -> None:
        held, self.held = self.held, []
        for at, to, datagram in held:
            self.carrier.arrive_at(max(at, self.carrier.schedule.time), to, datagram)


class Corrupting(Chance[f.Corruption]):
    """Damages bytes.  What the decoder does not refuse, the checksum of UDP would have: loss either way."""

    def strike(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        _, peer, packet, _, data, _ = datagram
        if data is None:
            data = self.carrier.encode(peer, packet)
        damaged = bytearray(data)
        if self.fault.how == "truncate":
            del damaged[self.random.randrange(len(damaged)) :]
        else:
            for bit in self.random.sample(range(8 * len(damaged)), min(self.fault.bits, 8 * len(damaged))):
                damaged[bit // 8] ^= 1 << (bit % 8)
        self.hit()
        carrier, reason = self.carrier, self.carrier.judge_bytes(bytes(damaged)) or "checksum"
        carrier.journal.refused(carrier.hosts[to], reason, source=source, packet=type(packet).__name__)


class OtherVersion(Filter[f.Version]):
    """The sender runs another release: receivers refuse its datagrams by their version."""

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        net, peer, packet, _, data, multicast = datagram
        other = bytearray(data if data is not None else self.carrier.encode(peer, packet))
        other[len(wire_header.MAGIC)] = self.fault.version
        self.hit()
        out.append((at, (net, peer, packet, len(other), bytes(other), multicast)))


class Cutting(Filter[f.LinkFault]):
    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        self.lose(source, to, datagram, "cut")


class Forging(Chance[f.Foreign]):
    """Adds a copy with another sender."""

    def strike(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        net, _, packet, size, data, multicast = datagram
        hosts = self.carrier.hosts
        peer = Peer(to, hosts[to].incarnation + 1) if self.fault.who == "clone" else Peer(len(hosts) + 1, 1)
        self.hit()
        out.append((at, datagram))
        out.append((at, (net, peer, packet, size, data and self.carrier.encode(peer, packet), multicast)))


class Remembering(Filter[f.Replay]):
    """Lets everything pass and remembers it, for a replay."""

    def __init__(self, fault: f.Replay, carrier: Carrier, generator: random.Random) -> None:
        super().__init__(fault, carrier, generator)
        self.memory: deque[tuple[int, int, Datagram]] = deque(maxlen=fault.keep)

    def wants(self, net: int, source: int, to: int, multicast: bool, packet: Any) -> bool:
        hits, self.hits = self.hits, 0  # `count` limits what comes again, not what is remembered
        wanted = super().wants(net, source, to, multicast, packet)
        self.hits = hits
        return wanted

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        self.memory.append((at, to, datagram))
        out.append((at, datagram))

    def fire(self) -> None:
        """Some of the old ones come again, now."""
        now = self.carrier.schedule.time
        limit = now - round(self.fault.age_ms * MS)
        old = [entry for entry in self.memory if entry[0] <= limit]
        for _, to, datagram in self.random.sample(old, min(self.fault.copies, len(old))):
            if self.fault.count is None or self.hits < self.fault.count:
                self.hit()
                self.carrier.arrive_at(now, to, datagram)


FILTERS: dict[type[f.LinkFault], type[Filter[Any]]] = {
    f.Loss: Losing,
    f.BurstLoss: BurstLosing,
    f.Subset: SubsetOnly,
    f.Mtu: MtuLimit,
    f.Duplication: Duplicating,
    f.Reordering: Reordering,
    f.Slowness: Slowing,
    f.Clog: Clogging,
    f.Corruption: Corrupting,
    f.Version: OtherVersion,
    f.Replay: Remembering,
    f.Foreign: Forging,
    f.Cut: Cutting,
    f.Partition: Cutting,
}


def wire_reason(data: bytes, group: int, decode: Any) -> str:
    """Why a receiver refuses these bytes; "" when it would take them."""
    try:
        wire_header.unpack(data, group)
        decode(memoryview(data)[wire_header.HEADER_BYTES :])
    except WireError as why:
        return why.reason
    return ""
