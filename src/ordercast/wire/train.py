"""Packets larger than a datagram: cut into a train of datagrams, put together again on arrival.

Where the path takes 1500 bytes, a frame of 60 kB costs a core no more than one of 1400, and the kernel cuts and joins
trains in one call (segmentation offload).  A train is lost with any of its datagrams, as an IP fragment is; the
protocols repeat it.  The body of each datagram begins with a byte that begins no packet:

    mark 1 (0xC1) | index 2 | total 2 | piece

All pieces but the last are equally long.  A train's datagrams have consecutive counters, so counter - index names it.
"""

from __future__ import annotations

import struct

from ordercast.errors import WireError

MARK = 0xC1  # never used by MessagePack
_CAR = struct.Struct("<BHH")
CAR_BYTES = _CAR.size
CARS_MAX = 1_024
TRAIN_BYTES_MAX = 2**16


def cut(packet: bytes | bytearray | memoryview, piece_bytes: int) -> list[bytes]:
    """The bodies of a packet's train."""
    view = memoryview(packet)
    total = -(-len(view) // piece_bytes)
    assert 1 < total <= CARS_MAX and len(view) <= TRAIN_BYTES_MAX
    return [_CAR.pack(MARK, k, total) + view[k * piece_bytes : (k + 1) * piece_bytes] for k in range(total)]


class _Train:
    __slots__ = ("bytes", "first", "pieces", "total")

    def __init__(self, first: int, total: int) -> None:
        self.first, self.total = first, total
        self.pieces: dict[int, bytes] = {}
        self.bytes = 0


class Station:
    """Trains that are arriving, at most one of each sender's life; bounded by the number of senders."""

    def __init__(self, senders_max: int) -> None:
        self.senders_max = senders_max
        self.lost = 0  # trains given up because a later one began
        self._open: dict[bytes, _Train] = {}

    def take(self, sender: bytes, counter: int, body: bytes | memoryview) -> bytes | None:
        """One car; the whole packet when it was the last one missing.  Raise WireError for what is no car."""
        if len(body) <= CAR_BYTES:
            raise WireError("train", "an empty car")
        _, index, total = _CAR.unpack_from(body)
        if not 2 <= total <= CARS_MAX or index >= total or counter < index:
            raise WireError("train", f"car {index} of {total}")
        first = counter - index
        train = self._open.get(sender)
        if train is None or train.first != first or train.total != total:
            if train is not None:
                if first < train.first:
                    raise WireError("train", "of an earlier train")
                self.lost += 1
                del self._open[sender]
            elif len(self._open) >= self.senders_max:
                del self._open[next(iter(self._open))]
            train = self._open[sender] = _Train(first, total)
        piece = bytes(body[CAR_BYTES:])
        if index not in train.pieces:
            train.pieces[index] = piece
            train.bytes += len(piece)
        if train.bytes > TRAIN_BYTES_MAX:
            del self._open[sender]
            raise WireError("train", "too long")
        if len(train.pieces) < total:
            return None
        del self._open[sender]
        return b"".join(train.pieces[k] for k in range(total))


_REST = struct.Struct("<QBHH")  # counter of the datagram's header, then the car's


def whole(data: bytes, segment: int, prefix_bytes: int) -> bytes | None:
    """The packet of a train that arrived complete, in order and in one read (datagrams of `segment` bytes each)."""
    head = prefix_bytes + _REST.size
    count = -(-len(data) // segment)
    if len(data) - (count - 1) * segment <= head or count < 2:
        return None
    prefix = data[:prefix_bytes]
    counter, mark, index, total = _REST.unpack_from(data, prefix_bytes)
    if mark != MARK or index != 0 or total != count:
        return None
    unpack = _REST.unpack_from
    starts = range(0, len(data), segment)
    for k, start in enumerate(starts):
        at = start + prefix_bytes
        if data[start:at] != prefix or unpack(data, at) != (counter + k, MARK, k, total):
            return None
    return b"".join([data[start + head : start + segment] for start in starts])
