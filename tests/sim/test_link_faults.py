"""Faults on links: one test per class, its effect counted in the trace."""

from itertools import pairwise

import pytest

from ordercast.sim.faults import (
    BurstLoss,
    Clog,
    Corruption,
    Crash,
    Cut,
    Duplication,
    Foreign,
    Loss,
    Mtu,
    Partition,
    Reordering,
    Replay,
    Slowness,
    Subset,
    Swizzle,
    Version,
)
from ordercast.sim.law import Delay
from ordercast.sim.partitions import cut_pairs
from ordercast.sim.scenario import Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

MESSAGES = 300
PLAIN = Scenario(
    protocol="tiny",
    messages=MESSAGES,
    load=Load(regime="periodic", rate=500.0),
    nets=(Net(model="links", delay=Delay(mean_us=100)),),
    limit_ms=400.0,
)
PAIRS = {(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b}


def tiny(*faults, **fields):
    return run(PLAIN.changed(faults=faults, **fields), level="full")


def notes(outcome, name):
    kind = int(Kind.NOTE)
    return [(r.member, r.detail) for r in outcome.trace.rows if r.kind == kind and r.detail["name"] == name]


def heard(outcome, kind="Word"):
    out = dict.fromkeys(PAIRS, 0)
    for member, got in notes(outcome, "got"):
        if got["kind"] == kind:
            out[got["source"], member] += 1
    return out


def drops(outcome, reason, packet=None):
    """Rows, of whatever member, that say what was lost and why."""
    return [
        row
        for row in outcome.trace.rows
        if row.kind == Kind.DROP and row.detail["reason"] == reason and packet in (None, row.detail["packet"])
    ]


def times(outcome, source, receiver):
    """When `receiver` got the words of `source`, by counter."""
    return [
        (row.counter, row.time_ns)
        for row in outcome.trace.rows
        if row.kind == Kind.RECEIVE and row.member == receiver and row.sender == source
    ]


def states(outcome):
    return [(r.detail["class"], r.detail["state"]) for r in outcome.trace.rows if r.kind == Kind.FAULT]


def test_without_faults_everything_is_heard():
    outcome = tiny()
    assert set(heard(outcome).values()) == {MESSAGES // 3}
    assert not outcome.drops
    assert outcome.deliveries == 3 * MESSAGES


def test_loss_is_per_receiver_and_by_chance():
    outcome = tiny(Loss(p=0.3, packets=("Word",)))
    lost = drops(outcome, "loss")
    assert len(lost) == outcome.drops["loss"] == outcome.effects["loss"] == 2 * MESSAGES - sum(heard(outcome).values())
    assert 0.2 * 2 * MESSAGES < len(lost) < 0.4 * 2 * MESSAGES
    assert states(outcome) == [("loss", "on"), ("loss", "off")]
    assert outcome.faults == {"loss": 1}


def test_loss_one_way_only():
    outcome = tiny(Loss(pairs=("1>2",)))
    assert heard(outcome)[1, 2] == 0
    assert all(n == 100 for pair, n in heard(outcome).items() if pair != (1, 2))


def test_loss_of_one_packet_type_and_of_a_number():
    outcome = tiny(Loss(packets=("Token",), count=5))
    assert len(drops(outcome, "loss", "Token")) == 5
    assert not drops(outcome, "loss", "Word")


def test_loss_only_while_it_lasts():
    outcome = tiny(Loss(at_ms=50, until_ms=100))
    assert {50 <= row.time_ns / 1e6 <= 100 for row in drops(outcome, "loss")} == {True}


def test_burst_loss_comes_in_bursts():
    outcome = tiny(BurstLoss(to_bad=0.05, to_good=0.2, packets=("Word",)), messages=3000, limit_ms=4000.0)
    lost = len(drops(outcome, "burst_loss"))
    total = 6000
    assert 0.1 < lost / total < 0.3  # in the long run 0.05 / 0.25
    runs = 0
    for pair in sorted(PAIRS):
        got = {counter for counter, _ in times(outcome, *pair)}
        missing = [c not in got for c in range(1, 1001)]
        runs += sum(a and not b for a, b in zip(missing, [*missing[1:], False], strict=True))
    assert lost / runs > 3  # mean length of a burst: 5


def test_a_multicast_reaches_a_subset_only():
    outcome = tiny(Subset(p=1.0, packets=("Word",)))
    lost = drops(outcome, "subset")
    assert MESSAGES <= len(lost) <= 2 * MESSAGES
    assert 0 < sum(heard(outcome).values()) == 2 * MESSAGES - len(lost)
    assert not drops(outcome, "subset", "Token")


def test_mtu_drops_large_datagrams_alone():
    outcome = tiny(Mtu(bytes=300), sizes=(10, 1000))
    lost = drops(outcome, "mtu")
    assert lost
    small = sum(row.count == 1 for row in outcome.trace.rows if row.kind == Kind.ORIGINATE)
    assert small == MESSAGES
    assert sum(heard(outcome).values()) + len(lost) == 2 * MESSAGES
    assert set(heard(outcome, "Token").values()) != {0}


def test_duplication_gives_more_copies():
    outcome = tiny(Duplication(p=1.0, copies=2, packets=("Word",)))
    assert set(heard(outcome).values()) == {300}
    assert outcome.effects["duplication"] == 600


def test_reordering_lets_later_ones_overtake():
    calm, mixed = tiny(), tiny(Reordering(p=0.5, within_ms=20))
    in_order = [c for c, _ in times(calm, 1, 2)]
    out_of_order = [c for c, _ in times(mixed, 1, 2)]
    assert in_order == sorted(in_order)
    assert out_of_order != sorted(out_of_order)
    assert sorted(out_of_order) == in_order


def test_delay_spikes():
    outcome = tiny(Slowness(p=0.1, law=Delay(mean_us=30_000), packets=("Word",)))
    sent = {(r.sender, r.counter): r.time_ns for r in outcome.trace.rows if r.kind == Kind.ORIGINATE}
    late = [t - sent[1, c] for c, t in times(outcome, 1, 2) if t - sent[1, c] > 10_000_000]
    assert 0 < len(late) < 30
    assert all(delay >= 30_000_000 for delay in late)


def test_clog_holds_then_releases_at_once():
    outcome = tiny(Clog(at_ms=50, until_ms=100, pairs=("1>2",)))
    at = [t for _, t in times(outcome, 1, 2)]
    assert len(at) == 100
    assert not [t for t in at if 51e6 < t < 100e6]
    assert at.count(100_000_000) > 20


def test_swizzle_clogs_one_by_one():
    outcome = tiny(Swizzle(at_ms=20, until_ms=140, members=(1, 2, 3)))
    assert sum(heard(outcome).values()) == 2 * MESSAGES
    assert outcome.effects["clog"] > 0
    assert max(b - a for (_, a), (_, b) in pairwise(times(outcome, 1, 2))) > 20_000_000


@pytest.mark.parametrize(("how", "reasons"), [("flip", {"checksum"}), ("truncate", {"short", "packet"})])
def test_damaged_bytes_become_loss(how, reasons):
    outcome = tiny(Corruption(p=0.5, how=how, packets=("Word",)))
    lost = [row for row in outcome.trace.rows if row.kind == Kind.DROP]
    assert len(lost) == outcome.effects["corruption"] == 2 * MESSAGES - sum(heard(outcome).values())
    assert reasons <= {row.detail["reason"] for row in lost}
    assert all(row.member == row.detail.get("to", row.member) and row.member > 0 for row in lost)
    assert not any(row.detail and "altered" in row.detail for row in outcome.trace.rows)


def test_another_version_is_refused():
    outcome = tiny(Version(pairs=("2>*",), version=9))
    assert {pair: n for pair, n in heard(outcome).items() if pair[0] == 2} == {(2, 1): 0, (2, 3): 0}
    assert len(drops(outcome, "version", "Word")) == 200


def test_replay_of_an_earlier_life():
    outcome = tiny(
        Crash(member=1, at_ms=60, down_ms=10),
        Replay(at_ms=150, pairs=("1>2",), packets=("Word",), age_ms=95, copies=3),
    )
    lives = [got["life"] for member, got in notes(outcome, "got") if member == 2 and got["source"] == 1]
    assert len(set(lives)) == 2 and lives == sorted(lives), "an earlier life is over"
    assert outcome.effects["replay"] == len(drops(outcome, "earlier incarnation", "Word")) == 3


@pytest.mark.parametrize("wire", [False, True])
def test_strangers_are_refused_and_clones_are_shown_beside_the_sender(wire):
    outcome = tiny(Foreign(pairs=("1>2",), packets=("Word",)), wire=wire)
    sources = {got["source"] for member, got in notes(outcome, "got") if member == 2}
    assert sources == {1, 3} and outcome.effects["foreign"] == len(drops(outcome, "sender", "Word")) == 100
    outcome = tiny(Foreign(pairs=("1>2",), packets=("Word",), who="clone"), wire=wire)
    lives = {got["life"] for member, got in notes(outcome, "got") if member == 2 and got["source"] == 2}
    (life,) = {row.incarnation for row in outcome.trace.rows if row.member == 2}
    assert lives == {life + 1} and len(drops(outcome, "second claimant", "Word")) == 100


def test_token_duplicated_and_replayed():
    doubled = tiny(Duplication(packets=("Token",), count=1))
    assert sum(heard(doubled, "Token").values()) == sum(heard(tiny(), "Token").values()) + 1
    again = tiny(Replay(at_ms=50, until_ms=120, every_ms=20, packets=("Token",), age_ms=20))
    assert again.effects["replay"] == 4


# ------------------------------------------------------------------------------------------------------ partitions


def test_cuts_by_cast_and_type():
    uni = tiny(Cut(pairs=("1>2",), cast="unicast"))
    assert heard(uni, "Token")[1, 2] == 0
    assert heard(uni)[1, 2] == 100
    multi = tiny(Cut(pairs=("1>2",), cast="multicast"))
    assert heard(multi, "Token")[1, 2] > 0
    assert heard(multi)[1, 2] == 0
    tokens = tiny(Cut(pairs=("1>2",), packets=("Token",)))
    assert heard(tokens, "Token")[1, 2] == 0
    assert heard(tokens)[1, 2] == 100
    both = tiny(Cut(pairs=("1-2",)))
    assert [pair for pair, n in sorted(heard(both).items()) if n == 0] == [(1, 2), (2, 1)]
    deaf = tiny(Cut(pairs=("*>1",)))
    assert [pair for pair, n in sorted(heard(deaf).items()) if n == 0] == [(2, 1), (3, 1)]


def silent(outcome):
    return {pair for pair, n in heard(outcome).items() if n == 0}


def test_halves_and_isolation():
    assert silent(tiny(Partition(groups=((1,), (2, 3))))) == {(1, 2), (2, 1), (1, 3), (3, 1)}
    assert silent(tiny(Partition(shape="isolate", member=3))) == {(3, 1), (1, 3), (3, 2), (2, 3)}
    assert silent(tiny(Partition(shape="isolate", member=3, one_way="out"))) == {(3, 1), (3, 2)}
    assert silent(tiny(Partition(shape="isolate", member=3, one_way="in"))) == {(1, 3), (2, 3)}
    assert silent(tiny(Partition(shape="pair", groups=((2,), (3,))))) == {(2, 3)}


def shape(n, seed=1, **fields):
    import random

    return set(cut_pairs(Partition(**fields), tuple(range(1, n + 1)), random.Random(seed)))


def test_shapes():
    bridge = shape(5, shape="bridge", member=3)
    assert not any(3 in pair for pair in bridge)
    assert len(bridge) == 8  # two halves of two, both ways
    ring = shape(5, shape="ring")
    hears = {b: {a for a in range(1, 6) if (a, b) not in ring} for b in range(1, 6)}
    assert all(len(majority) == 3 for majority in hears.values())
    assert len({frozenset(m) for m in hears.values()}) == 5
    one_way = shape(5, shape="ring", one_way="in")
    assert {a for a in range(1, 6) if (a, 1) not in one_way} == {1, 2, 3}
    assert len(shape(6, shape="halves")) == 18
    assert len(shape(4, shape="pair")) == 1
    assert {len(shape(6, seed, shape="split")) > 0 for seed in range(20)} >= {True}


def test_flapping():
    outcome = tiny(Cut(pairs=("1>2",), down_ms=20, up_ms=30))
    lost = [row.time_ns / 1e6 % 50 for row in drops(outcome, "cut", "Word")]
    assert 30 < len(lost) < 50
    assert all(phase <= 20 for phase in lost)


def test_permanent_unless_healed():
    permanent = tiny(Cut(pairs=("1>2",)))
    assert heard(permanent)[1, 2] == 0
    assert not [row for row in permanent.trace.rows if row.kind == Kind.STABLE]
    healed = tiny(Cut(pairs=("1>2",)), heal_ms=100)
    assert 40 < heard(healed)[1, 2] < 60
    (stable,) = [row for row in healed.trace.rows if row.kind == Kind.STABLE]
    assert (stable.members, stable.time_ns) == ((1, 2, 3), 100_000_000)
    lasting = tiny(Cut(pairs=("1>2",), lasting=True), heal_ms=100, core=(2, 3), away="cut")
    assert heard(lasting)[1, 2] == 0
    assert 40 < heard(lasting)[1, 3] < 60
