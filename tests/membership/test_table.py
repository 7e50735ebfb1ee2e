"""Rows: versions, contradiction, relay, packing."""

import contextlib
import random

import pytest

from ordercast.errors import WireError
from ordercast.membership import PACKETS, Hello
from ordercast.membership.cause import START, tell
from ordercast.membership.choose import NO_VIEW, Row
from ordercast.membership.packets import CommitToken, Entry, Got, Join, PackedRow, PackedRows, Rival
from ordercast.membership.table import NOBODY, Table, pack, unpack
from ordercast.membership.voice import join_bytes
from ordercast.types import Cause, ViewId
from ordercast.wire.codec import Codec

CODEC = Codec(PACKETS)
EVERYBODY = frozenset({1, 2, 3})


def table():
    return Table(1, 7, EVERYBODY, 0)


def row(q, version=1, incarnation=7, hears=EVERYBODY, view=NO_VIEW, working=False):
    return Row(q, incarnation, version, view, working, hears)


# ----------------------------------------------------------------------------------------------------------- versions


def test_newer_wins_whatever_the_order():
    rng = random.Random(1)
    for _ in range(200):
        rows = [row(2, rng.randint(1, 5), rng.randint(1, 3), frozenset({2, rng.randint(1, 3)})) for _ in range(12)]
        newest = max(rows, key=lambda r: (r.incarnation, r.version))
        same = [r for r in rows if (r.incarnation, r.version) != (newest.incarnation, newest.version)]
        for order in ([*same, newest], [newest, *same]):
            rng.shuffle(order)
            t = table()
            for each in order:
                t.take(1, each)
            assert (t.rows[2].incarnation, t.rows[2].version) == (newest.incarnation, newest.version)


def test_moved_is_when_hearing_changed_and_shown_when_views_did():
    t = table()
    t.take(5, row(2))
    assert t.moved == t.shown == 5
    t.take(6, row(2, 2, working=True))
    assert (t.moved, t.shown) == (5, 6)
    t.take(7, row(2, 3, hears=frozenset({2}), working=True))
    assert (t.moved, t.shown) == (7, 6)


def test_nobody_is_declared_gone_against_its_will():
    mine, other = table(), Table(2, 7, EVERYBODY, 0)
    other.take(1, mine.own)
    assert other.gone(2, 1)
    assert not other.rows[1].hears
    assert mine.take(3, other.rows[1])  # contradiction
    assert mine.own.hears and mine.own.version == other.rows[1].version + 1
    assert other.take(4, mine.own)
    assert other.rows[1].hears


def test_a_hint_with_my_own_version_is_contradicted_too():
    mine, other = table(), Table(2, 7, EVERYBODY, 0)
    other.take(1, mine.own)
    other.gone(2, 1)
    mine.write(2, NO_VIEW, False, frozenset({1, 2}))  # the same version, at the same time
    assert mine.own.version == other.rows[1].version
    assert mine.take(3, other.rows[1])
    assert mine.own.version == other.rows[1].version + 1
    assert not mine.take(4, mine.own), "my own row, relayed, is no contradiction"


def test_my_former_life_is_not_contradicted():
    t = table()
    assert not t.take(1, row(1, 9, incarnation=6, hears=NOBODY))
    assert t.own.version == 1


def test_strangers_rows_are_not_taken():
    assert not table().take(1, row(9))


def test_the_row_of_a_former_life_is_void():
    t = table()
    t.take(1, row(2, incarnation=3))
    t.void(2, 2, 4)
    assert 2 not in t.rows and t.moved == 2


def test_rows_nobody_hears_are_not_relayed_for_ever():
    t = table()
    t.write(0, NO_VIEW, False, frozenset({1, 3}))
    t.take(1, row(2, hears=EVERYBODY))
    t.take(1, row(3, hears=frozenset({1, 3})))
    assert [r.id for r in t.relayed(10, 60)] == [1, 2, 3]
    assert [r.id for r in t.relayed(71, 60)] == [1, 3]
    t.take(80, row(3, 2, hears=EVERYBODY))
    assert [r.id for r in t.relayed(80, 60)] == [1, 2, 3]


def test_news_is_relayed_where_somebody_does_not_hear_it():
    t = table()
    t.take(1, row(2))
    t.take(1, row(3))
    assert not t.worth_relaying(2)
    t.take(2, row(3, 2, hears=frozenset({1, 3})))
    assert t.worth_relaying(2)


# ------------------------------------------------------------------------------------------------------------ packing


def random_table(rng, n):
    ids = sorted(rng.sample(range(1, 2**32 - 1), n))
    rings = [ViewId(rng.randint(0, 2**60), rng.choice(ids)) for _ in range(rng.randint(1, 4))]
    return [
        Row(
            q, rng.randint(0, 2**62), rng.randint(1, 2**31), rng.choice(rings), rng.random() < 0.5,
            frozenset(r for r in ids if rng.random() < 0.7),
        )
        for q in ids
    ]  # fmt: skip


def test_rows_survive_the_wire_in_any_number_of_packets():
    rng = random.Random(2)
    for _ in range(300):
        rows = random_table(rng, rng.randint(1, 64))
        limit = rng.choice([60, 200, 548, 1400, 60_000])
        packets = [Hello(NO_VIEW, packed) for packed in pack(rows, limit)]
        back = [CODEC.decode(CODEC.encode(packet)) for packet in packets]
        assert [r for packet in back for r in unpack(packet.rows)] == rows


