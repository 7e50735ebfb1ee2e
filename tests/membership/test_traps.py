"""Rules that look superfluous until they are missing: each is taken out, and a scenario must then go wrong.

The same scenario passes with the rule in place; so the test shows both that the rule is there and that it is needed.
"""

import pytest
from harness import MS, Token, World
from patterns import bridge, majorities, pair, random_cuts

from ordercast.membership import CommitToken, Hello, Join, Membership, waits
from ordercast.membership import cause as causes
from ordercast.membership.automaton import Happening, State
from ordercast.membership.choose import Chooser, Graph
from ordercast.membership.evidence import Evidence
from ordercast.membership.handover import Handover
from ordercast.membership.step import Step
from ordercast.membership.table import Table
from ordercast.types import ViewId


class Wrong(AssertionError):
    """The scenario went wrong."""


def expect(holds, text=""):
    if not holds:
        raise Wrong(text)


def group(n, t=40, seed=1, **options):
    world = World(n, t, seed, **options)
    world.start()
    world.run_t(5)
    expect(parted(world) == {world.ids}, "no first view")
    return world


def parted(world):
    try:
        return world.partition()
    except AssertionError as why:
        return {str(why)}


def most(world, since):
    return max(world.count(since).values())


def cut(world, pairs):
    world.drop = lambda a, b, packet, unicast: (a, b) in pairs


# ---------------------------------------------------------------------------------------------------------- scenarios


def patterns_cost_one_view():
    for n, pattern, seed in [(5, bridge, 1), (9, bridge, 2), (5, random_cuts, 3), (9, random_cuts, 5), (5, pair, 1)]:
        world = group(n, seed=seed)
        since = world.now
        cut(world, pattern(n))
        world.run_t(60)
        expect(most(world, since) <= 1, f"{pattern.__name__}: {most(world, since)} views")
        expect(len(parted(world)) > 1)


def one_way_link_is_left():
    world = group(3)
    cut(world, {(1, 2)})
    since = world.now
    world.run_t(60)
    expect(most(world, since) <= 1, f"{most(world, since)} views")


def two_ends_of_a_bridge_agree():
    world = World(5, 40)
    cut(world, bridge(5))
    world.start()
    world.run_t(60)
    expect(sorted(map(len, parted(world))) == [2, 3], str(parted(world)))
    expect(most(world, 20 * 40 * MS) == 0, "views later")


def majorities_stay_whole():
    world = group(5)
    since = world.now
    cut(world, majorities(5))
    world.run_t(60)
    expect(most(world, since) == 0, f"{most(world, since)} views")


def a_returning_member_breaks_no_equal_view():
    world = group(3)
    cut(world, pair(3))
    world.run_t(20)
    inside = max(parted(world), key=len)
    leaver = 1 if 1 in inside else 3
    world.leave(leaver)
    world.run_t(20)
    since = world.now
    world.start(leaver)
    world.run_t(30)
    counts = world.count(since)
    expect(max(c for q, c in counts.items() if q != leaver) == 0, f"{counts}")


def a_flapping_link_is_shut_out():
    world = group(3)
    since, period = world.now, 3 * world.timeout_ns
    world.drop = lambda a, b, packet, unicast: {a, b} == {1, 2} and (world.now - since) % period < period // 2
    world.run_t(120)
    expect(most(world, since) <= 6, f"{most(world, since)} views")


def calm_forgives():
    world = group(2, probation_max_ns=40 * 40 * MS)
    for _ in range(4):
        world.drop = lambda *_: True
        world.run_t(3)
        world.drop = lambda *_: False
        world.run_t(30)
    world.run_t(300)
    world.drop = lambda *_: True
    world.run_t(3)
    world.drop = lambda *_: False
    world.run_t(2)
    expect(parted(world) == {(1, 2)}, "still on probation after a long calm")


def six_restarts_cost_no_probation():
    world = group(3)
    for _ in range(6):
        world.crash(2)
        world.run_t(6)
        world.start(2)
        world.run_t(2)
        expect(parted(world) == {world.ids}, str(parted(world)))


def a_quick_restart_costs_one_view():
    for seed in range(6):
        world = group(4, 200, seed=seed)
        world.run_t(seed / 7)
        world.crash(2)
        world.run_t(0.2)
        since = world.now
        world.start(2)
        world.run_t(3)
        expect(parted(world) == {world.ids}, str(parted(world)))
        expect(most(world, since) <= 1, f"{most(world, since)} views")


def a_crash_splits_nobody():
    """Members notice a crash at different moments."""
    for seed in range(12):
        world = group(5, seed=seed)
        world.run_t(seed / 12)
        since = world.now
        deaf = {(3, 4), (4, 3)} if seed % 2 else {(3, 1), (3, 2)}
        cut(world, {(3, q) for q in world.ids} | deaf)
        world.run_t(0.2)
        world.crash(3)
        world.run_t(20)
        expect(most(world, since) <= 1, f"seed {seed}: {most(world, since)} views")


