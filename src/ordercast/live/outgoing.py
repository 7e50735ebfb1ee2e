"""Packets become datagrams, or trains of them; consecutive ones to everybody on one net leave in one call.

With segmentation offload the kernel takes several datagrams at once if all but the last are of one size; so they are
collected until one does not fit, goes elsewhere, or the step is over.  Each datagram is sealed for itself, also in a
train: a receiver keeps none that it has not opened.
"""

from __future__ import annotations

import struct

from msgspec import msgpack

from ordercast.contract import ALL, Packet
from ordercast.drivers.trains import couple
from ordercast.live.sockets import JOINED_BYTES_MAX, NetSockets
from ordercast.types import MemberId, NetId
from ordercast.wire.header import HEADER_BYTES
from ordercast.wire.seal import TAG_BYTES, Sealer
from ordercast.wire.train import CAR_BYTES, TRAIN_BYTES_MAX, cut

SEALED_BYTES = HEADER_BYTES + TAG_BYTES  # what a sealed datagram has beside its packet
_counter = struct.Struct("<Q")
_encode_into = msgpack.Encoder().encode_into


class Outgoing:
    """`prefix` begins every datagram of this life that is not sealed; the datagram's counter follows it."""

    def __init__(self, prefix: bytes, datagram_bytes: int, sealer: Sealer | None = None) -> None:
        self._prefix, self._datagram_bytes = prefix, datagram_bytes
        self.sealer = sealer
        self._count = 0  # datagrams of this life: the nonce of each
        self._out = bytearray()  # datagrams that will go out in one send
        self._plain = bytearray()  # a packet that is about to be sealed
        self._segment = 0  # size of each of them but the last
        self._net: NetSockets | None = None  # where they go; None: nothing waits

    def to_one(self, net: NetSockets, member: MemberId, packet: Packet) -> None:
        self.flush()
        size = self._encode(net, packet)
        net.send(self._out, size, net.address(member))
        self._out.clear()

    def to_all(self, net: NetSockets, packet: Packet) -> None:
        """Add a datagram to those that leave together; send what cannot wait."""
        if self._net is not net and self._net is not None:
            self.flush()
        out = self._out
        start = len(out)
        size = self._encode(net, packet)
        if start and (size != self._segment or len(out) > JOINED_BYTES_MAX):
            if size < self._segment and len(out) <= JOINED_BYTES_MAX:  # only the last of a send may be shorter
                self.flush()
                return
            rest = out[start:]
            del out[start:]
            self.flush()
            out += rest
        self._net, self._segment = net, size
        if len(out) % size or len(out) + size > JOINED_BYTES_MAX:
            self.flush()

    def say(self, net: NetSockets, to: MemberId, packet: Packet) -> None:
        """At once: to one member; to all, also where nobody knows the address of one that is no member here."""
        if net.address(to):
            self.to_one(net, to, packet)
        elif to == ALL or net.plan.group is not None:
            self.to_all(net, packet)
            self.flush()

    def flush(self) -> None:
        """What waits leaves now."""
        if self._net is not None:
            self._net.send(self._out, self._segment, self._net.targets)
            self._out.clear()
            self._net = None

    def _encode(self, net: NetSockets, packet: Packet) -> int:
        """Append a packet's datagram, or its train of datagrams, to the buffer; returns the size of the first."""
        if self.sealer is not None:
            plain = self._plain
            _encode_into(packet, plain)
            if len(plain) > self._datagram_bytes - SEALED_BYTES:
                return self._seal_train(self.sealer, net.plan.number, plain)
            self._count += 1
            self.sealer.seal_into(self._out, net.plan.number, self._count, plain)
            return SEALED_BYTES + len(plain)
        out = self._out
        start = len(out)
        self._count += 1
        out += self._prefix
        out += _counter.pack(self._count)
        _encode_into(packet, out, -1)
        size = len(out) - start
        if size <= self._datagram_bytes:
            return size
        assert size <= TRAIN_BYTES_MAX, f"a {type(packet).__name__} of {size} bytes is too large for the network"
        return self._couple(start)

    def _couple(self, start: int) -> int:
        """Turn the one datagram at `start` into a train."""
        out = self._out
        train = couple(self._prefix, self._count, out[start + HEADER_BYTES :], self._datagram_bytes)
        out[start:] = train
        self._count += (len(train) - 1) // self._datagram_bytes
        return self._datagram_bytes

    def _seal_train(self, sealer: Sealer, net: NetId, packet: bytearray) -> int:
        """The same, each sealed for itself."""
        size = SEALED_BYTES + len(packet)
        assert size <= TRAIN_BYTES_MAX, f"a packet of {size} bytes is too large for the network"
        for piece in cut(packet, self._datagram_bytes - SEALED_BYTES - CAR_BYTES):
            self._count += 1
            sealer.seal_into(self._out, net, self._count, piece)
        return self._datagram_bytes
