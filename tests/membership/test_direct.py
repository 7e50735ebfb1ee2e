"""For an owner that needs direct links: suspicion by silence, and a common view is no evidence of a link."""

import pytest
from harness import MS, World
from patterns import bridge, majorities, one_way_far, pair

from ordercast.membership import State
from ordercast.types import Cause


def group(n, seed=1, **options):
    world = World(n, 40, seed, direct=True, **options)
    world.start()
    world.run_t(5)
    assert world.partition() == {world.ids}
    return world


def after(world, pairs, timeouts=40):
    """Cut links; the views at the end and the most views of a member."""
    since = world.now
    world.drop = lambda a, b, packet, unicast: (a, b) in pairs
    world.run_t(timeouts)
    return world.partition(), max(world.count(since).values()), since


@pytest.mark.parametrize("n", [3, 5, 9])
def test_a_crash_is_found_by_silence(n):
    world = group(n)
    since = world.now
    world.crash(2)
    world.run_t(2)
    assert world.partition() == {tuple(q for q in world.ids if q != 2)}
    assert max(world.count(since).values()) == 1
    assert any(cause.startswith("silence of member 2 (T_loss)") for when, *_, cause in world.views if when > since)


@pytest.mark.parametrize("n", [5, 9])
def test_a_link_in_one_direction_costs_one_member(n):
    parted, views, _ = after(group(n), one_way_far(n))
    assert sorted(map(len, parted)) == [1, n - 1] and views == 1


@pytest.mark.parametrize("n, sizes", [(5, [1, 2, 2]), (9, [3, 3, 3])])
def test_majorities_fall_into_cliques(n, sizes):
    world = group(n)
    parted, views, since = after(world, majorities(n))
    assert sorted(map(len, parted)) == sizes and views <= 2
    assert max(world.count(since + 20 * world.timeout_ns).values()) == 0


@pytest.mark.parametrize("pattern", [pair, bridge])
def test_patterns_cost_one_view(pattern):
    parted, views, _ = after(group(5), pattern(5))
    assert len(parted) == 2 and views == 1


def test_one_value_of_t_loss_is_learnt_from_silences_that_ended():
    world = group(3)
    since = world.now
    world.pause(2)
    world.run_t(0.8)
    world.resume(2)
    world.run_t(5)
    assert max(world.count(since).values()) == 0
    assert world.timeout_ns < world.owners[1].m.sight.tuning.loss_ns <= 2 * world.timeout_ns
    world.run_t(130)
    assert world.owners[1].m.sight.tuning.loss_ns == world.timeout_ns


def test_a_stuck_link_is_struck_and_left_in_the_end():
    """Status and rows pass, messages do not: only the owner can see it, and says so."""
    world = group(3)
    for _ in range(3):
        one = world.owners[1]
        cause = Cause("stuck link", 2, "2 T", "the same gap")
        world.do(one, one.carry(world.now, one.m.suspect(world.now, cause, (2,))))
        world.run_t(1)
    assert sorted(map(len, world.partition())) == [1, 2], "the third strike is a probation"
    world.run(world.now + 10 * 40 * MS)
    assert world.partition() == {world.ids}
    assert world.owners[1].m.state is State.OPERATIONAL
