"""The automaton is its table: the table says what it should, it drives, and every rule of it is needed somewhere."""

import random

import pytest
from harness import MS, World
from msgspec.structs import replace

from ordercast.membership import Gathering, Hello, State
from ordercast.membership.automaton import TABLE, Act, Happening, Rule
from ordercast.membership.cause import START
from ordercast.membership.packets import PackedRows, Rival
from ordercast.membership.standing import Standing
from ordercast.types import Cause, Peer, ViewId

S, H = State, Happening

# Where each event leads, by the state in which it meets a member: Operational, Gather, Commit, Recovery.
LEADS = """
    LOSS            G - - G
    BLAMED          G - G G
    HINT            G - G G
    WENT_ON         G - C R
    OTHER_LIFE      G - - -
    NEWS            O G - -
    CHOICE          G - - -
    JOIN_OF_OURS    G - G G
    JOIN            - G - -
    AGREED          - G - -
    TOKEN_FIRST     - G - -
    STORED          - G - -
    STORE_FAILED    - G - -
    READY           - C - -
    WITHDRAWN       - - G -
    TOKEN_SECOND    - - R -
    TOKEN_THIRD     - - - R
    CONSENSUS       - G - -
    COMMIT_LATE     - - G -
    INSTALLED       - - - O
    LEAVE           P P P P
    OUTDONE         P P P P
"""


LETTERS = {state.name[0]: state for state in State}
EXPECTED = {
    (LETTERS[state], H[name]): LETTERS[to]
    for name, *cells in map(str.split, LEADS.strip().splitlines())
    for state, to in zip("OGCR", cells, strict=True)
    if to != "-"
}


def test_every_event_leads_where_it_should():
    assert {key: rule.to for key, rule in TABLE.items()} == EXPECTED


def test_every_act_is_a_method_of_a_part():
    world = World(1, 40)
    world.start()
    assert all(callable(act.by(world.owners[1].m)) for act in Act)
    assert {rule.act for rule in TABLE.values()} == set(Act)


# ------------------------------------------------------------------------------------------------------------ it drives


def test_every_rule_acts_in_random_worlds_and_no_state_changes_but_by_a_rule(monkeypatch):
    seen, happens = set(), Standing.happens

    def noting(self, now, happening, *what):
        before = self.state
        acted = happens(self, now, happening, *what)
        assert acted is ((before, happening) in TABLE)
        if acted:
            seen.add((before, happening))
        else:
            assert self.state is before
        return acted

    monkeypatch.setattr(Standing, "happens", noting)
    for seed in range(20):
        stormy(seed)
    crash_in_recovery()
    assert {key for key in set(TABLE) - seen if key[1] not in TOLD} == set()


def crash_in_recovery():
    world = World(3, 40)
    world.start()
    meet(world, 1, S.RECOVERY)
    world.crash(3)
    world.run_t(4)
    assert world.partition() == {(1, 2)}


def meet(world, q, state):
    """Run until q is in this state."""
    while world.owners[q].m.state is not state:
        world.run_t(0.001)
    return world.owners[q]


def stormy(seed):
    rng = random.Random(seed)
    world = World(rng.randint(2, 5), 40, seed, direct=seed % 4 == 0, probation_max_ns=20 * 40 * MS)
    world.store_ns = rng.choice([0, 200_000, 3_000_000])
    world.start()
    world.run_t(3)
    for _ in range(4):
        share, kinds = rng.uniform(0, 0.5), rng.choice([None, ("CommitToken",), ("Token", "CommitToken"), ("Join",)])
        bad = {(a, b) for a in world.ids for b in world.ids if rng.random() < share}
        world.drop = lambda a, b, p, u, bad=bad, kinds=kinds: (
            (a, b) in bad and (kinds is None or type(p).__name__ in kinds)
        )
        world.broken_disks = {rng.choice(world.ids)} if rng.random() < 0.2 else set()
        world.run_t(rng.uniform(0.2, 6))
        for _ in range(rng.choice([0, 100])):  # in the middle of a view change, if there is one
            if any(owner.m.state is rng.choice([S.COMMIT, S.RECOVERY]) for owner in world.owners.values()):
                break
            world.run_t(0.01)
        hurt(world, rng, rng.choice(world.ids))
    world.drop = lambda *_: False
    world.broken_disks = set()
    for _ in range(100):
        world.run_t(1)
        if all(owner.m.members == world.ids and owner.m.state is S.OPERATIONAL for owner in world.owners.values()):
            break
    world.run_t(1)
    world.check_invariants()
    assert world.partition() == {world.ids}