def a_broken_disk_holds_nobody_up():
    """Its member cannot form a view, stays in Gather and goes on calling."""
    world = group(3)
    world.broken_disks.add(2)
    world.crash(2)
    world.disk.pop(2)
    world.run_t(3)
    since = world.now
    world.start(2)
    world.run_t(40)
    expect(most(world, since) == 0, f"{most(world, since)} views")
    expect(world.owners[2].m.state is State.GATHER and "no space left" in world.owners[2].m.status()["waits"])
    world.broken_disks.clear()
    world.run_t(4)
    expect(parted(world) == {world.ids}, str(parted(world)))


def broken_unicasts_cost_nothing():
    world = group(3)
    since = world.now
    world.drop = lambda a, b, packet, unicast: unicast and (a, b) == (1, 2)
    world.run_t(60)
    expect(most(world, since) == 0, f"{most(world, since)} views")


def links_without_tokens_are_found():
    world = group(3)
    since = world.now
    world.drop = lambda a, b, packet, unicast: (a, b) == (1, 2) and isinstance(packet, Token | CommitToken)
    world.run_t(400)
    expect(most(world, since) <= 11, f"{most(world, since)} views")
    expect(len(parted(world)) == 2, str(parted(world)))


def a_false_hint_is_contradicted():
    world = group(5)
    world.hint(world.owners[2], 4)
    world.run_t(6)
    expect(parted(world) == {world.ids}, str(parted(world)))


def pauses_strike_nobody():
    world = group(3)
    since = world.now
    for _ in range(4):
        for q in world.ids:
            world.pause(q)
        world.run_t(3)
        for q in world.ids:
            world.resume(q)
        world.run_t(5)
    expect(most(world, since) == 0, f"{most(world, since)} views")
    strikes = [link.strikes for owner in world.owners.values() for link in owner.m.sight.evidence.links.values()]
    expect(not any(strikes), f"strikes {strikes}")
    world = group(3)  # T_loss is T again
    links = [link for owner in world.owners.values() for link in owner.m.sight.evidence.links.values()]
    for link in links:  # earned long ago, and since then a good run
        link.strikes, link.since = 3, -1000 * world.timeout_ns
    for q in world.ids:
        world.pause(q)
        world.run_t(0.3)  # so that packets of the others wait for the first
    world.run_t(3)
    for q in world.ids:
        world.resume(q)
    world.run_t(5)
    expect([link.strikes for link in links] == [3] * 6, "a pause broke a good run")


def the_dead_do_not_speak():
    """Packets of 2's former life still arrive; its new life is what counts."""
    world = group(2)
    late = []
    real = world.transmit

    def transmit(owner, action):
        if owner.me == 2 and isinstance(action.packet, Hello | Join) and owner.peer.incarnation == 2:
            late.append((owner.peer, action.packet))
        real(owner, action)

    world.transmit = transmit
    world.run_t(3)
    world.crash(2)
    world.run_t(6)
    for _ in range(20):
        world.arrive(*_args(late[-1], 1))
        world.run_t(0.2)
    link = world.owners[1].m.sight.evidence.links[2]
    expect(not link.hears or link.incarnation == 2)
    world.start(2)
    world.run_t(2)
    for _ in range(20):
        world.arrive(*_args(late[-1], 1))
        world.run_t(0.1)
    world.crash(2)
    world.run_t(0.9)
    for _ in range(30):
        world.arrive(*_args(late[-1], 1))
        world.run_t(0.1)
    expect(parted(world) == {(1,)}, str(parted(world)))


def _args(packet, to):
    return packet[0], to, packet[1]


def late_stores_still_form_views():
    world = World(3, 40)
    world.store_ns = 70 * MS  # above T_consensus
    world.start()
    world.run_t(60)
    expect(parted(world) == {world.ids}, str(parted(world)))
    world.crash(3)
    world.run_t(30)
    expect(parted(world) == {(1, 2)}, str(parted(world)))


# ------------------------------------------------------------------------------------------------------------ mutants

