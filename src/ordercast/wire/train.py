"""Packets larger than a datagram: cut into a train of datagrams, put together again on arrival.

Where the path takes 1500 bytes, a frame of 60 kB costs a core no more than one of 1400, and the kernel cuts and joins
trains in one call (segmentation offload).  A train is lost with any of its datagrams, as an IP fragment is; the
protocols repeat it.  The body of each datagram begins with a byte that begins no packet:

    mark 1 (0xC1) | index 2 | total 2 | piece

All pieces but the last are equally long.  A train's datagrams have consecutive counters, so counter - index, which is
the counter of its first car, names the train: cars of many trains may arrive in any order.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ordercast.errors import WireError
from ordercast.types import Nanoseconds

MARK = 0xC1  # never used by MessagePack
_CAR = struct.Struct("<BHH")
CAR_BYTES = _CAR.size
CARS_MAX = 1_024
TRAIN_BYTES_MAX = 2**16
TRAINS_MAX = 1_024  # remembered of one sender's life: on their way, or arrived not long ago
LATE_NS = 1_000_000_000  # a train whose cars are further apart is given up
STATION_BYTES_MAX = 16 * 2**20  # of all trains on their way
CAR_COST = 512  # what keeping a car takes at most, beside its bytes


def cut(packet: bytes | bytearray | memoryview, piece_bytes: int) -> list[bytes]:
    """The bodies of a packet's train."""
    view = memoryview(packet)
    total = -(-len(view) // piece_bytes)
    assert 1 < total <= CARS_MAX and len(view) <= TRAIN_BYTES_MAX
    return [_CAR.pack(MARK, k, total) + view[k * piece_bytes : (k + 1) * piece_bytes] for k in range(total)]


class _Train:
    """One that is on its way; with `pieces` None it has arrived, or was given up."""

    __slots__ = ("began", "cost", "pieces", "size", "total")

    def __init__(self, began: Nanoseconds, total: int) -> None:
        self.began, self.total = began, total
        self.pieces: dict[int, bytes] | None = {}
        self.size = 0  # of every piece but the last; 0: not known yet
        self.cost = 0


class _Line:
    """The trains of one sender's life by name, in the order in which they began to arrive."""

    __slots__ = ("cost", "trains")

    def __init__(self) -> None:
        self.trains: dict[int, _Train] = {}
        self.cost = 0


class Station:
    """Trains that are arriving.  Bounded by lives, trains of each, and bytes; who holds most gives up first."""

    def __init__(self, senders_max: int) -> None:
        self.senders_max = senders_max
        self.arrived = 0
        self.lost = 0  # given up: cars of theirs did not come in time
        self._lines: dict[bytes, _Line] = {}
        self._cost = 0

    def take(self, now: Nanoseconds, sender: bytes, counter: int, body: bytes | memoryview) -> bytes | None:
        """One car; the whole packet when it was the last one missing.  Raise WireError for what is no car."""
        if len(body) <= CAR_BYTES:
            raise WireError("train", "an empty car")
        _, index, total = _CAR.unpack_from(body)
        if not 2 <= total <= CARS_MAX or index >= total or counter < index:
            raise WireError("train", f"car {index} of {total}")
        line = self._lines.get(sender) or self._open(sender)
        size = len(body) - CAR_BYTES
        train = line.trains.get(counter - index)
        if train is None:
            train = self._begin(now, line, counter, index, total, size)
        elif train.total != total:
            raise WireError("train", f"car {index} of {total} in a train of {train.total}")
        elif size != train.size:
            self._weigh(line, train, index, size)
        pieces = train.pieces
        if pieces is None or index in pieces:  # a copy
            return None
        pieces[index] = bytes(body[CAR_BYTES:])
        if len(pieces) < total:
            return None
        self._end(line, train)
        self.arrived += 1
        return b"".join([pieces[k] for k in range(total)])

    def sweep(self, now: Nanoseconds) -> None:
        """Give up what is late."""
        for line in self._lines.values():
            self._sweep(now, line)

    def _open(self, sender: bytes) -> _Line:
        if len(self._lines) >= self.senders_max:
            line = self._lines.pop(next(iter(self._lines)))
            while line.trains:
                self._forget(line)
        line = self._lines[sender] = _Line()
        return line

    def _begin(self, now: Nanoseconds, line: _Line, counter: int, index: int, total: int, size: int) -> _Train:
        train = _Train(now, total)
        if index < total - 1:
            self._weigh(line, train, index, size)
        else:
            self._charge(line, train, size + CAR_COST)
        self._sweep(now, line)
        if len(line.trains) >= TRAINS_MAX:
            self._forget(line)
        line.trains[counter - index] = train
        return train

    def _weigh(self, line: _Line, train: _Train, index: int, size: int) -> None:
        """The first piece tells how long each must be, and what the whole train will cost."""
        last = train.total - 1
        if index == last and (size < train.size or not train.size):
            return
        if train.size or (train.pieces and len(train.pieces[last]) > size):
            raise WireError("train", "pieces of two sizes")
        if last * size > TRAIN_BYTES_MAX:
            raise WireError("train", "too long")
        train.size = size
        self._charge(line, train, train.total * (size + CAR_COST) - train.cost)

    def _charge(self, line: _Line, train: _Train, cost: int) -> None:
        train.cost += cost
        line.cost += cost
        self._cost += cost
        if self._cost > STATION_BYTES_MAX and cost > 0:
            self._crowded()

    def _sweep(self, now: Nanoseconds, line: _Line) -> None:
        while line.trains and now - next(iter(line.trains.values())).began > LATE_NS:
            self._forget(line)

    def _crowded(self) -> None:
        line = max(self._lines.values(), key=lambda line: line.cost)
        while self._cost > STATION_BYTES_MAX and line.trains:
            self._forget(line)

    def _forget(self, line: _Line) -> None:
        """The oldest train of a line."""
        train = line.trains.pop(next(iter(line.trains)))
        if train.pieces is not None:
            self.lost += 1
            self._end(line, train)

    def _end(self, line: _Line, train: _Train) -> None:
        train.pieces = None
        self._charge(line, train, -train.cost)


_COUNTER = struct.Struct("<Q")
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


def joined(datagrams: Sequence[memoryview], bodies: Sequence[bytes | None], prefix_bytes: int) -> bytes | None:
    """The same of datagrams that were sealed, and their bodies (None: one that did not open)."""
    total = len(bodies)
    if total < 2 or None in bodies:
        return None
    prefix, first = datagrams[0][:prefix_bytes], _COUNTER.unpack_from(datagrams[0], prefix_bytes)[0]
    pieces: list[bytes] = []
    for k, (datagram, body) in enumerate(zip(datagrams, bodies, strict=True)):
        if body is None or len(body) <= CAR_BYTES or _CAR.unpack_from(body) != (MARK, k, total):
            return None
        if datagram[:prefix_bytes] != prefix or _COUNTER.unpack_from(datagram, prefix_bytes)[0] != first + k:
            return None
        pieces.append(body[CAR_BYTES:])
    return b"".join(pieces)
