"""A packet larger than a datagram leaves as a train: all its datagrams, one behind the other."""

from __future__ import annotations

import struct

from ordercast.wire.header import HEADER_BYTES
from ordercast.wire.train import CAR_BYTES, cut

_counter = struct.Struct("<Q")


def couple(prefix: bytes, first: int, packet: bytes | bytearray, datagram_bytes: int) -> list[bytes]:
    """The datagrams of a packet's train, with consecutive counters; all but the last are of `datagram_bytes`."""
    bodies = cut(packet, datagram_bytes - HEADER_BYTES - CAR_BYTES)
    return [prefix + _counter.pack(first + k) + body for k, body in enumerate(bodies)]
