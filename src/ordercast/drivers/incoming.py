"""Datagrams become packets: whose they are, trains put together, decoded; what is wrong with one is counted by reason.

A datagram that is not used changes nothing: a life is remembered only after its first packet was well-formed.  What
was lost before a datagram is told with the next packet that reaches the core on that net, whatever became of those
between.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable

from ordercast.contract import Packet
from ordercast.drivers.admission import PREFIX_BYTES, Admission
from ordercast.errors import WireError
from ordercast.types import Nanoseconds, NetId, Peer
from ordercast.wire.codec import Codec
from ordercast.wire.header import HEADER_BYTES
from ordercast.wire.train import MARK, Station, whole

Bytes = bytes | memoryview
Clock = Callable[[], Nanoseconds]
Receive = Callable[[Nanoseconds, NetId, Peer, Packet, int, Bytes], None]  # the int: datagrams lost before this one
Dropped = Callable[[Nanoseconds, WireError], None]
_counter = struct.Struct("<Q")


class Incoming:
    """Hands every packet to `receive`, and what was wrong with any other datagram to `dropped`."""

    def __init__(
        self, codec: Codec, admission: Admission, trains: int, clock: Clock, receive: Receive, dropped: Dropped
    ) -> None:
        self.admission, self.station = admission, Station(trains)
        self._codec, self._clock, self._receive, self._dropped = codec, clock, receive, dropped
        self.drops: Counter[str] = Counter()  # datagrams not used, by reason
        self.datagrams = self.bytes = 0  # used
        self.untold: dict[NetId, int] = {}  # datagrams lost here, of which the core has not heard

    def one(self, net: NetId, datagram: memoryview, drops: int) -> None:
        """One datagram: check its header, put trains together, decode its packet."""
        now = self._clock()
        if drops:
            self._lost(net, drops)
        try:
            prefix = bytes(datagram[:PREFIX_BYTES])
            known = self.admission.known.get(prefix)
            peer = self.admission.stranger(datagram) if known is None else known
            body: Bytes = datagram[HEADER_BYTES:]
            if not body:
                raise WireError("short")
            if body[0] == MARK:
                packet = self.station.take(prefix, _counter.unpack_from(datagram, PREFIX_BYTES)[0], body)
                if packet is None:
                    return
                body = packet
            decoded = self._codec.decode(body)
        except WireError as why:
            self._drop(now, why)
            return
        if known is None:
            self._remember(now, peer, prefix)
        self.datagrams += 1
        self.bytes += len(body) + HEADER_BYTES
        self._receive(now, net, peer, decoded, self.untold.pop(net, 0) if self.untold else 0, body)

    def several(self, net: NetId, datagrams: memoryview, segment: int, drops: int) -> None:
        """Datagrams that the kernel joined: all of one size but the last.  Mostly they are one train."""
        data = bytes(datagrams)
        packet = whole(data, segment, PREFIX_BYTES)
        peer = None if packet is None else self.admission.known.get(data[:PREFIX_BYTES])
        if drops:
            self._lost(net, drops)
        if packet is None or peer is None:
            view = memoryview(data)
            for start in range(0, len(data), segment):
                self.one(net, view[start : start + segment], 0)
            return
        now = self._clock()
        try:
            decoded = self._codec.decode(packet)
        except WireError as why:
            self._drop(now, why)
            return
        self.datagrams += -(-len(data) // segment)
        self.bytes += len(data)
        self._receive(now, net, peer, decoded, self.untold.pop(net, 0) if self.untold else 0, packet)

    def decoded(self, net: NetId, peer: Peer, packet: Packet, drops: int) -> None:
        """One that was never bytes (simulated): the same checks of its sender's life."""
        now = self._clock()
        if drops:
            self._lost(net, drops)
        if self.admission.last.get(peer.id) != peer:
            try:
                self.admission.check(peer)
            except WireError as why:
                self._drop(now, why)
                return
            self._remember(now, peer)
        self.datagrams += 1
        self._receive(now, net, peer, packet, self.untold.pop(net, 0) if self.untold else 0, b"")

    def _remember(self, now: Nanoseconds, peer: Peer, prefix: bytes = b"") -> None:
        try:
            self.admission.remember(peer, prefix)
        except WireError as why:
            self._drop(now, why)

    def _lost(self, net: NetId, drops: int) -> None:
        self.untold[net] = self.untold.get(net, 0) + drops

    def _drop(self, now: Nanoseconds, why: WireError) -> None:
        self.drops[why.reason] += 1
        self._dropped(now, why)
