"""Trains: whatever is cut comes back whole, in any order of the cars; what is no train is refused."""

from __future__ import annotations

import random
import struct

import pytest

from ordercast.errors import WireError
from ordercast.wire import header
from ordercast.wire.train import CAR_BYTES, CAR_COST, LATE_NS, MARK, STATION_BYTES_MAX, TRAINS_MAX, Station, cut, whole

A, B = b"sender a" * 3, b"sender b" * 3


def test_cut_and_put_together_in_any_order() -> None:
    rng = random.Random(1)
    for _ in range(300):
        station = Station(2)
        packet = rng.randbytes(rng.randrange(101, 3_000))
        bodies = list(enumerate(cut(packet, rng.randrange(20, 100)), 7))
        assert all(body[0] == MARK for _, body in bodies)
        rng.shuffle(bodies)
        answers = [station.take(0, A, counter, body) for counter, body in bodies]
        assert answers == [None] * (len(bodies) - 1) + [packet]
        assert (station.arrived, station.lost) == (1, 0)


def test_trains_of_one_sender_arrive_in_any_order_all_mixed() -> None:
    rng = random.Random(3)
    station = Station(2)
    packets = [rng.randbytes(rng.randrange(101, 3_000)) for _ in range(60)]
    cars: list[tuple[bytes, int, bytes]] = []
    for sender in (A, B):
        counter = 1
        for packet in packets:
            bodies = cut(packet, 50)
            cars += [(sender, counter + k, body) for k, body in enumerate(bodies)]
            counter += len(bodies) + rng.randrange(2)  # other datagrams leave between trains
    cars += rng.sample(cars, 300)  # the network makes copies
    rng.shuffle(cars)
    got = [packet for car in cars if (packet := station.take(0, *car)) is not None]
    assert sorted(got) == sorted(packets * 2)
    station.sweep(2 * LATE_NS)
    assert (station.arrived, station.lost) == (120, 0), "a copy of a car begins no train"


def test_a_train_whose_cars_stay_away_is_given_up_and_counted() -> None:
    station = Station(2)
    first, second = cut(b"x" * 50, 30)
    assert station.take(0, A, 1, first) is None
    station.sweep(LATE_NS)
    assert station.lost == 0
    assert station.take(LATE_NS + 1, A, 11, first) is None and station.lost == 1, "when a later one begins"
    assert station.take(LATE_NS + 1, A, 2, second) is None, "of a train that is forgotten: the rest will not come"
    assert station.take(LATE_NS + 1, A, 12, second) == b"x" * 50
    station.sweep(3 * LATE_NS)
    assert (station.arrived, station.lost) == (1, 2)


def test_bounded_by_senders_trains_and_bytes() -> None:
    first, second = cut(b"x" * 50, 30)
    station = Station(2)
    for sender in (b"1", b"2", b"3", b"4"):
        assert station.take(0, sender, 1, first) is None
    assert [station.take(0, sender, 2, second) for sender in (b"4", b"3", b"2")] == [b"x" * 50, b"x" * 50, None]
    station = Station(2)
    for k in range(TRAINS_MAX + 1):
        assert station.take(0, A, 10 * k + 1, first) is None
    assert station.lost == 1
    assert station.take(0, A, 2, second) is None and station.take(0, A, 12 + 10, second) == b"x" * 50
    station = Station(2)
    car, count = cut(bytes(60_000), 50_000)[0], STATION_BYTES_MAX // (2 * (50_000 + CAR_COST))
    assert station.take(0, B, 1, first) is None
    for k in range(count + 5):
        assert station.take(0, A, 10 * k + 1, car) is None
    assert 0 < station.lost <= 6 and station._cost <= STATION_BYTES_MAX
    assert station.take(0, B, 2, second) == b"x" * 50, "who takes all the room makes room"


def test_what_is_no_car_is_refused() -> None:
    def car(index: int, total: int, piece: bytes = b"x") -> bytes:
        return struct.pack("<BHH", MARK, index, total) + piece

    for body in (b"\xc1", car(0, 2, b""), car(0, 0), car(0, 1), car(2, 2), car(9, 2), car(0, 65_535)):
        with pytest.raises(WireError):
            Station(2).take(0, A, 100, body)
    with pytest.raises(WireError):
        Station(2).take(0, A, 3, car(5, 9))
    station = Station(2)
    with pytest.raises(WireError, match="too long"):
        station.take(0, A, 100, car(0, 1_000, bytes(2_000)))
    first, second = cut(b"x" * 50, 30)
    assert station.take(0, A, 1, first) is None and station.take(0, A, 2, second) == b"x" * 50
    assert station.take(0, A, 3, first) is None
    for body in (car(1, 3), car(1, 2, bytes(31))):  # the first car was one of two, of 30 bytes
        with pytest.raises(WireError):
            station.take(0, A, 4, body)
    assert station.take(0, A, 4, second) == b"x" * 50
    assert station.take(0, A, 1_009, car(9, 10, bytes(20))) is None  # the last one comes first
    for body in (car(8, 10, bytes(19)), car(8, 10, bytes(10_000))):  # shorter than the last; too long in all
        with pytest.raises(WireError):
            station.take(0, A, 1_008, body)
    answers = [station.take(0, A, 1_000 + k, car(k, 10, bytes(20))) for k in range(9)]
    assert answers == [None] * 8 + [bytes(200)]
    assert station._cost == 0 and all(line.cost == 0 for line in station._lines.values())


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
