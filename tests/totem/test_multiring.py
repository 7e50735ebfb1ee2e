"""Several rings, one order: the rules alone, and whole runs in shapes of every kind."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import gateway_crashes
import pytest
from msgspec.structs import replace

from ordercast.contract import Action, Note, Ordered, Refuse, Setup, Up
from ordercast.errors import WireError
from ordercast.joining import Progress
from ordercast.outbox import Outbox
from ordercast.protocols.totem import joined_rings
from ordercast.protocols.totem.bodies import Done, RingView, State, Supply, Vector, body_of, frame_of
from ordercast.protocols.totem.feed import VECTOR_FRAMES, Feed
from ordercast.protocols.totem.flow import Limits
from ordercast.protocols.totem.gateway import Carrying
from ordercast.protocols.totem.guarantee import Merge, Row, deliverable, safe_prefix
from ordercast.protocols.totem.hand import Hand
from ordercast.protocols.totem.here import Phase
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.layer import RingLayer
from ordercast.protocols.totem.multiring import MultiRing
from ordercast.protocols.totem.options import TotemOptions
from ordercast.protocols.totem.pace import Pace
from ordercast.protocols.totem.packets import Data, Token
from ordercast.protocols.totem.ring import Ring, Stamped
from ordercast.protocols.totem.topology import connected, next_topology, topology
from ordercast.sim.faults import AnyFault, ClockJump, Crash, Cut, Loss, Partition
from ordercast.sim.scenario import Cost, Hosts, Load, NamedGroup, Net, OtherHosts, Scenario
from ordercast.stack import Stack
from ordercast.swarm.judge import judge
from ordercast.trace.schema import Kind
from ordercast.types import Frame, Identity, Service, Submission, ViewId

ME = Identity(3, 7, (1, 2, 3, 4, 5))


def frame(sender: int, counter: int, service: Service = Service.AGREED) -> Frame:
    return Frame(sender, 1, counter, 1, int(service), (1).to_bytes(4, "little"), b"x")


def ring(number: int, *members: int) -> RingView:
    return RingView(number, ViewId(100 + number, min(members)), members)


# ----------------------------------------------------------------------------------------------------------- the order


def test_a_merge_gives_out_what_the_plain_rules_give_out() -> None:
    """Frames and promises of three sources in any order: the clever form against sorting everything."""
    draw = random.Random(5)
    for _ in range(300):
        merge = Merge(3, 1, 10)
        pending: list[tuple[int, int, str]] = []
        services: dict[str, Service] = {}
        gv, ga = dict.fromkeys(range(3), 9), {r: dict.fromkeys(range(3), 9) for r in range(3)}
        got: list[str] = []
        for step in range(40):
            source = draw.randrange(3)
            what = draw.random()
            if what < 0.5:
                gv[source] += draw.randint(1, 5)
                name, service = f"{step}", draw.choice((Service.AGREED, Service.SAFE))
                assert not merge.take(0, Ordered(frame(step, 1, service), stamp=gv[source], source=source + 1), source)
                pending.append((gv[source], source, name))
                services[name] = service
            elif what < 0.75:
                gv[source] += draw.randint(1, 9)
                merge.promise(0, source, gv[source])
            else:
                row = draw.randrange(3)
                for other in range(3):
                    ga[row][other] += draw.randint(0, 20)
                merge.learn(row, [ga[row][other] for other in range(3)])
            got += [str(event.frame.sender) for event in merge.deliver()]
        expected = []
        places = {name: (stamp, source, name) for stamp, source, name in pending}
        for name in deliverable(pending, gv):
            if services[name] is Service.SAFE and not safe_prefix([places[name]], ga):
                break
            expected.append(name)
        assert got == expected


def test_a_frame_that_comes_on_two_rings_is_one_and_a_stamp_never_goes_back() -> None:
    merge = Merge(2, 2, 1)
    first, second = Ordered(frame(1, 1), stamp=5, source=1), Ordered(frame(1, 2), stamp=7, source=1)
    assert merge.take(0, first, 0) == "" and merge.take(1, first, 0) == "twice"
    assert merge.take(0, second, 0) == ""
    assert merge.take(0, first, 0) == "stamp"
    merge.promise(0, 1, 6)
    assert [event.stamp for event in merge.deliver()] == [5]


def test_nobody_forgets_a_frame_before_every_ring_holds_it() -> None:
    merge = Merge(2, 1, 1)
    merge.take(0, Ordered(frame(1, 1), stamp=5, source=1), 0)
    merge.promise(0, 1, 9)
    assert len(list(merge.deliver())) == 1
    merge.learn(0, [9, 9])
    assert not list(merge.forget()) and merge.kept[0]
    merge.learn(1, [5, 5])
    assert len(list(merge.forget())) == 1 and not merge.kept[0]


def test_a_row_counts_what_is_safe_on_its_ring() -> None:
    row = Row(2)
    row.mark(10, 0, 100)
    row.mark(12, 1, 90)
    assert row.settle(11) and row.stamps == [100, 0]
    assert not row.settle(11)
    assert row.settle(12) and row.stamps == [100, 90]


# -------------------------------------------------------------------------------------------------------- the topology


def test_ways_of_a_chain_and_of_a_cycle() -> None:
    chain = topology([ring(1, 1, 2), ring(2, 2, 3), ring(3, 3, 4)])
    assert chain.tree and chain.members == (1, 2, 3, 4)
    assert chain.routes[0].parent == (0, 0, 1) and chain.routes[0].gateway == (0, 2, 3)
    assert chain.routes[0].beyond(1) == {1, 2} and chain.routes[2].depth == (2, 1, 0)
    cycle = topology([ring(1, 1, 2), ring(2, 2, 3), ring(3, 3, 1)])
    assert not cycle.tree
    for source, route in enumerate(cycle.routes):
        assert sorted(route.depth) == [0, 1, 1] and route.parent[source] == source
    assert not topology([ring(1, 1, 2), ring(2, 1, 2)]).tree, "two gateways side by side are two ways"


def test_a_net_in_parts_that_hang_together_has_a_label_for_each() -> None:
    parts = topology([ring(1, 1, 2), RingView(1, ViewId(200, 3), (3, 4)), ring(2, 2, 3)])
    assert [parts.label(k) for k in range(3)] == [1, 17, 2]


def test_everybody_on_a_ring_must_have_said_so() -> None:
    one, two = ring(1, 1, 2), ring(2, 2, 3)
    states = {1: State(1, (one,)), 2: State(2, (one, two)), 3: State(3, (two,))}
    assert connected([one], states) == ((one, two), None)
    assert connected([one], {1: states[1], 2: states[2]}) == ((), 3)
    states[3] = State(4, (RingView(2, ViewId(300, 3), (3,)),))  # it has gone on since
    assert connected([one], states) == ((), 3)


def suppliers(**told: tuple[int, int, int]) -> dict[int, tuple[int, ...]]:
    """Who sends again; told: member -> known, top, and a digest of what is behind a hole, of the first of two rings."""
    one, two, old = ring(1, 1, 2, 3), ring(2, 3, 4, 5), ViewId(7, 1)
    states = {}
    for member in range(1, 6):
        known, top, extra = told.get(f"m{member}", (10, 10, 0))
        on = (one,) * (member <= 3) + (two,) * (member >= 3)
        states[member] = State(member, on, old, (known, 10), (top, 10), (extra, 0), (5, 5))
    plan = next_topology((one, two), states, {old: topology([one, two])})
    return dict(plan.of(1).supply)


def test_frames_are_sent_again_by_the_nearest_of_those_who_hold_most() -> None:
    assert suppliers() == {}, "all hold the same"
    assert suppliers(m5=(8, 8, 0)) == {1: (0,)}
    assert suppliers(m1=(8, 8, 0), m2=(9, 9, 0)) == {3: (0,)}, "nobody sends what another has as well, and more"
    assert suppliers(m4=(12, 12, 0), m5=(8, 8, 0)) == {1: (0,), 4: (0,)}, "who is nearer may have what went no further"
    assert suppliers(m2=(8, 12, 5)) == {1: (0,), 2: (0,)}, "what is behind a hole nobody else may have"
    assert suppliers(m1=(8, 12, 5), m2=(8, 12, 7)) == {1: (0,), 2: (0,), 3: (0,)}


def test_where_a_member_stands_now_takes_the_place_of_what_it_said_for_another_plan() -> None:
    feed = Feed(0)
    feed.words.extend([frame(1, 1), frame(2, 1), frame(1, 2)])
    feed.tell(frame(1, 3))
    assert list(feed.words) == [frame(2, 1)] and feed.states == {1: frame(1, 3)}


def test_my_own_state_leaves_before_those_of_others() -> None:
    """A member that began anew and was not heard of would count as one of the topology that the others begin."""
    feed = Feed(0)
    for sender, counter, own in ((1, 1, False), (3, 1, True), (2, 1, False), (3, 2, True), (1, 2, False)):
        feed.tell(frame(sender, counter), own=own)
    assert [item.frame for item in feed.take(9)] == [frame(3, 2), frame(1, 2), frame(2, 1)]


def test_my_own_state_leaves_before_what_is_asked_for_again() -> None:
    here, feed = Ring(ViewId(8, 1), 1, (1, 2, 3), Limits(1, 5), stamps=True), Feed(0)
    here.urgent, here.first = feed.urgent, feed.first
    feed.tell(frame(2, 1))
    told = here.visit(Token(ViewId(8, 1), 1, 0, 0, 0), feed)
    assert [held.frame for held in told.new] == [frame(2, 1)]
    for visit, own in enumerate((False, True, True)):  # the second and third time it was asked for once more in vain
        feed.tell(frame(2, 2 + visit))
        if own:
            feed.tell(frame(1, 1 + visit), own=True)
        again = here.visit(Token(ViewId(8, 1), 1, 4 + 3 * visit, max(1, visit), 0, aru_id=2, rtr=(1,)), feed)
        if own:
            assert [held.frame for held in again.new] == [frame(1, 1 + visit)] and not again.resent
        else:
            assert [held.seq for held in again.resent] == [1] and not again.new
    assert here.visit(Token(ViewId(8, 1), 1, 13, 3, 0, aru_id=2, rtr=(1,)), feed).resent


def test_what_joins_rings_leaves_a_ring_whose_window_others_fill() -> None:
    here = Ring(ViewId(8, 1), 1, (1, 2), Limits(2, 2, fair=False))
    box = Outbox(1, 1, 8)
    box.put([bytes(4)] * 3, Service.AGREED)
    full = Token(ViewId(8, 1), 1, 0, 0, 0, fcc=2)
    here.urgent = lambda: 0
    assert here.visit(full, box).new == []
    assert len(here.visit(replace(full, token_seq=2), box).new) == 1, "nobody starves beside what joins rings"
    assert here.visit(replace(full, token_seq=4, seq=1, fcc=3), box).new == [], "but it takes turns"
    here.urgent, here.starved = (lambda: 3), False
    assert len(here.visit(replace(full, token_seq=6, seq=1), box).new) == 1


def test_one_ring_alone_keeps_to_its_window() -> None:
    here = Ring(ViewId(8, 1), 1, (1, 2), Limits(2, 2, fair=False))
    box = Outbox(1, 1, 8)
    box.put([bytes(4)] * 3, Service.AGREED)
    full = Token(ViewId(8, 1), 1, 0, 0, 0, fcc=2)
    assert not any(here.visit(replace(full, token_seq=2 * k), box).new for k in range(4))


def test_what_a_token_says_of_its_ring_holds_once_all_it_counts_has_come() -> None:
    """A token that overtakes frames, as an accelerated one does at every visit, would say nothing for ever."""
    hand = Hand()
    for seq, stamp in ((3, 30), (3, 31), (5, 50), (8, 80)):
        hand.promised(Token(ViewId(8, 1), 1, stamp, seq, 0, timestamp=stamp))
    assert hand.kept(2) is None
    assert getattr(hand.kept(4), "timestamp", 0) == 31
    assert getattr(hand.kept(7), "timestamp", 0) == 50
    assert hand.kept(7) is None, "no news"
    assert getattr(hand.kept(8), "timestamp", 0) == 80


def test_the_clock_of_who_joins_rings_runs_with_time_and_never_goes_back() -> None:
    clock = Lamport(5_000_000)
    for now, shows in ((1_000_000, 5_000_000), (3_000_000, 5_002_000), (3_000_999, 5_002_000)):
        clock.run(now)
        assert clock.clock == shows
    clock.receive(6_000_000)
    clock.run(3_000_000)
    assert clock.clock == 6_000_001, "what was heard is ahead of my time"
    clock.run(3_500_000)
    assert clock.clock == 6_000_501, "and stays so"


def test_a_token_in_hand_tells_what_its_ring_cannot_say_any_more() -> None:
    """Of its own frames that change groups; what has not gone up counts as still to come."""
    here = Ring(ViewId(8, 1), 1, (1, 2), Limits(4, 4), stamps=True, source=7)
    token = Token(ViewId(8, 1), 1, 0, 3, 0, timestamp=90)
    assert here.past(token, 2) == 0, "frames are missing"
    group = replace(frame(2, 1), control=True)
    for seq, stamp, source, item in ((1, 40, 2, frame(2, 1)), (2, 35, 1, group), (3, 60, 2, group)):
        here.receive(Data(ViewId(8, 1), seq, item, stamp, source))
    assert here.past(token, 2) == 59 and here.past(token, 1) == 34 and here.past(token, 3) == 90
    assert len(list(here.deliver())) == 3
    assert here.past(token, 2) == 90, "all went up: what comes is stamped above the token"
    here.lamport.receive(120)
    assert here.past(token, 2) == 120, "or above what was heard on another ring"


def test_a_feed_asks_what_a_token_tells_only_while_something_waits_for_it() -> None:
    feed, asked = Feed(1), []

    class Owner(Waits):
        def tick(self, now: int, child: int) -> None:
            asked.append((now, child))

    feed.owner = Owner()
    here = Ring(ViewId(8, 1), 1, (1, 2), Limits(4, 4), stamps=True)
    token = Token(ViewId(8, 1), 1, 0, 0, 0, timestamp=90)
    assert feed.turn(5, here, token) == [] and asked == [(5, 1)]
    feed.undecided.add((4, 1))
    assert feed.turn(6, here, token) == [Note("turn", {"past": 90})]


# ------------------------------------------------------------------------------------------------------- what cannot be


def carrying(me: int) -> Carrying:
    rings = topology([ring(1, 1, 2, 3), ring(2, 3, 4, 5)])
    mine = [0, 1] if me == 3 else [0]
    return Carrying(me, ViewId(1, 1), rings, mine, Merge(2, len(mine), 1), [Feed(k) for k in range(len(mine))])


def test_of_the_gateways_of_a_ring_that_runs_its_clock_which_begins_the_longest_way() -> None:
    assert carrying(3).runs == [True, True] and carrying(1).runs == [False]
    nets = topology([ring(1, 1, 12, 14), ring(2, 2, 12, 23), ring(3, 3, 23, 34), ring(4, 4, 34, 14)])
    runs = {}
    for me, mine in ((12, (0, 1)), (23, (1, 2)), (34, (2, 3)), (14, (3, 0))):
        here = Carrying(me, ViewId(1, 1), nets, mine, Merge(4, 2, 1), [Feed(0), Feed(1)])
        runs |= {(me, source + 1): here.runs[child] for child, source in enumerate(mine)}
    assert [key for key, value in sorted(runs.items()) if value] == [(12, 1), (12, 2), (14, 4), (23, 3)]


def test_a_vector_is_believed_only_of_who_brings_those_frames() -> None:
    here = carrying(1)
    assert here.believable(0, 3, Vector(ViewId(1, 1), 5, ((1, 4),), ((1, (3, 4)),)))
    assert not here.believable(0, 2, Vector(ViewId(1, 1), 5, ((1, 4),)))
    assert not here.believable(0, 3, Vector(ViewId(1, 1), 5, ((0, 4),))), "nobody brings a ring its own frames"
    assert not here.believable(0, 3, Vector(ViewId(1, 1), 5, ((7, 4),)))
    assert not here.believable(0, 3, Vector(ViewId(1, 1), 5, (), ((1, (3, 4, 5)),)))


def test_a_gateway_promises_nothing_that_still_waits() -> None:
    here = carrying(3)
    here.need = 9
    here.merge.take(0, Ordered(frame(1, 1), stamp=5, source=1), 0)
    here.merge.promise(0, 0, 9)
    here.feeds[1].forwards.append(Stamped(frame(1, 1), 5, 1))
    assert here.vector(1).entries == ((0, 4),)
    here.feeds[1].forwards.clear()
    here.changed()
    assert here.due(1) and here.vector(1).entries == ((0, 9),)
    assert not here.due(1), "idle rings fall silent"


class Waits:
    """A layer above in whose topology somebody always waits for a vector."""

    def tick(self, now: int, child: int) -> None:
        raise NotImplementedError

    def turn(self, child: int, past: Callable[[int], int]) -> list[Action]:
        return [Note("turn", {"past": past(2)})]

    def vector_due(self, child: int) -> bool:
        return True

    def vector(self, child: int) -> Frame:
        return replace(frame(9, 1), control=True)

    def own_waiting(self, child: int) -> int:
        return 0

    def own(self, child: int, n: int) -> list[Stamped]:
        return []

    def own_left(self) -> list[Action]:
        return []


@pytest.mark.parametrize("n", [1, 4])
def test_a_queue_that_never_empties_keeps_no_vector_back_and_vectors_no_queue(n: int) -> None:
    feed = Feed(0)
    feed.owner, feed.open = Waits(), True
    feed.forwards.extend(Stamped(frame(1, k), k, 1) for k in range(1, 5 * VECTOR_FRAMES))
    taken = [item for _ in range(3 * VECTOR_FRAMES // n) for item in feed.take(n)]
    vectors = [at for at, item in enumerate(taken) if item.source == 0]
    assert len(taken) == 3 * VECTOR_FRAMES and len(vectors) == 2
    assert max(b - a for a, b in pairwise([0, *vectors])) <= VECTOR_FRAMES + n
    assert [item.stamp for item in taken if item.source] == list(range(1, 1 + len(taken) - len(vectors)))


def test_gateways_that_wait_for_each_other_tell_what_changes_groups_beyond_what_waits() -> None:
    """Else each vector message would let go one frame of each."""
    here = carrying(3)
    here.need = 9
    for stamp, control in ((5, False), (7, True)):
        item = Ordered(replace(frame(1, stamp), groups=("g",), control=control), stamp=stamp, source=1)
        here.merge.take(0, item, 0)
        here.feeds[1].forwards.append(Stamped(item.frame, stamp, 1))
    here.feeds[1].undecided.add((5, 1))
    here.merge.promise(0, 0, 9)
    told = here.vector(1)
    assert told.entries == ((0, 4),) and told.controls == ((0, 6),), "the frame that changes a group waits behind"
    assert not here.due(1)
    other = carrying(1)
    assert other.believable(0, 3, Vector(ViewId(1, 1), 9, (), (), ((1, 6),)))
    assert not other.believable(0, 2, Vector(ViewId(1, 1), 9, (), (), ((1, 6),)))
    other.hear(0, 1, Vector(ViewId(1, 1), 9, (), (), ((1, 6),)))
    assert other.merge.controls == [0, 6] and other.merge.known == [0, 0]


def joined() -> tuple[Stack, MultiRing]:
    """Gateway 3 of two rings, about to install a topology of both whose frames are stamped from 10 on."""
    setup = Setup(ME, 40_000_000, TotemOptions(), 1_472, random.Random(1), (0, 1))
    stack = joined_rings(setup)
    layer = next(node.layer for node in stack.nodes if isinstance(node.layer, MultiRing))
    here, agreement = layer.here, layer.passage.agreement
    rings = (ring(1, 1, 2, 3), ring(2, 3, 4, 5))
    for place, view in zip(here.places, rings, strict=True):
        place.view = view
    for member in ME.members:
        state = State(9, tuple(each for each in rings if member in each.members))
        agreement.hear(frame_of(state, replace(ME, me=member)), state)
    assert agreement.make(rings, {}) and agreement.plan is not None and agreement.plan.base == 10
    agreement.done = {member: (7, 9, agreement.plan.key) for member in ME.members}
    agreement.said, here.phase, here.barrier = agreement.plan.key, Phase.SPOKEN, 10
    return stack, layer


def for_group(stamp: int) -> Ordered:
    return Ordered(replace(frame(1, 1), groups=("g",)), seq=1, stamp=stamp, source=1)


def test_what_went_up_and_may_change_a_group_counts_before_its_change_is_heard() -> None:
    """Join and promise come in one step, and the groups above speak of the join behind it."""
    stack, layer = joined()
    near, far = (node for node in stack.nodes if isinstance(node.layer, RingLayer))
    layer.passage._agree(1)
    layer.filter.knows = True
    stack._run(2, near, [Up(for_group(15))])
    feed = layer.here.feeds[1]
    assert feed.undecided == {(15, 1)}
    joins = Frame(5, 1, 1, 1, int(Service.AGREED), (4).to_bytes(4, "little"), b"\x92\x01\xa1g", control=True)
    stack._run(3, far, [Up(Ordered(joins, seq=1, stamp=13, source=2)), Up(Progress(19, 1))])
    assert layer.filter.groups == {"g": {5}}
    assert not feed.undecided and not feed.unwanted


def test_in_a_new_topology_nothing_is_kept_back_until_its_groups_are_known() -> None:
    """Frames that came before it was installed are carried on in the step that installs it."""
    _, layer = joined()
    layer.filter.knows = True
    layer.here.early.append((0, for_group(15)))
    layer.passage._agree(1)
    feed = layer.here.feeds[1]
    assert feed.undecided == {(15, 1)}
    layer.turn(1, lambda source: 20)
    assert not feed.undecided and not feed.unwanted


@pytest.mark.parametrize(
    "body",
    [
        State(1, (ring(1, 1),), ViewId(1, 1), (1,), (1, 2), (0,), (1,)),
        State(1, (ring(1, 1),), ViewId(1, 1)),
        State(1, (ring(1, 1), RingView(1, ViewId(9, 1), (1, 2)))),
        Supply(1, b"12345678", 2, 2, ViewId(1, 1), 0, 5, 1, 1, 1, frame(1, 1)),
        Supply(1, b"12345678", 1),
        Done(1, b"short"),
    ],
)
def test_words_that_nobody_can_have_said_are_refused(body: State | Supply | Done) -> None:
    with pytest.raises(WireError):
        body_of(frame_of(body, ME))


# ---------------------------------------------------------------------------------------------------------------- runs

TWO = (Net(members=(1, 2, 3)), Net(members=(3, 4, 5)))
CHAIN = (Net(members=(1, 2)), Net(members=(2, 3, 4)), Net(members=(4, 5)))
STAR = (Net(members=(1, 2, 3)), Net(members=(1, 4)), Net(members=(2, 5)), Net(members=(3, 6)))
CYCLE = (Net(members=(1, 2, 5)), Net(members=(2, 3)), Net(members=(3, 4)), Net(members=(4, 1)))


def run(nets: tuple[Net, ...], members: int, *faults: AnyFault, **more: object) -> dict[str, int]:
    """Run it to the end; nothing may be broken, and nothing may be left waiting."""
    fields: dict[str, object] = {"messages": 200, "service": "safe", "heal_ms": 600.0, "closing": 4, **more}
    scenario = Scenario(protocol="multiring", members=members, nets=nets, faults=faults, **fields)  # type: ignore[arg-type]
    found = judge(scenario, plain=True)
    assert not found.breaks, found.breaks[0].text
    return dict(found.outcome.notes)


@pytest.mark.parametrize(("nets", "members"), [(TWO, 5), (CHAIN, 5), (STAR, 6), (CYCLE, 5)])
def test_one_order_over_rings_of_every_shape_with_loss(nets: tuple[Net, ...], members: int) -> None:
    notes = run(nets, members, Loss(p=0.03, until_ms=300.0))
    assert notes["forward"] and notes["vector message"]


def test_the_only_gateway_dies_and_returns() -> None:
    notes = run(TWO, 5, Crash(member=3, at_ms=100.0, down_ms=150.0), load=Load(rate=200.0))
    assert notes["ring removed"] and notes["ring joined"]


def test_a_gateway_of_a_cycle_dies_and_frames_go_the_other_way() -> None:
    notes = run(CYCLE, 5, Crash(member=2, at_ms=100.0, down_ms=200.0), load=Load(rate=200.0))
    assert notes["reroute"]


def test_a_gateway_is_cut_from_one_of_its_rings() -> None:
    run(TWO, 5, Partition(shape="gateway", member=3, at_ms=100.0, until_ms=250.0), load=Load(rate=200.0))


def test_messages_of_groups_stay_where_nobody_wants_them() -> None:
    notes = run(STAR, 6, groups=6, service="agreed", load=Load(rate=100.0))
    assert notes["filtered"]


def test_on_a_cycle_nothing_is_kept_back() -> None:
    """Whoever takes over a way must have what went by it: every frame goes to every ring but its own."""
    notes = run(CYCLE, 5, groups=6, service="agreed", load=Load(rate=100.0))
    assert not notes.get("filtered") and notes["forward"] >= 200 * (len(CYCLE) - 1)


def test_a_gateway_that_is_left_alone_decides_what_nobody_wants() -> None:
    """No datagram comes, so there is no pause after any."""
    named = (NamedGroup(name="near", members=(1, 2)), NamedGroup(name="far", members=(1, 3)))
    nets = (Net(members=(1, 2)), Net(members=(1, 3)))
    gone = (Crash(member=2, at_ms=100.0), Crash(member=3, at_ms=100.0))
    scenario = Scenario(
        protocol="multiring", members=3, nets=nets, named_groups=named, senders=(1,), messages=60, faults=gone,
        load=Load(rate=100.0), heal_ms=900.0, core=(1,),
    )  # fmt: skip
    found = judge(scenario)
    assert not found.breaks, found.breaks[0].text


def test_own_frames_on_their_way_are_bounded() -> None:
    """With it every queue of every gateway is."""
    setup = Setup(Identity(1, 1, (1, 2, 3)), 40_000_000, TotemOptions(), 60_000, random.Random(1))
    layer = next(node.layer for node in joined_rings(setup).nodes if isinstance(node.layer, MultiRing))
    layer.sender.outbox.put([bytes(50_000)] * 2_000, Service.AGREED)
    layer.pace.window = layer.pace.most
    assert 16 <= layer.own_waiting(0) == layer.pace.most <= 64 * 2**20 // 60_000
    layer.here.own_frames.extend(frame(1, k) for k in range(layer.pace.most - 3))
    assert layer.own_waiting(0) == 3 and layer.own_waiting(1) == 0


def test_as_many_own_frames_are_on_their_way_as_arrive_soon() -> None:
    """One is watched: what comes quickly lets more leave, if all that might leave did; what comes late, fewer."""
    pace = Pace(4, 64, 100)

    def round_trip(n: int, on_way: int, took: int) -> int:
        pace.left(n, on_way)
        pace.tick(1_000)
        pace.tick(1_010)  # not again
        pace.held(1_001, on_way)  # that one did not arrive yet
        pace.held(1_000 + took, 0)
        return pace.window

    assert pace.window == 4
    assert round_trip(3, 3, 1) == 4, "it did not fill what it had"
    assert round_trip(4, 4, 24) == 8
    assert round_trip(8, 8, 25) == 8 == round_trip(8, 8, 50), "neither quick nor slow"
    assert round_trip(1, 1, 51) == 4 == round_trip(4, 4, 51), "never fewer than the least"
    for _ in range(10):
        round_trip(pace.window, pace.window, 1)
    assert pace.window == 64
    pace.left(64, 64)
    pace.restart()
    pace.held(2_000, 0)
    assert pace.window == 4, "other rings: nothing is known of them"


def test_a_new_member_s_window_is_what_a_rotation_of_its_ring_carries() -> None:
    setup = Setup(Identity(1, 1, (1, 2, 3)), 40_000_000, TotemOptions(window_size=2), 1_472, random.Random(1))
    layer = next(node.layer for node in joined_rings(setup).nodes if isinstance(node.layer, MultiRing))
    assert layer.pace.window == layer.pace.least == 2


def test_a_pure_gateway_sends_nothing_and_holds_up_nobody() -> None:
    scenario = Scenario(
        protocol="multiring", members=5, nets=TWO, pure=(3,), groups=2, messages=100, closing=5, heal_ms=1.0
    )
    found = judge(scenario, plain=True)
    assert not found.breaks and found.outcome is not None
    rows = [row for row in found.outcome.trace.rows if row.member == 3]
    assert not [
        row for row in rows if row.kind in (Kind.SUBMIT, Kind.ORIGINATE) or (row.kind == Kind.DELIVER and row.groups)
    ]
    setup = Setup(Identity(3, 1, (1, 2, 3)), 40_000_000, TotemOptions(), 1_000, random.Random(1), (0, 1), pure=True)
    stack = joined_rings(setup)
    assert stack.submit(0, Submission([b"x"])) == stack.regroup(0, "g", True) == [Refuse("pure gateway")]
    assert stack.room(0, 0) == []


def test_shares_of_named_groups_and_costs_of_other_hosts() -> None:
    near, all_of_them = (
        NamedGroup(name="near", members=(1, 2, 3), share=0.9),
        NamedGroup(name="all", members=(1, 2, 3, 4, 5), share=0.1),
    )
    slow = OtherHosts(members=(3,), receive=Cost(us=500.0))
    scenario = Scenario(
        protocol="multiring",
        members=5,
        nets=TWO,
        named_groups=(near, all_of_them),
        messages=400,
        senders=(1,),
        load=Load(rate=1000.0),
    )
    outcome = judge(scenario).outcome
    assert outcome is not None
    far = sum(row.count or 0 for row in outcome.trace.rows if row.kind == Kind.DELIVER and row.member == 5)
    assert 20 <= far <= 60, "one in ten crosses"
    slower = judge(scenario.changed(other_hosts=(slow,))).outcome
    assert slower is not None and slower.events < outcome.events / 2, "its token rests as long as it takes"


def test_view_ids_grow_over_a_crash_before_the_disk_has_written() -> None:
    """Another's clock is an hour ahead, so that what a next life takes from its own says nothing."""
    ahead = (ClockJump(member=1, at_ms=40.0), Crash(member=1, at_ms=50.0, down_ms=50.0))
    scenario = Scenario(
        protocol="multiring", members=5, nets=TWO, messages=100, load=Load(rate=100.0), heal_ms=900.0, faults=ahead,
        hosts=Hosts(disk_us=1_000.0),
    )  # fmt: skip
    found = judge(scenario)
    assert not found.breaks and found.outcome is not None
    rows = found.outcome.trace.rows
    joined = max(row.time_ns for row in rows if row.member == 5 and row.kind == Kind.VIEW) / 1e6
    assert joined > 100.0
    gone = Crash(member=5, at_ms=joined + 0.2, down_ms=100.0)
    alone = Cut(pairs=("3-5", "4-5"), at_ms=joined + 10.0, until_ms=joined + 400.0)
    found = judge(scenario.changed(faults=(*ahead, gone, alone)))
    assert not found.breaks, found.breaks[0].text


@pytest.mark.parametrize("returns", [True, False])
@pytest.mark.parametrize(("packet", "nth"), [("Data", 2), ("Token", 30), ("CommitToken", 2)])
def test_a_gateway_dies_before_a_packet(packet: str, nth: int, returns: bool) -> None:
    """`make every-packet` tries them all."""
    assert gateway_crashes.run((packet, nth, returns))[1] == []


@pytest.mark.parametrize("actions", range(0, 8))
def test_a_gateway_dies_in_the_middle_of_a_step(actions: int) -> None:
    run(TWO, 5, Crash(member=3, at_ms=60.0, down_ms=120.0, actions=actions), messages=80, load=Load(rate=300.0))
