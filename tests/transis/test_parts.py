"""The layer's parts alone: plans against a dumb twin, the exchange, the barrier, unicasts, the seam, bad packets."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import msgspec
import pytest

from ordercast.contract import Flush, Frozen, Ordered, SetTimer, Transmit, UnicastReceived, Up, ViewChange, dropped
from ordercast.errors import WireError
from ordercast.limits import COMMIT_TOKEN_BYTES_MAX, UNICASTS_MAX, entry_bytes_max
from ordercast.membership.bitmap import from_bitmap, to_bitmap
from ordercast.membership.packets import CommitToken, Entry
from ordercast.protocols.causal import Sent
from ordercast.seam import Seam
from ordercast.transis.barrier import Barrier
from ordercast.transis.exchange import Exchange
from ordercast.transis.install import insertion
from ordercast.transis.packets import (
    Data,
    FlushData,
    FlushNack,
    FlushState,
    FlushToken,
    Status,
    UAck,
    Unicast,
    packets,
)
from ordercast.transis.plan import LayerEntry, components
from ordercast.transis.unicast import Unicasts
from ordercast.types import Frame, Service, View, ViewId, ViewKind
from ordercast.wire.codec import Codec

V, W = ViewId(8, 1), ViewId(12, 1)
MS = 1_000_000


def frame(sender: int = 1, counter: int = 1, service: Service = Service.CAUSAL) -> Frame:
    return Frame(sender, 1, counter, 1, int(service), b"\x01\0\0\0", b"x")


def data(rank: int, seq: int, n: int = 3, **vec: int) -> Data[Any]:
    follows = [vec.get(f"r{q}", 0) for q in range(n)]
    follows[rank] = seq
    return Data(V, seq, tuple(follows), 64, Sent(frame(rank + 1, seq)))


# --------------------------------------------------------------------------------------------------------------- plans


def test_components_equal_their_dumb_twin() -> None:
    """Random entries: each rule of the specification, said once more in the slowest way."""
    rng = random.Random(7)
    for _ in range(2_000):
        members = list(range(1, rng.randint(2, 6)))
        plans = [(ViewId(20, t), tuple(sorted(rng.sample(range(1, 7), rng.randint(1, 4))))) for t in (1, 2)]
        entries = {}
        for m in members:
            carries = [plan for plan in plans if m in plan[1] and rng.random() < 0.6]
            entries[m] = (ViewId(rng.choice((8, 12)), 1), carries[0] if carries else None)
        got = components(ViewId(24, 1), entries)
        assert sorted(m for c in got for m in c.members) == members
        for c in got:
            group = {m: plan for m, (view, plan) in entries.items() if view == c.view}
            for m in c.members:
                mine = group[m]
                alive = mine is not None and all(group[q] == mine for q in mine[1] if q in group)
                assert c.plan == (mine if alive else None)
                assert c.together == (mine[1] if alive and mine is not None else c.members)
            others = [o for o in got if o.view == c.view and o is not c]
            assert c.intermediate == (ViewId(23, c.members[0]) if others else None)
            assert not any(o.plan == c.plan for o in others), "one component per plan, one without"


def test_members_in_a_bitmap_and_back() -> None:
    configured = (3, 5, 9, 70)
    for size in range(5):
        for some in permutations(configured, size):
            if list(some) == sorted(some):
                assert from_bitmap(to_bitmap(some, configured), configured) == some
    assert from_bitmap(b"\x10", configured) is None


def test_the_largest_commit_token_fits_a_packet() -> None:
    """64 members, each with the largest numbers and a plan; and what is left is the share of each."""
    ids = tuple(2**32 - 1 - k for k in range(63, -1, -1))
    ring = ViewId(2**62 - 4, ids[0])
    entry = LayerEntry(ViewId(2**62 - 1, ids[-1]), (2**63 - 1,) * 64, (ring, to_bitmap(ids, ids)))
    state = msgspec.msgpack.encode(entry)
    assert len(state) <= entry_bytes_max(64)
    token = CommitToken(ring, ids, 128, ids[0], tuple(Entry(2**63 - 1, state) for _ in ids))
    assert len(msgspec.msgpack.encode(token)) <= COMMIT_TOKEN_BYTES_MAX


# ------------------------------------------------------------------------------------------------------------ exchange


def exchange(me: int, haves: dict[int, tuple[int, ...]], state: bytes = b"s") -> Exchange:
    buffer = {(q, k): data(q, k) for q in range(3) for k in range(1, haves[me][q] + 1)}
    return Exchange(me, W, V, haves, buffer, state, 100)


def test_an_exchange_ends_when_all_messages_and_states_are_here() -> None:
    haves = {1: (2, 0, 1), 2: (1, 0, 1), 3: (1, 0, 3)}
    one, two, three = (exchange(m, haves, b"state of %d" % m * 20) for m in (1, 2, 3))
    assert sorted(two.lacking.items()) == [((0, 2), 1), ((2, 2), 3), ((2, 3), 3)]
    for giver in (one, three):
        for packet in giver.first(0):
            (two.take if isinstance(packet, FlushData) else two.take_state)(packet)  # type: ignore[operator]
    assert two.complete and two.plan().cut == (2, 0, 3)
    assert two.plan().states == tuple(b"state of %d" % m * 20 for m in (1, 2, 3))
    assert sorted(two.plan().missing) == [(0, 2), (2, 2), (2, 3)]


def test_what_is_missing_is_given_by_each_in_turn() -> None:
    haves = {1: (2, 0, 0), 2: (2, 0, 0), 3: (1, 0, 0)}
    parts = {m: exchange(m, haves) for m in (1, 2, 3)}
    answers = []
    for _ in range(4):
        nack = parts[3].missing()
        answers.append([m for m in (1, 2) for p in parts[m].answer(0, nack, 0) if isinstance(p, FlushData)])
    assert answers == [[1], [2], [], [1]], "the third turn is of the asker itself"
    assert parts[3].owed_by() == [1, 2], "1 the message, both their states"


def test_what_was_just_sent_is_not_sent_again() -> None:
    one = exchange(1, {1: (1, 0, 0), 2: (0, 0, 0)})
    assert len(one.first(0)) == 2
    nack = exchange(2, {1: (1, 0, 0), 2: (0, 0, 0)}).missing()
    assert one.answer(MS, nack, 2 * MS) == []
    assert len(one.answer(2 * MS, nack, 2 * MS)) == 2


def test_messages_of_another_view_or_beyond_the_cut_are_not_taken() -> None:
    two = exchange(2, {1: (1, 0, 0), 2: (0, 0, 0)})
    good = data(0, 1)
    for bad, why in (
        (FlushData(W, 0, data(0, 2)), "flush data"), (FlushData(W, 1, data(1, 1)), "flush data"),
        (FlushData(W, 0, msgspec.structs.replace(good, vec=(1,))), "vector"),
        (FlushState(W, V, 9, 0, 1, b"s"), "flush state"),
    ):  # fmt: skip
        assert two.doubt(bad) == why
    others: tuple[Any, ...] = (FlushData(W, 0, msgspec.structs.replace(good, view=W)), FlushState(W, W, 9, 0, 1, b"s"))
    assert [two.doubt(other) for other in others] == ["", ""], "of others, who come from another view"
    assert not two.take(others[0]) and not two.take_state(others[1])
    assert not two.doubt(FlushData(W, 0, good))
    assert two.take(FlushData(W, 0, good)) and not two.take(FlushData(W, 0, good))


def test_the_missing_part_is_inserted_in_one_order_at_all() -> None:
    """Repeatedly the insertable message with the smallest (rank, seq)."""
    missing = {(0, 1): data(0, 1, r2=1), (1, 1): data(1, 1), (2, 1): data(2, 1), (2, 2): data(2, 2)}
    assert [key[:2] for key in insertion([0, 0, 0], missing, True)] == [(1, 1), (2, 1), (0, 1), (2, 2)]
    assert [key[:2] for key in insertion([0, 0, 0], missing, False)] == [(0, 1), (1, 1), (2, 1), (2, 2)]


# ------------------------------------------------------------------------------------------------------------- barrier


def test_a_token_goes_round_until_all_are_done_and_once_more() -> None:
    members = (1, 2, 3)
    barriers = {m: Barrier(W, members, m) for m in members}
    done, visits = {1}, []
    barriers[1].first()
    at = 1
    for _ in range(12):
        token = barriers[at].take()
        after = barriers[at].visit(token, at in done)
        visits.append((at, None if after is None else after.install))
        if after is None:
            break
        done.add(after.to)
        at = after.to
        assert barriers[at].keep(after) == [] and barriers[at].pending is after
        assert barriers[at].keep(FlushToken(W, at, after.number, ())) == [] and barriers[at].pending is after, "a copy"
    assert visits == [(1, False), (2, False), (3, True), (1, True), (2, True), (3, None)]


def test_a_token_that_cannot_be_is_not_kept() -> None:
    barrier = Barrier(W, (1, 2, 3), 2)
    for bad in (FlushToken(W, 2, 1, (9,)), FlushToken(W, 2, 1, (1, 3), install=True)):
        assert barrier.keep(bad) == [dropped("flush token")] and barrier.pending is None
    assert barrier.keep(FlushToken(W, 3, 1, ())) == [] and barrier.pending is None, "for another"
    assert barrier.keep(FlushToken(W, 2, 1, (1, 2, 3), install=True)) == [] and barrier.pending is not None


# ------------------------------------------------------------------------------------------------------------ unicasts


class Pair:
    """Two members and a network that loses, copies and reorders."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now = rng, 0
        self.ends = {m: Unicasts(m, V, (1, 2), 40 * MS) for m in (1, 2)}
        self.way: list[tuple[int, Any]] = []
        self.timers: dict[tuple[int, str], int] = {}
        self.got: dict[int, list[int]] = {1: [], 2: []}

    def act(self, member: int, actions: list[Any]) -> None:
        for action in actions:
            match action:
                case Transmit(packet=packet):
                    self.way += [(3 - member, packet)] * self.rng.choice((0, 1, 1, 2))
                case SetTimer(name=name, at=at):
                    self.timers[member, name] = at
                case Up(event=UnicastReceived(body=body)):
                    self.got[member].append(body.frame.counter)

    def step(self) -> None:
        self.now += MS // 2
        for (member, name), at in list(self.timers.items()):
            if at <= self.now:
                del self.timers[member, name]
                end = self.ends[member]
                self.act(member, end.repeat(self.now) if name == "unicast" else end.acks(self.now))
        self.rng.shuffle(self.way)
        for _ in range(self.rng.randint(0, len(self.way))):
            to, packet = self.way.pop()
            end = self.ends[to]
            if isinstance(packet, Unicast):
                self.act(to, end.receive(self.now, 3 - to, packet))
            else:
                self.act(to, end.acked(self.now, 3 - to, packet.uack))


