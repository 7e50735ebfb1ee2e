"""Where the one order of all PDUs comes from: a LAN, a WAN with clocks that run together, or the tagger (order.py).

Paper: section 3.  Each way takes PDUs as they come from the network and gives them on in their turn, with the verdict
of its detector.  Own PDUs come back from the network like those of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Protocol

from ordercast.contract import TAGGER, Action, Packet, Transmit, dropped
from ordercast.protocols.dpg.channel import Misses
from ordercast.protocols.dpg.order import Order, Turn
from ordercast.protocols.dpg.packets import Message, Numbers, Report
from ordercast.types import Nanoseconds, NetId, Peer

Pdu = Message | Report
SILENT = 8  # lifetimes after which a sender that says nothing is taken for absent


class Way(Protocol):
    """One site's end of the network service."""

    @property
    def misses(self) -> int:
        """PDUs that are known to be missed, so far."""

    def receive(self, now: Nanoseconds, source: Peer, packet: Packet, drops: int) -> list[Action]:
        """A packet from the network; what is wrong with it."""

    def turns(self, now: Nanoseconds) -> Iterable[Turn]:
        """PDUs whose turn it is now."""

    def transmitted(self, now: Nanoseconds, packet: Pdu) -> list[Action]:
        """An own PDU leaves; what goes with it."""

    def tick(self, now: Nanoseconds) -> list[Action]: ...
    def serial(self) -> int: ...

    def returned(self) -> None:
        """The site was away: what it hears next is contiguous with nothing."""

    def waits(self) -> str:
        """What it cannot go on without, in words."""


class Lan:
    """All hear everything in one order; what a site's own buffer lost the driver tells with the next datagram."""

    def __init__(self) -> None:
        self.misses = 0
        self._detector = Misses()
        self._ready: list[Turn] = []

    def receive(self, now: Nanoseconds, source: Peer, packet: Packet, drops: int) -> list[Action]:
        if type(packet) is not Message and type(packet) is not Report:
            return [dropped("channel", member=source.id)]
        self.misses += drops
        self._ready.append(Turn(source, packet, self._detector.heard(drops, type(packet) is Message), True))
        return []

    def turns(self, now: Nanoseconds) -> Iterable[Turn]:
        ready, self._ready = self._ready, []
        return ready

    def transmitted(self, now: Nanoseconds, packet: Pdu) -> list[Action]:
        return []

    def tick(self, now: Nanoseconds) -> list[Action]:
        return []

    def serial(self) -> int:
        return 0

    def returned(self) -> None:
        self._detector = Misses()

    def waits(self) -> str:
        return ""


class Tagged:
    """The tagger numbers PDUs."""

    def __init__(self, order: Order, net: NetId) -> None:
        self.order, self.net = order, net
        self.serial = order.next_serial

    @property
    def misses(self) -> int:
        return self.order.misses

    def receive(self, now: Nanoseconds, source: Peer, packet: Packet, drops: int) -> list[Action]:
        order = self.order
        if type(packet) is Numbers:
            if source.id != TAGGER:
                return [dropped("numbers", member=source.id)]
            order.numbered(now, packet)
        elif (type(packet) is Message or type(packet) is Report) and source != order.me:
            order.put(now, source, packet)
        return []

    def turns(self, now: Nanoseconds) -> Iterable[Turn]:
        return self.order.turns(now)

    def transmitted(self, now: Nanoseconds, packet: Pdu) -> list[Action]:
        self.order.put(now, self.order.me, packet)
        return [Transmit(self.net, TAGGER, self.order.wish(now, [packet.serial]))]

    def tick(self, now: Nanoseconds) -> list[Action]:
        self.order.forget(now)
        again = self.order.repeat(now)
        return [] if again is None else [Transmit(self.net, TAGGER, again)]

    def returned(self) -> None:
        self.order.detector.missed()

    def waits(self) -> str:
        return "numbers of the tagger: nothing is ordered without it" if self.order.wishes else ""


class Wan:
    """Clocks that run together: a PDU is taken one lifetime after it was sent, in the order of (time, sender).

    What comes later has used up its lifetime and is out of its place.  That something never came shows in its sender's
    serials, but only with what the sender says next: so nothing lies between two messages only if everybody who spoke
    of late has said something since the second, and left no serial out.
    """

    def __init__(self, lifetime_ns: Nanoseconds) -> None:
        self.lifetime_ns = lifetime_ns
        self.misses = 0
        self._held: list[tuple[tuple[int, int, int, int], Pdu]] = []  # (sent, sender, life, serial), a heap
        self._serials: dict[Peer, dict[int, Nanoseconds]] = {}  # held of each who spoke of late -> when sent
        self._next: dict[Peer, int] = {}  # the serial that follows what was taken
        self._spoke: dict[Peer, Nanoseconds] = {}
        self._last = (0, 0, 0, 0)
        self._whole = False
        self._late: list[Turn] = []
        self._serial = 0

    def receive(self, now: Nanoseconds, source: Peer, packet: Packet, drops: int) -> list[Action]:
        if type(packet) is not Message and type(packet) is not Report:
            return [dropped("channel", member=source.id)]
        if packet.sent > now:
            return [dropped("time", member=source.id)]
        key = (packet.sent, source.id, source.incarnation, packet.serial)
        held = self._serials.setdefault(source, {})
        if packet.serial in held or packet.serial < self._next.get(source, 0):
            return []  # it came twice
        self._spoke[source] = max(packet.sent, self._spoke.get(source, 0))
        if key <= self._last:
            self.misses += 1
            self._whole = False
            self._late.append(Turn(source, packet, False, False))
            return []
        held[packet.serial] = packet.sent
        heappush(self._held, (key, packet))
        return []

    def turns(self, now: Nanoseconds) -> Iterator[Turn]:
        late, self._late = self._late, []
        yield from late
        held = self._held
        while held and held[0][0][0] + self.lifetime_ns <= now:
            self._last, packet = heappop(held)
            source = Peer(self._last[1], self._last[2])
            del self._serials[source][packet.serial]
            if packet.serial != self._next.get(source):
                self.misses += source in self._next
                self._whole = False
            self._next[source] = packet.serial + 1
            contiguous = False
            if type(packet) is Message:
                contiguous = self._whole and self._nobody_between()
                self._whole = True
            yield Turn(source, packet, contiguous, True)

    def _nobody_between(self) -> bool:
        """Everybody who spoke of late was heard after the message just taken, and has left nothing out."""
        old = self._last[0] - SILENT * self.lifetime_ns
        for peer in [peer for peer, at in self._spoke.items() if at < old]:
            del self._spoke[peer]
        return all(self._next.get(peer, 0) in self._serials[peer] for peer in self._spoke)

    def transmitted(self, now: Nanoseconds, packet: Pdu) -> list[Action]:
        return []

    def tick(self, now: Nanoseconds) -> list[Action]:
        return []

    def serial(self) -> int:
        self._serial += 1
        return self._serial

    def returned(self) -> None:
        self._whole = False

    def waits(self) -> str:
        return ""