SCENARIOS = [
    patterns_cost_one_view, one_way_link_is_left, two_ends_of_a_bridge_agree, majorities_stay_whole,
    a_returning_member_breaks_no_equal_view, a_flapping_link_is_shut_out, calm_forgives,
    six_restarts_cost_no_probation, a_quick_restart_costs_one_view, a_crash_splits_nobody,
    a_broken_disk_holds_nobody_up,
    broken_unicasts_cost_nothing, links_without_tokens_are_found, a_false_hint_is_contradicted, pauses_strike_nobody,
    the_dead_do_not_speak, late_stores_still_form_views,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_with_all_rules(scenario):
    scenario()


def one_way_hearing_suffices(patch):
    patch.setattr("ordercast.membership.choose.linked", lambda a, b, direct=False: b.id in a.hears or a.id in b.hears)


def rows_not_relayed(patch):
    patch.setattr(Table, "relayed", lambda self, now, keep_ns: [self.own])


def a_working_view_is_no_evidence(patch):
    make = Chooser.__init__
    patch.setattr(Chooser, "__init__", lambda self, me, direct, gap_ns: make(self, me, True, gap_ns))


def no_preference_for_the_current_view(patch):
    best = Graph.best

    def fickle(self, among):
        self.views = []
        return best(self, among)

    patch.setattr(Graph, "best", fickle)


def no_probation(patch):
    patch.setattr(Evidence, "probation_ns", lambda self, q: 0)
    patch.setattr("ordercast.membership.evidence.FREE_STRIKES", 99)


def strikes_never_forgotten(patch):
    patch.setattr(Evidence, "_forgive", lambda self, now, link: None)


def strikes_kept_over_a_restart(patch):
    learn = Evidence.learn

    def keeping(self, now, q, incarnation):
        old = self.links.get(q)
        news = learn(self, now, q, incarnation)
        if news and old is not None:
            self.links[q].strikes = min(12, old.strikes + 1)
        return news

    patch.setattr(Evidence, "learn", keeping)


def no_wait_for_unknown_links(patch):
    patch.setattr(waits, "unknown_link", lambda *a: None)


def no_rest(patch):
    patch.setattr(waits, "left_out", lambda *a: None)


def any_join_gathers(patch):
    def eager(self, now, q, join):
        if self.state is State.OPERATIONAL:
            self.standing.happens(now, Happening.JOIN_OF_OURS, causes.told(join.cause, q))

    patch.setattr(Membership, "_left_by", eager)


def token_never_by_multicast(patch):
    patch.setattr("ordercast.membership.handover.MULTICAST_AFTER", 10**9)


def a_lost_token_blames_nobody(patch):
    patch.setattr(Handover, "judge", lambda self, q, got: False)


def gone_without_contradiction(patch):
    patch.setattr(Table, "_contradict", lambda self, now, row: False)


def own_pause_not_noticed(patch):
    patch.setattr(Step, "begin", lambda self, now, late, evidence: None)


def own_pause_noticed_at_timers_only(patch):
    heard = Membership.heard

    def deaf_to_pauses(self, now, peer):
        self.step.alarm = 2**63
        return heard(self, now, peer)

    patch.setattr(Membership, "heard", deaf_to_pauses)


def the_dead_count_as_life(patch):
    patch.setattr(Evidence, "counts", lambda self, now, q, incarnation: True)


def no_numbers_in_reserve(patch):
    patch.setattr("ordercast.membership.ringnumber.RESERVE", 0)


MUTANTS = [
    (one_way_hearing_suffices, one_way_link_is_left),
    (rows_not_relayed, two_ends_of_a_bridge_agree),
    (a_working_view_is_no_evidence, majorities_stay_whole),
    (no_preference_for_the_current_view, a_returning_member_breaks_no_equal_view),
    (no_probation, a_flapping_link_is_shut_out),
    (strikes_never_forgotten, calm_forgives),
    (strikes_kept_over_a_restart, six_restarts_cost_no_probation),
    (no_wait_for_unknown_links, a_quick_restart_costs_one_view),
    (no_rest, patterns_cost_one_view),
    (any_join_gathers, a_broken_disk_holds_nobody_up),
    (token_never_by_multicast, broken_unicasts_cost_nothing),
    (a_lost_token_blames_nobody, links_without_tokens_are_found),
    (gone_without_contradiction, a_false_hint_is_contradicted),
    (own_pause_not_noticed, pauses_strike_nobody),
    (own_pause_noticed_at_timers_only, pauses_strike_nobody),
    (the_dead_count_as_life, the_dead_do_not_speak),
    (no_numbers_in_reserve, late_stores_still_form_views),
]


def test_a_member_that_went_on_has_left_my_view():
    world = group(3)
    one, two = world.owners[1], world.owners[2]
    world.do(one, one.carry(world.now, one.m.foreign(world.now, two.peer, ViewId(4, 2))))
    assert one.m.state is State.OPERATIONAL, "an older view says nothing"
    world.do(one, one.carry(world.now, one.m.foreign(world.now, two.peer, ViewId(10_000, 2))))
    assert one.m.state is State.GATHER and one.m.standing.cause.reason == "departure"


def test_a_member_that_went_on_is_remembered_while_a_view_is_formed():
    world = World(3, 40)
    world.start()
    one, two = world.owners[1], world.owners[2]
    while one.m.state is not State.RECOVERY:
        world.run_t(0.001)
    world.do(one, one.carry(world.now, one.m.foreign(world.now, two.peer, ViewId(10_000, 2))))
    assert one.m.state is State.RECOVERY, "remembered only"
    installs = []
    world.installed = lambda now, owner, ring, members: installs.append(owner.m.state) if owner is one else None
    world.run_t(1)
    assert installs[0] is State.GATHER, "and acted upon at the install"


@pytest.mark.parametrize("mutant, scenario", MUTANTS, ids=lambda part: part.__name__)
def test_without_the_rule(mutant, scenario, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(Wrong):  # and nothing else: a rule that was taken out badly raises, too
        scenario()