def hurt(world, rng, victim):
    what = rng.choice(["crash", "pause", "nothing"])
    if what == "crash":
        world.crash(victim)
        world.run_t(rng.uniform(0.1, 3))
        world.start(victim)
    elif what == "pause":
        world.pause(victim)
        world.run_t(rng.uniform(0.1, 4))
        world.resume(victim)


@pytest.mark.parametrize(
    "key, rule",
    [
        ((S.OPERATIONAL, H.LOSS), None),
        ((S.GATHER, H.READY), None),
        ((S.GATHER, H.READY), Rule(Act.ENTER, S.GATHER)),
        ((S.COMMIT, H.TOKEN_SECOND), Rule(Act.RECOVER, S.COMMIT)),
        ((S.RECOVERY, H.INSTALLED), Rule(Act.INSTALL, S.GATHER)),
        ((S.GATHER, H.JOIN), Rule(Act.NOTE, S.OPERATIONAL)),
    ],
    ids=lambda part: "-".join(word.name for word in part) if part else "none",
)
def test_with_a_wrong_rule_a_crash_ends_otherwise(key, rule, monkeypatch):
    crash_in_a_view()
    if rule is None:
        monkeypatch.delitem(TABLE, key)
    else:
        monkeypatch.setitem(TABLE, key, rule)
    with pytest.raises(AssertionError):
        crash_in_a_view()


def crash_in_a_view():
    world = World(3, 40)
    world.start()
    world.run_t(4)
    assert world.partition() == {world.ids}
    world.crash(3)
    world.run_t(4)
    world.check_invariants()
    assert world.partition() == {(1, 2)}


# ------------------------------------------------------------------------------------------------------- single events


TOLD = {  # by the owner, the driver or another ring's packet: each in every state
    H.HINT: lambda m, now, peer: m.unreachable(now, peer.id),
    H.BLAMED: lambda m, now, peer: m.suspect(now, Cause("stuck", peer.id), (peer.id,)),
    H.WENT_ON: lambda m, now, peer: m.foreign(now, peer, ViewId(m.ring_seq + 400, peer.id)),
    H.LEAVE: lambda m, now, peer: m.leave(now),
    H.OUTDONE: lambda m, now, peer: rival_names(m, now),
}


def rival_names(m, now):
    """A life of my id that was with others says twice that it has met me."""
    hello = Hello(m.view, PackedRows((), (), ()), Rival(m.sight.incarnation, True, 2**60))
    m.ignored(now, Peer(m.me, 99), hello)
    return m.ignored(now + 5 * MS, Peer(m.me, 99), hello)


@pytest.mark.parametrize("state", [S.OPERATIONAL, S.GATHER, S.COMMIT, S.RECOVERY])
@pytest.mark.parametrize("happening", TOLD)
def test_what_a_member_is_told(state, happening):
    world = World(3, 40)
    world.start()
    m, peer = meet(world, 1, state).m, world.owners[3].peer
    frozen = m.frozen
    actions = TOLD[happening](m, world.now, peer)
    assert m.state is EXPECTED.get((state, happening), state)
    assert m.frozen is frozen, "what was written on a commit token binds until the next install"
    causes = [action.cause for action in actions if isinstance(action, Gathering)]
    assert len(causes) == (m.state is S.GATHER and state is not S.GATHER)
    first = causes[0] if causes and state is S.OPERATIONAL else START
    assert m.standing.cause == first, "why the view was left, not why an attempt was given up"


def test_events_without_a_rule_change_nothing():
    world = World(3, 40)
    world.start()
    world.run_t(5)
    owner, before = world.owners[1], world.owners[1].m.status()
    for happening in (H.JOIN, H.READY, H.TOKEN_SECOND, H.CONSENSUS, H.INSTALLED):
        assert not owner.m.standing.happens(world.now, happening)
    assert owner.m.receive(world.now, world.owners[2].peer, old_join(world, 2)) == [], "an old Join of a member"
    assert owner.m.status() == before


def old_join(world, q):
    """A Join of q from before the view, newly numbered."""
    m = world.owners[q].m
    m.voice.join(world.now)
    return replace(m.step.end()[0].packet, number=10_000, ring_seq=0)