def test_unicasts_come_once_and_in_order_whatever_the_network_does() -> None:
    for seed in range(30):
        pair = Pair(random.Random(seed))
        sent = {1: 0, 2: 0}
        for _ in range(120):
            for member in (1, 2):
                if pair.rng.random() < 0.5:
                    sent[member] += 1
                    body = Sent(frame(member, sent[member]))
                    pair.act(member, pair.ends[member].send(pair.now, 3 - member, body))
            pair.step()
        for _ in range(2_000):
            if not any(end.waiting() for end in pair.ends.values()):
                break
            pair.step()
        assert pair.got == {1: list(range(1, sent[2] + 1)), 2: list(range(1, sent[1] + 1))}
        assert not any(end.waiting() for end in pair.ends.values())


def test_what_comes_again_is_acknowledged_by_multicast() -> None:
    """The direct way back may be broken, and no Status is due in an idle group."""
    two = Unicasts(2, V, (1, 2), 40 * MS)
    packet = Unicast(V, 2, 1, 0, Sent(frame(1)))
    two.receive(0, 1, packet)
    assert two.acks(3 * MS) == [Transmit(0, 1, UAck(V, 1, 1))]
    two.receive(9 * MS, 1, packet)
    assert two.acks(12 * MS) == [Transmit(0, -1, UAck(V, 1, 1))]
    two.receive(15 * MS, 1, Unicast(V, 2, 2, 0, Sent(frame(2))))
    assert two.acks(18 * MS) == [Transmit(0, 1, UAck(V, 1, 2))]


