"""Datagrams: the header's checks in their order, every packet there and back, and nothing but WireError for junk."""

from __future__ import annotations

import random
import struct

import pytest

from ordercast import registry
from ordercast.errors import WireError
from ordercast.protocols.hybrid import Null, Sent
from ordercast.transis.packets import Data, Nack, Retrans, Status
from ordercast.types import Frame, ViewId
from ordercast.wire import header
from ordercast.wire.codec import Codec

GROUP = header.group_id("g")
CODEC = Codec(registry.get("token_site").packets)
VIEW = ViewId(1, 1)
FRAME = Frame(1, 2**62, 3, 2, 3, struct.pack("<II", 1, 2), b"abc", ("g", "h"))
DATA = Data(VIEW, 5, (1, 5, 2), 64, Sent(2, (3, 0), FRAME, ((1, 2, 3),), 9))
PACKETS = [
    DATA,
    Data(VIEW, 1, (1,), 0, Null(((1, 2, 3),) * 1024, 7)),
    Retrans(1, DATA),
    Status(VIEW, (0, 2**40, 3), 64),
    Nack(VIEW, ((0, 1, 1), (2, 5, 9)), again=True),
]


def test_the_header_is_32_bytes_and_comes_back() -> None:
    raw = header.pack(GROUP, 4, 2**60, 2**64 - 1) + b"x"
    assert header.HEADER_BYTES == 32
    got = header.unpack(raw, GROUP)
    assert (got.sender, got.incarnation, got.counter) == (4, 2**60, 2**64 - 1)


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", "short"),
        (b"o", "short"),
        (header.pack(GROUP, 1, 1, 1), "short"),
        (header.pack(GROUP, 1, 1, 1) + bytes(65_507), "long"),
        (b"xx" + header.pack(GROUP, 1, 1, 1)[2:] + b"x", "magic"),
        (b"oc\x02" + header.pack(GROUP, 1, 1, 1)[3:] + b"x", "version"),
        (header.pack(GROUP, 1, 1, 1, key_id=3) + b"x", "key"),
        (header.pack(header.group_id("other"), 1, 1, 1) + b"x", "group"),
    ],
)
def test_bad_headers_are_named(datagram: bytes, reason: str) -> None:
    with pytest.raises(WireError) as error:
        header.unpack(datagram, GROUP)
    assert error.value.reason == reason


@pytest.mark.parametrize("packet", PACKETS, ids=lambda p: type(p).__name__)
def test_every_packet_comes_back(packet: object) -> None:
    data = CODEC.encode(packet)  # type: ignore[arg-type]
    assert CODEC.decode(data) == packet
    assert CODEC.size(packet) == len(data)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "packet",
    [
        Data(VIEW, 4, (1, 5, 2), 64, Null((), 1)),
        Data(VIEW, 0, (0, 5, 2), 64, Null((), 1)),
        Data(VIEW, 5, (1,) * 65, 64, Null((), 1)),
        Data(VIEW, 5, (), 64, Null((), 1)),
        Data(VIEW, 5, (5,), 2**16, Null((), 1)),
        Data(VIEW, 5, (5,), 1, Null(((1, 2, 3),) * 1025, 1)),
        Data(VIEW, 5, (5,), 1, Sent(0, (3, 0), FRAME)),
        Retrans(2, DATA),
        Retrans(9, DATA),
        Nack(VIEW, ()),
        Nack(VIEW, ((0, 2, 1),)),
        Nack(VIEW, ((0, 0, 1),)),
        Nack(VIEW, ((0, 1, 1),) * 65),
        Status(VIEW, (-1,), 1),
    ],
)
def test_counts_out_of_bounds_are_refused(packet: object) -> None:
    with pytest.raises(WireError):
        CODEC.decode(CODEC.encode(packet))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x91" * 200_000,
        b"\xdd\xff\xff\xff\xff",
        b"\x93\x14\x92\x01\x01\xdd\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x92\x63\x00",
        b"\x94\x16\x92\x01\x01\x93\x00\x00\x00\x01\x00",
    ],
    ids=["empty", "nested", "huge array", "huge vector", "huge bytes", "unknown kind", "trailing"],
)
def test_hostile_bytes(data: bytes) -> None:
    with pytest.raises(WireError):
        CODEC.decode(data)


def test_flipped_cut_and_lengthened_packets_raise_nothing_else() -> None:
    rng = random.Random(2)
    raw = [CODEC.encode(p) for p in PACKETS]
    for _ in range(20_000):
        data = bytearray(rng.choice(raw))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        elif rng.random() < 0.1:
            data += rng.randbytes(3)
        try:
            CODEC.decode(bytes(data))
        except WireError:
            continue
