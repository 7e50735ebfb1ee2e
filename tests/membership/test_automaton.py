"""The automaton is its table: what moves a member is listed there, and everything listed there happens."""

import random

import pytest
from harness import MS, World

from ordercast.membership import State, gather
from ordercast.membership.automaton import TABLE, Happening, as_markdown

S, H = State, Happening


def test_every_change_of_state_in_random_worlds_is_in_the_table_and_all_of_them_occur(monkeypatch):
    """`allowed` is asserted at each change; here it also notes what was asked."""
    seen = set()

    def noting(state, happening, to):
        seen.add((state, happening, to))
        rule = TABLE.get((state, happening))
        return rule is not None and rule.to is to

    monkeypatch.setattr(gather, "allowed", noting)
    for seed in range(20):
        stormy(seed)
    crash_in_recovery()
    moves = {(state, happening, rule.to) for (state, happening), rule in TABLE.items() if rule.to is not None}
    elsewhere = {H.BLAMED, H.INSTALLED, H.LEAVE, H.HINT}  # said by the owner or the driver: tested below
    assert seen <= moves
    missing = {(s.name, h.name) for s, h, _ in moves - seen if h not in elsewhere}
    assert missing <= {("COMMIT", "LOSS")}, "with a token, loss in Commit is T_commit's; silence is the layer's"


def crash_in_recovery():
    world = World(3, 40)
    world.start()
    while world.owners[1].m.state is not S.RECOVERY:
        world.run_t(0.001)
    world.crash(3)
    world.run_t(4)
    assert world.partition() == {(1, 2)}


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
        world.run_t(rng.uniform(0.2, 6))
        victim = rng.choice(world.ids)
        what = rng.choice(["crash", "pause", "nothing"])
        for _ in range(rng.choice([0, 100])):  # in the middle of a view change, if there is one
            if any(owner.m.state is rng.choice([S.COMMIT, S.RECOVERY]) for owner in world.owners.values()):
                break
            world.run_t(0.01)
        if what == "crash" and victim in world.owners:
            world.crash(victim)
            world.run_t(rng.uniform(0.1, 3))
            world.start(victim)
        elif what == "pause" and victim in world.owners:
            world.pause(victim)
            world.run_t(rng.uniform(0.1, 4))
            world.resume(victim)
    world.drop = lambda *_: False
    for _ in range(100):
        world.run_t(1)
        if all(owner.m.members == world.ids and owner.m.state is S.OPERATIONAL for owner in world.owners.values()):
            break
    world.run_t(1)
    world.check_invariants()
    assert world.partition() == {world.ids}


def test_events_without_an_entry_change_nothing():
    world = World(3, 40)
    world.start()
    world.run_t(5)
    owner = world.owners[1]
    assert (S.OPERATIONAL, H.JOIN_OF_OTHERS) not in TABLE
    before = owner.m.state, owner.m.view
    stranger = world.owners[2].m
    world.do(owner, owner.receive(world.now, world.owners[2].peer, join_of(stranger, ring_seq=0)))
    assert (owner.m.state, owner.m.view) == before, "a stale Join of a member moves nobody"


def join_of(membership, **changes):
    from msgspec.structs import replace

    membership.voice.announce = True
    join = membership.voice.join(0, membership.ring_seq, (), None, membership.cause)[0].packet
    return replace(join, number=10_000, **changes)


@pytest.mark.parametrize("state", [S.OPERATIONAL, S.COMMIT, S.RECOVERY])
def test_a_hint_gathers_in_every_state_of_a_ring(state):
    assert TABLE[state, H.HINT].to is S.GATHER
    assert TABLE[state, H.BLAMED].to is S.GATHER
    assert TABLE[state, H.LEAVE].to is S.PARTED


def test_the_documentation_shows_this_table():
    text = as_markdown()
    for happening in Happening:
        assert happening.value in text
    assert text.count("→ Gather") == sum(rule.to is S.GATHER for rule in TABLE.values())