def test_packets_with_rows_keep_within_what_they_may_have():
    rng = random.Random(3)
    full = 0
    for _ in range(300):
        rows = random_table(rng, rng.randint(1, 64))
        proposal = tuple(row.id for row in rows)
        view, told = rows[0].view, tell(Cause("broken link", 2, "T_loss", "nicht gehört " * rng.randint(0, 20)))
        limit = rng.choice([700, 1400, 2800])
        hellos = [Hello(view, packed, Rival(2**62, True, 2**62)) for packed in pack(rows, limit)]
        got = Got(view, 1, 2**62)
        joins = [
            Join(2**31, 2**62, proposal, got, packed, 2**62, told)
            for packed in pack(rows, limit, join_bytes(proposal, told))
        ]
        for packets in (hellos, joins):
            sizes = [CODEC.size(packet) for packet in packets]
            alone = [len(packet.rows.rows) == 1 for packet in packets]
            assert all(size <= limit or one for size, one in zip(sizes, alone, strict=True)), "a lone row always goes"
            full += sum(limit - 64 < size <= limit for size in sizes[:-1])
    assert full > 100, "no room is left that a row would have fitted in"


@pytest.mark.parametrize("n, packets", [(3, 1), (9, 1), (16, 1), (32, 1), (64, 2)])
def test_a_table_is_small(n, packets):
    ids = frozenset(range(1, n + 1))
    rows = [Row(q, 1_700_000_000_000_000_000 + q, 40, ViewId(1_700_000_000_000, 1), True, ids) for q in ids]
    sizes = [CODEC.size(Hello(NO_VIEW, packed)) for packed in pack(rows, 1400)]
    assert len(sizes) <= packets and max(sizes) <= 1400
    assert sum(sizes) <= 30 * n + n * n // 8 + 60


# ------------------------------------------------------------------------------------------------------ what is refused

GOOD = PackedRows((1, 2), (NO_VIEW,), (PackedRow(0, 1, 1, 0, False, b"\x03"),))


def join(**fields):
    values = {
        "number": 1, "ring_seq": 4, "proposal": (1, 2), "got": Got(ViewId(4, 1), 1, 9), "rows": GOOD,
        "timeout_ns": 40_000_000, "cause": tell(START),
    }  # fmt: skip
    return Join(**{**values, **fields})


def token(**fields):
    values = {
        "ring_id": ViewId(8, 1), "members": (1, 2, 3), "hop": 2, "to": 3, "entries": (Entry(1, b""), Entry(1, b"")),
    }  # fmt: skip
    return CommitToken(**{**values, **fields})


@pytest.mark.parametrize("packet", [Hello(NO_VIEW, GOOD), join(), join(got=None, proposal=()), token()])
def test_good_packets_pass(packet):
    assert CODEC.decode(CODEC.encode(packet)) == packet


@pytest.mark.parametrize(
    "packet, why",
    [
        (Hello(NO_VIEW, PackedRows((1, 1), (NO_VIEW,), ())), "an id twice"),
        (Hello(NO_VIEW, PackedRows((1,), (NO_VIEW,), (PackedRow(1, 1, 1, 0, False, b""),))), "index"),
        (Hello(NO_VIEW, PackedRows((1,), (NO_VIEW,), (PackedRow(0, 1, 1, 1, False, b""),))), "index"),
        (Hello(NO_VIEW, PackedRows((1,), (NO_VIEW,), (PackedRow(0, 1, 1, 0, False, b"\x02"),))), "hears"),
        (Hello(NO_VIEW, PackedRows((1,), (NO_VIEW,), (PackedRow(0, 1, 2**32 - 1, 0, False, b"\x01"),))), "version"),
        (Hello(NO_VIEW, PackedRows((1,), (ViewId(2**63 - 1, 1),), ())), "Expected `int` <= "),
        (join(ring_seq=2**63 - 1), "ring_seq"),
        (join(proposal=(2, 1)), "not sorted"),
        (join(proposal=(1, 1)), "not sorted"),
        (token(members=(1, 3, 2)), "not sorted"),
        (token(ring_id=ViewId(8, 2)), "ring_id"),
        (token(ring_id=ViewId(2**63 - 1, 1)), "Expected `int` <= "),
        (token(hop=0, entries=(), to=1), "hop"),
        (token(hop=7), "hop"),
        (token(hop=2, entries=(Entry(1, b""),)), "hop"),
        (token(to=1), "addressee"),
    ],
)
def test_bad_packets_are_refused(packet, why):
    with pytest.raises(WireError, match=why):
        CODEC.decode(CODEC.encode(packet))


def test_damaged_packets_become_wire_errors_only():
    rng = random.Random(3)
    good = [CODEC.encode(p) for p in (Hello(NO_VIEW, GOOD), join(), token())]
    for _ in range(5000):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(WireError):
            packet = CODEC.decode(bytes(data[: rng.randint(1, len(data))]))
            assert CODEC.decode(CODEC.encode(packet)) == packet, "what passes is sound"
