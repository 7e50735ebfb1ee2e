"""Broken links cost one view, whatever their pattern, size and moment: the membership alone, many runs."""

import patterns as p
import pytest
from harness import MS, World

PATTERNS = [
    p.one_way_next, p.one_way_wrap, p.pair, p.bridge, p.weak_bridge, p.one_way_majorities, p.deaf, p.mute, p.half_deaf,
    p.star, p.path, p.random_cuts,
]  # fmt: skip


def settle_ns(world):
    """4 x L1."""
    return 4 * (22 * world.timeout_ns // 10 + 10 * len(world.ids) * 600_000)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
@pytest.mark.parametrize("n, timeout_ms, seed", [(3, 200, 1), (5, 40, 2)])
def test_one_view_at_the_onset_none_after(pattern, n, timeout_ms, seed):
    world = World(n, timeout_ms, seed)
    world.start()
    world.run_t(4 + 0.37 * seed)
    cut, onset = pattern(n), world.now
    world.drop = lambda a, b, packet, unicast: (a, b) in cut
    world.run(onset + settle_ns(world))
    settled, first = world.now, world.partition()
    world.run_t(20)
    world.check_invariants()
    assert max(world.count(onset, settled).values()) <= 1, world.views
    assert max(world.count(settled).values()) == 0 and world.partition() == first
    assert max(map(len, first)) == p.clique_number(n, cut)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_few_views_when_present_from_the_start(pattern):
    world = World(5, 40, 3)
    cut = pattern(5)
    world.drop = lambda a, b, packet, unicast: (a, b) in cut
    world.start()
    world.run(settle_ns(world))
    settled = world.now
    world.run_t(20)
    assert max(world.count(-1, settled).values()) <= 3
    assert max(world.count(settled).values()) == 0
    assert max(map(len, world.partition())) == p.clique_number(5, cut)


def test_members_with_another_timeout_are_refused_and_named():
    world = World(3, 40)
    world.start(1, 2)
    world.timeout_ns = 80 * MS
    world.start(3)
    world.timeout_ns = 40 * MS
    world.run_t(20)
    assert world.partition() == {(1, 2), (3,)}
    assert world.owners[1].m.status()["other_timeout_ns"] == {3: 80 * MS}
    assert world.owners[3].m.status()["other_timeout_ns"] == {1: 40 * MS, 2: 40 * MS}


def test_strangers_are_dropped():
    world = World(2, 40)
    world.start()
    world.run_t(3)
    one = world.owners[1]
    assert one.m.heard(world.now, type(one.peer)(77, 5)) is None


def test_status_says_what_it_waits_for():
    world = World(3, 40)
    world.store_ns = 5 * MS
    world.start()
    said = {}  # in the order of their first time
    for _ in range(400):
        world.run_t(0.005)
        said |= dict.fromkeys(owner.m.status()["waits"] for owner in world.owners.values())
    assert list(said) == [
        "for the others to start",
        "for the link with member 1 to settle",
        "for members 2, 3 to agree",
        "for ring number 8 to be stored",
        "for the commit token of member 1",
        "for members 1 to agree",
        "for the commit token of ring 8.1",
        "for recovery in ring 8.1",
        "for nothing",
    ]
    world.leave(2)
    assert world.owners[2].m.status()["waits"] == "for nothing: it left"


def test_a_probation_is_named_with_its_reason_and_the_time_left():
    """A link that flaps is shut out: its ends say so, for how long, and why."""
    world = World(3, 40)
    world.start()
    world.run_t(4)
    for _ in range(4):
        world.drop = lambda a, b, packet, unicast: {a, b} == {1, 2}
        world.run_t(3)
        world.drop = lambda a, b, packet, unicast: False
        world.run_t(3)
    struck = [q for q in (1, 2) if world.owners[q].m.status()["probation"]]
    assert struck
    for q in struck:
        m, other = world.owners[q].m, 3 - q
        on = m.status()["probation"][other]
        assert on["why"] == "silence" and 0 < on["left_ns"] <= m.sight.evidence.probation_ns(other)
        assert m.apart().startswith(f"the probation of member {other}, another ")
        assert "(its link failed: silence)" in m.apart()
    notes = [note.fields for _, _, note in world.notes if note.name == "probation" and "why" in note.fields]
    assert notes and all(note["ns"] > 0 and note["why"] for note in notes)
    left = [world.owners[q].m.status()["probation"][3 - q]["left_ns"] for q in struck]
    world.run_t(1)
    assert [world.owners[q].m.status()["probation"][3 - q]["left_ns"] for q in struck] < left
    world.run_t(80)
    assert world.partition() == {(1, 2, 3)} and not any(owner.m.apart() for owner in world.owners.values())


def test_who_does_not_hear_me_is_named():
    world = World(3, 40)
    world.start()
    world.run_t(4)
    world.drop = lambda a, b, packet, unicast: (a, b) == (1, 2)
    world.run_t(20)
    assert world.partition() in ({(1, 3), (2,)}, {(2, 3), (1,)})
    assert world.owners[1].m.apart() == "member 2, heard here, to hear this one, or to end its probation"