def test_unicasts_beyond_the_window_wait_and_are_refused() -> None:
    one = Unicasts(1, V, (1, 2), 40 * MS)
    sent = [a for _ in range(UNICASTS_MAX + 5) for a in one.send(0, 2, Sent(frame())) if isinstance(a, Transmit)]
    assert len(sent) == UNICASTS_MAX and one.waiting() == UNICASTS_MAX + 5
    more = [a for a in one.acked(MS, 2, 3) if isinstance(a, Transmit)]
    assert len(more) == 3
    assert one.acked(MS, 2, 10**6) == [], "what was never sent is not acknowledged"
    two = Unicasts(2, V, (1, 2), 40 * MS)
    far = Unicast(V, 2, UNICASTS_MAX + 1, 0, Sent(frame()))
    assert two.receive(0, 1, far) == [dropped("unicast beyond the window")]


def test_what_is_acknowledged_alone_is_not_repeated() -> None:
    """The acknowledgement that nothing else carries goes before the repetition would."""
    one, two = (Unicasts(m, V, (1, 2), 400 * MS) for m in (1, 2))
    (packet,) = (a.packet for a in one.send(0, 2, Sent(frame())) if isinstance(a, Transmit))
    (alone,) = (a for a in two.receive(MS, 1, packet) if isinstance(a, SetTimer))
    assert one.due is not None and alone.at < one.due
    (uack,) = (a.packet for a in two.acks(alone.at) if isinstance(a, Transmit))
    one.acked(alone.at + MS, 2, uack.uack)
    assert one.waiting() == 0 and one.repeat(one.due) == []


