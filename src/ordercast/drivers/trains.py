"""A packet larger than a datagram leaves as a train: all its datagrams, one behind the other."""

from __future__ import annotations

import struct

from ordercast.wire.header import HEADER_BYTES
from ordercast.wire.train import CAR_BYTES, cut

_counter = struct.Struct("<Q")


def couple(prefix: bytes, first: int, packet: bytes | bytearray, datagram_bytes: int) -> bytes:
    """The datagrams of a packet's train, with consecutive counters; all but the last are of `datagram_bytes`."""
    parts: list[bytes] = []
    for k, body in enumerate(cut(packet, datagram_bytes - HEADER_BYTES - CAR_BYTES), first):
        parts += (prefix, _counter.pack(k), body)
    return b"".join(parts)


def cars(train: bytes, datagram_bytes: int) -> list[bytes]:
    """Each datagram of a train."""
    return [train[at : at + datagram_bytes] for at in range(0, len(train), datagram_bytes)]
