"""Trains: whatever is cut comes back whole, in any order of the cars; what is no train is refused."""

from __future__ import annotations

import random
import struct

import pytest

from ordercast.errors import WireError
from ordercast.wire import header
from ordercast.wire.train import CAR_BYTES, MARK, Station, cut, whole

A, B = b"sender a" * 3, b"sender b" * 3


def test_cut_and_put_together_in_any_order() -> None:
    rng = random.Random(1)
    for _ in range(300):
        station = Station(2)
        packet = rng.randbytes(rng.randrange(101, 3_000))
        bodies = list(enumerate(cut(packet, rng.randrange(20, 100)), 7))
        assert all(body[0] == MARK for _, body in bodies)
        rng.shuffle(bodies)
        answers = [station.take(A, counter, body) for counter, body in bodies]
        assert answers == [None] * (len(bodies) - 1) + [packet]
        assert station.lost == 0


def test_senders_do_not_mix_and_a_later_train_ends_an_earlier() -> None:
    station = Station(2)
    first, second = cut(b"x" * 50, 30), cut(b"y" * 50, 30)
    assert station.take(A, 1, first[0]) is None
    assert station.take(B, 1, second[0]) is None
    assert station.take(A, 2, first[1]) == b"x" * 50
    assert station.take(B, 5, second[0]) is None and station.lost == 1
    with pytest.raises(WireError):
        station.take(B, 2, second[1])
    assert station.take(B, 6, second[1]) == b"y" * 50
    for sender in (b"1", b"2", b"3", b"4"):
        assert station.take(sender, 1, first[0]) is None
    assert [station.take(sender, 2, first[1]) for sender in (b"4", b"3", b"2")] == [b"x" * 50, b"x" * 50, None]


def test_what_is_no_car_is_refused() -> None:
    def car(index: int, total: int, piece: bytes = b"x") -> bytes:
        return struct.pack("<BHH", MARK, index, total) + piece

    for body in (b"\xc1", car(0, 2, b""), car(0, 0), car(0, 1), car(2, 2), car(9, 2), car(0, 65_535)):
        with pytest.raises(WireError):
            Station(2).take(A, 100, body)
    with pytest.raises(WireError):
        Station(2).take(A, 3, car(5, 9))
    station = Station(2)
    with pytest.raises(WireError):
        for k in range(40):
            station.take(A, 100 + k, car(k, 1_000, bytes(2_000)))
    first, second = cut(b"x" * 50, 30)  # an earlier train, refused if that one were still awaited
    assert station.take(A, 1, first) is None and station.take(A, 2, second) == b"x" * 50


def test_a_whole_train_in_one_read() -> None:
    rng = random.Random(2)
    for _ in range(300):
        packet, piece = rng.randbytes(rng.randrange(101, 3_000)), rng.randrange(20, 100)
        cars = [header.pack(7, 1, 2, 50 + k) + body for k, body in enumerate(cut(packet, piece))]
        data = b"".join(cars)
        segment = header.HEADER_BYTES + CAR_BYTES + piece
        assert whole(data, segment, 24) == packet
        damaged = bytearray(data)
        at = rng.choice([k * segment for k in range(len(cars))]) + rng.randrange(header.HEADER_BYTES + CAR_BYTES)
        damaged[at] ^= 1 << rng.randrange(8)
        assert whole(bytes(damaged), segment, 24) is None
        assert whole(b"".join(cars[1:]), segment, 24) is None
        assert whole(b"".join(cars[::-1]), segment, 24) is None