def test_from_the_second_repetition_on_by_multicast() -> None:
    one = Unicasts(1, V, (1, 2), 400 * MS)
    one.send(0, 2, Sent(frame()))
    casts, now = [], 0
    for _ in range(4):
        assert one.due is not None
        now = one.due
        casts += [action.to for action in one.repeat(now) if isinstance(action, Transmit)]
    assert casts == [2, -1, -1, -1]


def test_repetitions_are_few_until_something_is_acknowledged() -> None:
    one = Unicasts(1, V, (1, 2), 40 * MS)
    for k in range(100):
        one.send(0, 2, Sent(frame(counter=k + 1)))
    sizes, now = [], 0
    for _ in range(6):
        assert one.due is not None
        now = one.due
        sizes.append(sum(isinstance(action, Transmit) for action in one.repeat(now)))
    assert sizes == [16, 8, 4, 2, 1, 1], "each time half as many"
    one.acked(now, 2, 30)
    assert one.due is not None and one.due <= now + one.pairs[2].rto
    assert sum(isinstance(action, Transmit) for action in one.repeat(one.due)) == 2, "more go when one has arrived"


def test_a_copy_for_another_acknowledges_nothing_here() -> None:
    one = Unicasts(1, V, (1, 2, 3), 400 * MS)
    for _ in range(3):
        one.send(0, 2, Sent(frame()))
    assert one.receive(MS, 2, Unicast(V, 3, 1, 3, Sent(frame()))) == []
    assert one.waiting() == 3


# ---------------------------------------------------------------------------------------------------------------- seam


def change(kind: ViewKind, id: ViewId = W) -> ViewChange:
    return ViewChange(View(id, kind, (1, 2)))


