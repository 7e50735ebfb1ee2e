"""Datagrams become packets: whose they are, trains put together, decoded; what is wrong with one is counted by reason.

A datagram that is not used changes nothing: a life is remembered only after its first packet was well-formed.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable

from ordercast.contract import Packet
from ordercast.errors import WireError
from ordercast.live.lives import PREFIX_BYTES, Lives
from ordercast.types import Nanoseconds, NetId, Peer
from ordercast.wire.codec import Codec
from ordercast.wire.header import HEADER_BYTES
from ordercast.wire.train import MARK, Station, whole

Bytes = bytes | memoryview
Receive = Callable[[Nanoseconds, NetId, Peer, Packet, int, Bytes], None]  # the int: datagrams lost before this one
Dropped = Callable[[Nanoseconds, WireError], None]
_counter = struct.Struct("<Q")
_clock = time.monotonic_ns


class Incoming:
    """Hands every packet to `receive`, and what was wrong with any other datagram to `dropped`."""

    def __init__(self, codec: Codec, lives: Lives, trains: int, receive: Receive, dropped: Dropped) -> None:
        self._codec, self._lives, self._receive, self._dropped = codec, lives, receive, dropped
        self.station = Station(trains)
        self.drops: Counter[str] = Counter()  # datagrams not used, by reason
        self.datagrams = self.bytes = 0  # used

    def one(self, net: NetId, datagram: memoryview, drops: int) -> None:
        """One datagram: check its header, put trains together, decode its packet."""
        now = _clock()
        try:
            prefix = bytes(datagram[:PREFIX_BYTES])
            known = self._lives.known.get(prefix)
            peer = self._lives.stranger(datagram) if known is None else known
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
            self._lives.remember(prefix, peer)
        self.datagrams += 1
        self.bytes += len(body) + HEADER_BYTES
        self._receive(now, net, peer, decoded, drops, body)

    def several(self, net: NetId, datagrams: memoryview, segment: int, drops: int) -> None:
        """Datagrams that the kernel joined: all of one size but the last.  Mostly they are one train."""
        data = bytes(datagrams)
        packet = whole(data, segment, PREFIX_BYTES)
        peer = None if packet is None else self._lives.known.get(data[:PREFIX_BYTES])
        if packet is None or peer is None:
            view = memoryview(data)
            for start in range(0, len(data), segment):
                self.one(net, view[start : start + segment], drops)
                drops = 0
            return
        now = _clock()
        try:
            decoded = self._codec.decode(packet)
        except WireError as why:
            self._drop(now, why)
            return
        self.datagrams += -(-len(data) // segment)
        self.bytes += len(data)
        self._receive(now, net, peer, decoded, drops, packet)

    def _drop(self, now: Nanoseconds, why: WireError) -> None:
        self.drops[why.reason] += 1
        self._dropped(now, why)
