"""Numbers from the wire that cannot be true: dropped, counted, named; nothing of them is stored or lasts."""

import pytest
from harness import MS, World
from msgspec.structs import replace

from ordercast.membership import CommitToken, Hello, Join
from ordercast.membership.cause import ToldCause
from ordercast.membership.choose import NO_VIEW, Row
from ordercast.membership.packets import RING_SEQ_MAX, Entry
from ordercast.membership.plausible import DAY_NS, DAY_US, Plausible
from ordercast.membership.table import _pack
from ordercast.types import Identity, Peer, ViewId

EVERYBODY = frozenset({1, 2, 3})
FAR = ViewId(RING_SEQ_MAX, 2)


def settled():
    world = World(3, 40)
    world.start()
    world.run_t(5)
    assert world.partition() == {world.ids}
    return world


def hear(world, peer, packet, *at):
    for q in at or [q for q in world.ids if q != peer.id]:
        owner = world.owners[q]
        world.do(owner, owner.receive(world.now, peer, packet))


def rows(*given):
    return _pack([Row(2, 2, 9_000, NO_VIEW, False, EVERYBODY), *given])


JOIN = Join(1, 8, (1, 2, 3), None, rows(), 40 * MS, ToldCause("start", None, "", ""))
FORGED = {
    "a Hello of a view": Hello(FAR, rows()),
    "a Hello with a row of a view": Hello(NO_VIEW, rows(Row(3, 3, 9_000, FAR, True, EVERYBODY))),
    "a Hello with a row of a life": Hello(NO_VIEW, rows(Row(3, 2**63 - 1, 1, NO_VIEW, True, EVERYBODY))),
    "a Join": replace(JOIN, ring_seq=RING_SEQ_MAX),
    "a Join that numbers itself last": replace(JOIN, number=2**32 - 1),
    "a Join with a row of a view": replace(JOIN, rows=rows(Row(3, 3, 9_000, FAR, True, EVERYBODY))),
    "a row of the last version": Hello(NO_VIEW, rows(Row(3, 3, 2**31, NO_VIEW, False, frozenset()))),
    "a commit token": CommitToken(ViewId(RING_SEQ_MAX, 1), (1, 2, 3), 2, 3, (Entry(1, b""), Entry(2, b""))),
    "a commit token of a life": CommitToken(ViewId(40, 1), (1, 2, 3), 2, 3, (Entry(1, b""), Entry(2**62, b""))),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_number_of_tomorrow_leaves_no_mark(what):
    """One packet in the name of member 2; then all is as before, on the disks too, and after all have restarted."""
    world = settled()
    hear(world, Peer(2, 2), FORGED[what])
    world.run_t(8)
    assert world.partition() == {world.ids}
    assert max(world.disk.values()) < 10_000
    for q in world.ids:
        world.crash(q)
    world.run_t(1)
    world.start()
    world.run_t(8)
    assert world.partition() == {world.ids} and max(world.disk.values()) < 20_000
    world.check_invariants()


def test_a_ring_of_tomorrow_moves_nobody_and_is_named():
    world = settled()
    views = len(world.views)
    m = world.owners[1].m
    for _ in range(3):
        world.do(world.owners[1], world.owners[1].carry(world.now, m.foreign(world.now, Peer(2, 2), FAR)))
    hear(world, Peer(2, 2), FORGED["a Hello of a view"], 1)
    world.run_t(5)
    assert len(world.views) == views
    assert m.status()["wrong_clocks"] == {
        2: f"ring number {RING_SEQ_MAX}, more than a day above what is known here (4 dropped): "
        "a wrong clock, there or here"
    }
    assert [note.fields["member"] for _, q, note in world.notes if note.name == "implausible"] == [2], "told once"


@pytest.mark.parametrize("life", [2**63 - 1, DAY_NS * 2])
def test_a_life_of_tomorrow_is_not_believed(life):
    world = settled()
    views = len(world.views)
    hear(world, Peer(2, life), FORGED["a Join"])
    world.run_t(5)
    assert len(world.views) == views and world.refused[1] == 1


@pytest.mark.parametrize("by_row", [False, True], ids=["heard", "told of"])
def test_a_forged_life_is_forgotten(by_row):
    """One packet of a life that a clock an hour fast would give: the group is whole again when it has been silent for
    T_hear, and the member lives on as it was."""
    world = settled()
    since, life = world.now, 3_600 * 1_000_000_000
    if by_row:
        hear(world, Peer(3, 3), Hello(NO_VIEW, _pack([Row(2, life, 1, NO_VIEW, False, EVERYBODY)])), 1)
    else:
        hear(world, Peer(2, life), Hello(NO_VIEW, _pack([Row(2, life, 1, NO_VIEW, False, EVERYBODY)])))
    world.run_t(5)
    assert world.partition() == {world.ids}
    assert world.owners[2].peer == Peer(2, 2)
    for q in (1, 3):
        assert world.owners[q].m.sight.evidence.links[2].incarnation == 2
    world.run_t(100)
    assert world.partition() == {world.ids}
    late = [view for view in world.views if view[0] > since + 5 * world.timeout_ns]
    assert not late, "no rumour of it goes round"


def test_a_restart_is_believed_though_its_first_words_are_lost():
    """The new life is heard once, then nothing for a while, and packets of the former one come again."""
    world = settled()
    kept = []
    real = world.transmit

    def transmit(owner, action):
        if owner.peer == Peer(2, 2) and isinstance(action.packet, Hello):
            kept.append(action.packet)
        real(owner, action)

    world.transmit = transmit
    world.run_t(2)
    world.crash(2)
    world.run_t(3)
    world.start(2)
    world.run_t(0.02)
    world.drop = lambda a, b, packet, unicast: a == 2
    for _ in range(8):
        world.run_t(0.5)
        hear(world, Peer(2, 2), kept[-1])
    world.drop = lambda a, b, packet, unicast: False
    world.run_t(6)
    assert world.partition() == {world.ids}


def test_the_clock_goes_on_from_what_was_agreed():
    plausible = Plausible(Identity(1, 1_000, (1, 2), ring_seq=500))
    plausible.start(7_000, 500)
    assert plausible.life(7_000, 1_000 + DAY_NS) and not plausible.life(7_000, 1_001 + DAY_NS)
    assert plausible.life(8_000, 2_000 + DAY_NS) and plausible.ring(8_000, 501 + DAY_US)
    assert not plausible.ring(8_000, 502 + DAY_US)
    plausible.agreed(8_000, 10_000, (1_000, 90_000))
    assert plausible.life(8_000, 90_000 + DAY_NS) and not plausible.life(8_000, 90_001 + DAY_NS)
    assert plausible.ring(8_000, 10_000 + DAY_US) and not plausible.ring(8_000, 10_001 + DAY_US)