def shown(actions: list[Any]) -> list[Any]:
    """Counters of frames, and kinds of views."""
    events = [action.event for action in actions if isinstance(action, Up)]
    return [e.frame.counter if isinstance(e, Ordered) else e.view.kind.name for e in events]


@pytest.mark.parametrize("service", [Service.AGREED, Service.CAUSAL])
def test_a_flush_is_split_where_the_first_had_got_to(service: Service) -> None:
    ahead, behind = Seam(), Seam()
    frames = [Ordered(frame(1, k, service)) for k in range(1, 6)]
    for seam, count in ((ahead, 3), (behind, 1)):
        assert shown([a for each in frames[:count] for a in seam.up(0, each, 0)]) == list(range(1, count + 1))
    states = tuple(seam.flush_state() for seam in (ahead, behind))
    for seam, count, regular in ((ahead, 3, []), (behind, 1, [2, 3])):
        assert seam.up(0, Frozen(), 0) == []
        assert [a for each in frames[count:] for a in seam.up(0, each, 0)] == []
        assert shown(seam.up(0, Flush(states, ()), 0)) == regular
        assert shown(seam.up(0, change(ViewKind.TRANSITIONAL), 0)) == ["TRANSITIONAL", 4, 5]
        assert shown(seam.up(0, change(ViewKind.REGULAR), 0)) == ["REGULAR"]
        assert shown(seam.up(0, frames[0], 0)) == [1], "the new view counts anew"


def test_a_contribution_that_cannot_be_read_counts_for_nobody() -> None:
    seam = Seam()
    seam.up(0, Frozen(), 0)
    seam.up(0, Ordered(frame(service=Service.AGREED)), 0)
    assert shown(seam.up(0, Flush((b"\xff", b""), ()), 0)) == []
    assert shown(seam.up(0, change(ViewKind.TRANSITIONAL), 0)) == ["TRANSITIONAL", 1]


# --------------------------------------------------------------------------------------------------------- bad packets

CODEC = Codec(packets(Sent, Sent))
GOOD = [
    FlushToken(W, 2, 5, (1, 2)), FlushData(W, 0, data(0, 1)), FlushState(W, V, 2, 0, 2, b"abc"),
    FlushNack(W, V, ((0, 1, 2),), (1, 3), 4), Unicast(V, 2, 1, 0, Sent(frame())), UAck(V, 2, 7),
    Status(V, (1, 2, 3), 64, (0, 1, 2), True),
]  # fmt: skip


@pytest.mark.parametrize("packet", GOOD, ids=lambda packet: type(packet).__name__)
def test_good_packets_pass(packet: Any) -> None:
    assert CODEC.decode(CODEC.encode(packet)) == packet


@pytest.mark.parametrize(
    "packet",
    [
        FlushState(W, V, 2, 0, 0, b""), FlushState(W, V, 2, 2, 2, b""), FlushState(W, V, 2, 0, 65, b""),
        FlushData(W, 3, data(0, 1)), FlushData(W, 1, data(0, 1)), FlushNack(W, V, ((0, 2, 1),), (), 0),
        FlushNack(W, V, ((0, 0, 1),), (), 0), Unicast(V, 2, 0, 0, Sent(frame())), Status(V, (1, 2), 64, (1, 2, 3)),
        FlushToken(W, 2, 5, tuple(range(65))), FlushNack(W, V, ((0, 1, 1),) * 65, (), 0),
    ],
)  # fmt: skip
def test_bad_packets_are_refused(packet: Any) -> None:
    with pytest.raises(WireError):
        CODEC.decode(CODEC.encode(packet))


def test_damaged_packets_become_wire_errors_only() -> None:
    rng = random.Random(3)
    good = [CODEC.encode(packet) for packet in GOOD]
    for _ in range(4_000):
        bad = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 3)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        try:
            packet = CODEC.decode(bytes(bad[: rng.randint(1, len(bad))]))
        except WireError:
            continue
        assert CODEC.decode(CODEC.encode(packet)) == packet, "what passes is sound"
