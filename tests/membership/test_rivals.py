"""Two processes of one id: the one that was there first stays, the other ends with a sentence, the group is whole."""

import pytest
from harness import World

from ordercast.membership import Hello
from ordercast.membership.choose import NO_VIEW, Row
from ordercast.membership.packets import Rival
from ordercast.membership.rivals import Rivals
from ordercast.membership.standing import Standing
from ordercast.membership.table import _pack
from ordercast.types import Peer


def settled(n=3, seed=1, **options):
    world = World(n, 40, seed, **options)
    world.start()
    world.run_t(6)
    assert world.partition() == {world.ids}
    return world


def nothing_dropped(a, b, packet, unicast):
    return False


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("q", [1, "last"])
def test_the_first_stays_and_the_second_ends(n, q, direct):
    for seed in range(4):
        world = settled(n, seed, direct=direct)
        q = n if q == "last" else q
        first, life = world.owners[q], world.owners[q].peer
        second, since = world.second(q), world.now
        world.run_t(4)
        assert second.parted and second.why.startswith(f"another process is member {q} and ")
        assert world.owners[q] is first and first.peer == life
        assert world.partition() == {world.ids}, "whole again, without help"
        assert max(world.count(since).values()) <= 4
        world.run_t(20)
        world.check_invariants()
        assert world.partition() == {world.ids}


def test_it_ends_before_it_is_in_a_view_of_its_own():
    world = settled(3)
    second = world.second(2)
    world.run_t(0.45)
    assert second.parted and second.m.view == NO_VIEW


def test_if_the_first_is_gone_the_new_one_wins():
    world = settled(3)
    world.crash(2)
    world.start(2)
    world.run_t(4)
    assert world.partition() == {world.ids}


@pytest.mark.parametrize("deaf", [(1, 2), (2, 1)])
def test_with_links_broken_one_way_the_first_still_stays(deaf):
    """The second is told by the others' rows, or by the first itself, whichever reaches it."""
    world = settled(4)
    first = world.owners[2]
    world.drop = lambda a, b, packet, unicast: (a, b) == deaf
    world.run_t(6)
    second = world.second(2)
    world.run_t(6)
    world.drop = nothing_dropped
    world.run_t(12)
    assert second.parted and world.owners[2] is first
    assert world.partition() == {world.ids}


def test_who_was_away_gives_way_to_who_is_in_the_view():
    """The first is cut off, the second takes its place in the group; when they meet, the one with the others stays."""
    world, real = settled(4), World.arrive
    first = world.unplug(2)
    world.arrive = lambda source, q, packet, unicast=False: (
        None if q == -2 or source == first.peer else real(world, source, q, packet, unicast)
    )
    world.run_t(3)
    world.start(2)
    world.run_t(8)
    second = world.owners[2]
    assert second.m.members == world.ids and first.m.members == (2,)
    del world.arrive
    world.run_t(6)
    assert first.parted and "is in a view with others" in first.why
    assert world.owners[2] is second and not second.parted and world.partition() == {world.ids}


def test_one_packet_ends_nobody():
    """A forged Hello in my name, of a life that was with others and is a hundred years old."""
    world = settled(3)
    first = world.owners[2]
    forged = Hello(NO_VIEW, _pack([Row(2, 9, 1, NO_VIEW, False, frozenset(world.ids))]), Rival(2, True, 2**61))
    for q in world.ids:
        owner = world.owners[q]
        world.do(owner, owner.receive(world.now, Peer(2, 9), forged))
    world.run_t(6)
    assert world.owners[2] is first and not first.parted
    assert world.partition() == {world.ids}


def test_words_of_a_former_life_are_no_rival():
    """What the life before said comes again: the new one names it, nobody follows."""
    world = settled(3)
    said, real = [], world.transmit

    def transmit(owner, action):
        if owner.peer == Peer(2, 2):
            said.append(action.packet)
        real(owner, action)

    world.transmit = transmit
    world.run_t(2)
    world.crash(2)
    world.start(2)
    world.run_t(6)
    since = world.now
    for packet in said[-40:]:
        for q in world.ids:
            owner = world.owners[q]
            world.do(owner, owner.receive(world.now, Peer(2, 2), packet))
        world.run_t(0.1)
    assert max(world.count(since).values()) == 0 and world.partition() == {world.ids}


# --------------------------------------------------------------------------------------------------------------- claims


def rivals(life=5, timeout=80):
    out = Rivals(Peer(2, life), Standing(None), timeout)
    out.start(0)
    return out


@pytest.mark.parametrize(
    "theirs, ends",
    [
        pytest.param(Rival(5, True, 1), True, id="with others"),
        pytest.param(Rival(5, False, 101), True, id="older"),
        pytest.param(Rival(5, False, 99), False, id="younger"),
        pytest.param(Rival(7, True, 999), False, id="names somebody else"),
    ],
)
def test_who_ends(theirs, ends):
    mine = rivals()
    assert mine.meet(100, 9) and not mine.meet(101, 9)
    assert not mine.outdone(102, 9, theirs), "one Hello is not enough"
    assert mine.outdone(120, 9, theirs) is ends


def test_equal_claims_leave_the_lower_life():
    low, high = rivals(5), rivals(9)
    low.meet(100, 9)
    high.meet(100, 5)
    for when in (100, 120):
        last = low.outdone(when, 9, Rival(5, False, 100)), high.outdone(when, 5, Rival(9, False, 100))
    assert last == (False, True)


def test_it_is_named_as_long_as_it_is_heard():
    mine = rivals()
    assert mine.name(0) is None
    mine.meet(100, 9)
    assert mine.name(180) == Rival(9, False, 100) and mine.name(181) is None
    assert mine.meet(500, 9) and mine.name(500) == Rival(9, False, 500), "they met anew"


def test_peers_judge_by_the_claims():
    judge = rivals()
    old, new = Peer(3, 20), Peer(3, 30)
    assert judge.stays(old, Rival(30, False, 9), counts=30), "the other has said nothing yet"
    assert not judge.stays(old, Rival(31, True, 9), counts=30), "it names another one"
    assert not judge.stays(new, Rival(20, True, 1), counts=30)
    assert not judge.stays(old, Rival(30, False, 9), counts=30)
    assert judge.stays(old, Rival(30, True, 9), counts=30)


# ---------------------------------------------------------------------------------------------------- without the rule


def peers_keep_to_the_newest(patch):
    patch.setattr(Rivals, "stays", lambda self, peer, rival, counts: False)


def rivals_are_not_named(patch):
    patch.setattr(Rivals, "name", lambda self, now: None)


def the_first_gives_way(patch):
    outdone = Rivals.outdone
    patch.setattr(
        Rivals, "outdone", lambda self, now, life, rival: life == self.life and not outdone(self, now, life, rival)
    )


def nobody_gives_way(patch):
    patch.setattr(Rivals, "outdone", lambda self, now, life, rival: False)


@pytest.mark.parametrize(
    "mutant", [peers_keep_to_the_newest, rivals_are_not_named, the_first_gives_way, nobody_gives_way],
    ids=lambda mutant: mutant.__name__,
)  # fmt: skip
def test_without_the_rule(mutant, monkeypatch):
    """Within T the second has ended, and the first is in the view again."""
    mutant(monkeypatch)
    assert not well()


def test_with_the_rule():
    assert well()


def well():
    world = settled(3)
    first, second = world.owners[2], world.second(2)
    world.run_t(0.8)
    views = {q: owner.m.members for q, owner in world.owners.items()}
    return second.parted and world.owners.get(2) is first and views == dict.fromkeys(world.ids, world.ids)
