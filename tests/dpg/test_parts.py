"""Parts of DPG by themselves: detectors, tombs, bodies, flow, the tagger and its order at a site."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from ordercast.contract import CancelTimer, SetTimer, Setup, Transmit
from ordercast.errors import WireError
from ordercast.protocols.dpg.bodies import Bodies
from ordercast.protocols.dpg.channel import Misses, Timing
from ordercast.protocols.dpg.flow import CYCLE_NS_MAX, MessageCycle, Reports
from ordercast.protocols.dpg.options import DpgOptions
from ordercast.protocols.dpg.order import Order, Turn
from ordercast.protocols.dpg.pace import Pace
from ordercast.protocols.dpg.packets import (
    PACKETS,
    VERTICES_MAX,
    Message,
    Numbered,
    Numbers,
    Report,
    Wish,
    group_key,
    report,
    telling,
)
from ordercast.protocols.dpg.site import Cycles, Site, Telling
from ordercast.protocols.dpg.tagger import Tagger
from ordercast.protocols.dpg.tombs import BEYOND_MAX, Tombs
from ordercast.types import Frame, Identity, Peer
from ordercast.wire.codec import Codec

GROUP = group_key("g")
ONE, TWO = Peer(1, 10), Peer(2, 20)


def frame(sender: Peer, counter: int) -> Frame:
    return Frame(sender.id, sender.incarnation, counter, 1, 5, b"\1\0\0\0", b"x")


def message(sender: Peer, serial: int) -> Message:
    return Message(serial, serial, frame(sender, serial))


# ----------------------------------------------------------------------------------------------------------- detectors


def test_a_miss_before_a_report_counts_for_the_next_message() -> None:
    misses = Misses()
    assert not misses.heard(0, True), "the first is never contiguous"
    assert misses.heard(0, True)
    misses.heard(2, False)
    assert not misses.heard(0, True)
    assert misses.heard(0, True)


def test_by_timing_the_idle_gap_counts() -> None:
    """E3: full frames back to back begin exactly one transmission time apart."""
    timing = Timing(shortest_ns=100)
    assert not timing.heard(0, 1_000)
    assert timing.heard(1_000, 2_000) and timing.heard(2_099, 3_000)
    assert not timing.heard(3_100, 4_000)


# ----------------------------------------------------------------------------------------------------------- memory


def test_tombs_do_not_grow_with_the_run() -> None:
    tombs, draw = Tombs(), random.Random(1)
    todo = [(counter, sender, 7) for counter in range(1, 5_001) for sender in (1, 2, 3)]
    for start in range(0, len(todo), 30):
        part = todo[start : start + 30]
        draw.shuffle(part)
        for tag in part:
            assert tag not in tombs
            tombs.add(tag)
            assert tag in tombs
    assert tombs.size() == 3
    assert all(tag in tombs for tag in todo) and (5_001, 1, 7) not in tombs
    for counter in range(6_000, 6_000 + BEYOND_MAX + 2):  # a gap that never fills
        tombs.add((counter, 1, 7))
    assert tombs.size() < 10 and (5_500, 1, 7) in tombs
    for life in range(100):
        tombs.add((1, 9, life))
    assert tombs.size() < 20


def test_full_buffers_give_up_what_was_delivered_then_what_comes_latest() -> None:
    bodies = Bodies(2)
    assert bodies.store("a", 1, (), list) == (True, None)
    assert bodies.store("b", 1, (), list) == (True, None)
    assert bodies.store("c", 1, ["a"], list) == (True, None) and "a" not in bodies
    assert bodies.store("d", 1, (), lambda: ["b", "c", "e"]) == (True, "c")
    assert bodies.store("f", 1, (), list) == (False, None) and bodies.seized == 1


def test_message_cycle_grows_with_misses_spreads_and_decays() -> None:
    """E10: two sites that hear each other's pause do not keep it up."""
    one, two, fair = MessageCycle(), MessageCycle(), 8_000
    one.missed(fair)
    assert one.ns > fair, "one miss slows down already"
    for _ in range(100):
        one.missed(fair)
    assert one.ns == CYCLE_NS_MAX
    two.heard(one.ns, fair)
    assert two.ns == one.ns
    for _ in range(1_000):
        one.decay()
        two.decay()
        one.heard(two.ns, fair)
        two.heard(one.ns, fair)
    assert one.ns == two.ns == 0
    two.heard(fair // 8, fair)
    assert two.ns == 0


def test_reports_are_staggered_the_more_the_more_report() -> None:
    """E8: else all expire together."""
    times = Reports(5, random.Random(3))
    few = []
    for _ in range(200):
        times.restart(0)
        few.append(times.due)
    for sender in range(48):
        times.heard(0, 0, 1, sender, False)
    many = []
    for _ in range(200):
        times.restart(0)
        many.append(times.due)
    assert min(few) >= 5 and max(few) <= 10 < 40 < max(many) <= 85


def test_reports_are_brought_forward_rarely() -> None:
    """E9: once per two Report_Cycles, unless what was to be told is told."""
    times, gone = Reports(5, random.Random(3)), []
    for clock in range(100):
        times.due = 1e9
        planned = times.heard(clock, clock, 1, 2, waive=True)
        if any(isinstance(action, SetTimer) for action in planned) and times.goes(clock):
            gone.append(clock)
            times.settled()
    assert gone == list(range(0, 100, 10))
    assert times.heard(200, 200, 1, 2, waive=True) and times.heard(200, 200, 1, 3, waive=False) == [
        CancelTimer("report")
    ]


def test_what_is_due_within_a_count_waits_its_part_of_it() -> None:
    times = Reports(5, random.Random(3))
    assert times.passed(0, 0, 1_000) == []
    times.due = 5.25
    assert times.passed(7, 5, 1_000) == [SetTimer("report", 258)] and times.passed(7, 5, 1_000) == []
    assert not times.overdue(300, 5, urgent=False) and times.overdue(300, 5, urgent=True), "a timer that cannot come"
    assert times.overdue(300, 6, urgent=False)
    assert times.heard(300, 5, 1_000, 2, waive=False) == [CancelTimer("report")], "another told it"


def test_a_report_that_leaves_something_out_does_not_put_ours_off() -> None:
    times = Reports(5, random.Random(3))
    times.due = 5.25
    assert times.passed(7, 5, 1_000) == [SetTimer("report", 258)]
    assert times.heard(8, 5, 1_000, 2, waive=False, whole=False) == [] and times.due == 5.25
    assert times.heard(8, 5, 1_000, 2, waive=False, whole=True) == [CancelTimer("report")] and times.due > 10


def test_an_absence_is_known_by_what_the_group_says_not_by_what_was_heard() -> None:
    """Messages come each 2 ms; one site hears all of them, another one in five and is told of the losses."""
    for heard, lost, away in ((5, 0, True), (1, 4, True), (1, 0, False)):
        pace = Pace(400_000_000)
        for now in range(0, 1_000_000_000, 10_000_000):
            for _ in range(heard):
                pace.heard()
            pace.lost(lost)
            pace.tick(now)
            pace.next(now, True, 60)
            assert pace.away(now, 60) is None
        assert (pace.away(now + 250_000_000, 60) is not None) == away


# ---------------------------------------------------------------------------------------------------------- the tagger


def tagger(life: int = 5) -> Tagger:
    return Tagger(Setup(Identity(0, life, (1, 2)), 10**8, DpgOptions(), 1_000, random.Random(1)))


def say(core: Tagger, source: Peer, *serials: int, life: int = 0, heard: int = 0) -> list[Numbers]:
    core.receive(0, 0, source, Wish(GROUP, serials, life, heard), 0)
    return [a.packet for a in core.drained(0, 0) if isinstance(a, Transmit) and isinstance(a.packet, Numbers)]


def test_the_tagger_numbers_once_and_tells_again() -> None:
    core = tagger()
    [first] = say(core, ONE, 1, 2)
    assert (first.life, first.first, [t.serial for t in first.tags]) == (5, 1, [1, 2])
    [again, fresh] = say(core, ONE, 2, 3)
    assert (again.first, [t.serial for t in again.tags]) == (2, [2])
    assert (fresh.first, [t.serial for t in fresh.tags]) == (3, [3])
    assert say(core, TWO) == []


def test_a_new_tagger_goes_on_above_and_an_old_one_is_silent() -> None:
    core = tagger(life=5)
    assert say(core, ONE, 1, life=9, heard=40) == [], "first all say what they heard of the one before"
    [action] = core.timer(50_000_000, "grace", 50_000_000)
    assert isinstance(action, Transmit) and isinstance(action.packet, Numbers)
    assert action.packet.life == 10 and action.packet.first == 1, "a clock that was set back"
    old = tagger(life=5)
    say(old, ONE, 1)
    assert say(old, ONE, 2, life=9, heard=1) == [] and old.silent and say(old, TWO, 1) == []


def test_what_an_earlier_tagger_numbered_has_one_place() -> None:
    """Its sender did not hear the number, another site did, and a third hears of it from the new tagger."""
    sender, witness, third = (Order(GROUP, peer, 10, 100) for peer in (ONE, TWO, Peer(3, 30)))
    for order in (sender, witness, third):
        order.put(0, ONE, message(ONE, 1))
        order.numbered(0, numbers(1, (TWO, 9), life=4))
    sender.wish(0, [1])
    witness.numbered(1, numbers(2, (ONE, 1), life=4))
    assert told(list(witness.turns(10)))[-1][:2] == (1, 1)
    core = tagger(life=5)
    wishes = [order.repeat(500) or order.wish(500, [77]) for order in (sender, witness)]
    assert [core.receive(500, 0, peer, wish, 0) for peer, wish in zip((ONE, TWO), wishes, strict=True)][1] == []
    said = [a.packet for a in core.timer(600, "grace", 600) if isinstance(a, Transmit)]
    assert [(p.first, [(t.sender, t.serial) for t in p.tags]) for p in said if isinstance(p, Numbers)] == [
        (0, [(1, 1)]),
        (1, [(2, 77)]),
    ]
    for order in (sender, third):
        order.put(600, TWO, message(TWO, 77))
        for packet in said:
            assert isinstance(packet, Numbers)
            order.numbered(600, packet)
        assert not order.wishes and told(list(order.turns(700))) == [(2, 77, False, True), (1, 1, False, False)]


# ------------------------------------------------------------------------------------------------ its order at a site


def numbers(first: int, *tags: tuple[Peer, int], life: int = 5, group: bytes = GROUP) -> Numbers:
    return Numbers(life, first, tuple(Numbered(group, peer.id, peer.incarnation, serial) for peer, serial in tags))


def site_order() -> Order:
    return Order(GROUP, Peer(3, 30), hold_ns=10, repeat_ns=100)


def told(turns: list[Turn]) -> list[tuple[int, int, bool, bool]]:
    return [(turn.source.id, turn.packet.serial, turn.contiguous, turn.placed) for turn in turns]


def test_pdus_are_taken_by_number_and_gaps_are_seen() -> None:
    order = site_order()
    for peer, serial in ((TWO, 1), (ONE, 1), (ONE, 2), (ONE, 3)):
        order.put(0, peer, message(peer, serial))
    assert told(list(order.turns(0))) == []
    order.numbered(0, numbers(1, (ONE, 1), (TWO, 1)))
    assert told(list(order.turns(0))) == [(1, 1, False, True), (2, 1, True, True)]
    order.numbered(0, numbers(3, (ONE, 7), group=group_key("another")))
    order.numbered(0, numbers(4, (ONE, 2)))
    assert told(list(order.turns(0))) == [(1, 2, True, True)], "another group's number was heard"
    order.numbered(0, numbers(6, (ONE, 3)))
    assert told(list(order.turns(5))) == [], "number 5 may have been overtaken"
    assert told(list(order.turns(10))) == [(1, 3, False, True)], "number 5 was not heard"


def test_numbers_that_overtake_each_other_are_put_right() -> None:
    order = site_order()
    for serial in (1, 2, 3, 4):
        order.put(0, ONE, message(ONE, serial))
    order.numbered(0, numbers(1, (ONE, 1)))
    assert told(list(order.turns(0))) == [(1, 1, False, True)]
    order.numbered(1, numbers(4, (ONE, 4)))
    order.numbered(2, numbers(3, (ONE, 3)))
    order.numbered(2, numbers(3, (ONE, 3)))
    assert told(list(order.turns(2))) == []
    order.numbered(3, numbers(2, (ONE, 2)))
    assert told(list(order.turns(3))) == [(1, 2, True, True), (1, 3, True, True), (1, 4, True, True)]


def test_a_pdu_that_comes_too_late_has_no_place_and_the_next_is_not_contiguous() -> None:
    order = site_order()
    order.numbered(0, numbers(1, (ONE, 1), (ONE, 2), (ONE, 3)))
    order.put(0, ONE, message(ONE, 1))
    order.put(0, ONE, message(ONE, 3))
    assert told(list(order.turns(5))) == [(1, 1, False, True)], "number 2 is waited for"
    assert told(list(order.turns(10))) == [(1, 3, False, True)] and order.misses == 1
    order.put(11, ONE, message(ONE, 2))
    assert told(list(order.turns(11))) == [(1, 2, False, False)]


def test_what_is_late_waits_for_all_that_is_numbered_before_it() -> None:
    """It tells of what is before it: heard too early, that would be put before what comes."""
    order = site_order()
    order.numbered(0, numbers(1, (ONE, 1), (TWO, 1), (ONE, 3)))
    order.put(0, ONE, message(ONE, 1))
    assert told(list(order.turns(0))) == [(1, 1, False, True)]
    assert told(list(order.turns(10))) == [], "the turns of numbers 2 and 3 are over"
    order.numbered(10, numbers(4, (ONE, 4)))
    order.put(11, TWO, message(TWO, 1))
    order.put(11, ONE, message(ONE, 4))
    assert told(list(order.turns(11))) == [(1, 4, False, True), (2, 1, False, False)]


def test_another_life_of_the_tagger_is_never_contiguous() -> None:
    order = site_order()
    for serial in (1, 2, 3):
        order.put(0, ONE, message(ONE, serial))
    order.numbered(0, numbers(1, (ONE, 1)))
    order.numbered(0, numbers(2, (ONE, 2), life=6))
    order.numbered(0, numbers(9, (ONE, 3), life=5))
    assert told(list(order.turns(0))) == [(1, 1, False, True), (1, 2, False, True)]


def test_what_waited_for_a_tagger_is_not_forgotten_when_one_is_back() -> None:
    order = site_order()
    order.numbered(0, numbers(1, (ONE, 1)))
    for at, serial in ((10, 2), (20, 3), (30, 4)):
        order.put(at, ONE, message(ONE, serial))
    order.numbered(5_000, numbers(1, (ONE, 2), life=6))
    order.forget(5_000)
    order.numbered(5_050, numbers(2, (ONE, 3), life=6))
    assert [turn.packet.serial for turn in order.turns(5_050)] == [2, 3] and len(order.pdus) == 1
    for at in range(5_100, 6_200, 50):
        order.numbered(at, numbers(3, (TWO, at), life=6))
        order.forget(at)
    assert not order.pdus, "its number never came"


def test_wishes_are_repeated_until_the_number_is_heard() -> None:
    order = site_order()
    assert order.repeat(0) is not None, "at first it says that it is here"
    order.wish(0, [1])
    assert order.repeat(50) is None
    again = order.repeat(100)
    assert again is not None and again.serials == (1,)
    order.numbered(150, numbers(1, (Peer(3, 30), 1)))
    assert order.repeat(300) is None and not order.wishes


# ------------------------------------------------------------------------------------------------------------- reports


def test_a_report_says_on_the_wire_what_its_site_said() -> None:
    draw, codec = random.Random(7), Codec(PACKETS)
    for _ in range(200):
        n = draw.randint(0, 12)
        tags = [(draw.randint(1, 2**40), draw.randint(1, 3), draw.randint(1, 2**60)) for _ in range(n)]
        tags = list(dict.fromkeys(tags))
        arcs = []
        for k, x in enumerate(tags):
            for y in tags[k + 1 :]:
                if draw.random() < 0.3:
                    arcs.append((x, y, draw.choice([None, frozenset(), frozenset(draw.sample(tags, 1))])))
        some = tuple(tag for tag in tags if draw.random() < 0.5)
        said = Telling(tuple(tags), tuple(arcs), some, draw.choice([None, (1, 1, 1)]), some[:1])
        packet = codec.decode(codec.encode(report(said, (), 4, 5)))
        assert isinstance(packet, Report)
        heard = telling(packet)
        assert (heard.vertices, heard.undelivered, heard.lm, heard.l_deliv) == (
            tuple(tags),
            some,
            some[:1],
            said.l_deliv,
        )
        assert set(heard.arcs) == set(arcs)


@pytest.mark.parametrize(
    "bad",
    [
        Report(1, 0, who=b"\0", counters=(1,), states=b"\0"),
        Report(1, 0, lives=((1, 1),), who=b"\0", counters=(1, 2), states=b"\0\0"),
        Report(1, 0, lives=((1, 1),), who=b"\0", counters=(1,), states=b"\0", arcs=((0, 1),)),
        Report(1, 0, lives=((1, 1),), who=b"\0", counters=(1,), states=b"\0", marks=((0, 0),)),
        Report(1, 0, lives=((1, 1),), who=b"\0", base=2**63 - 1, counters=(1,), states=b"\0"),
        Report(1, 0, again=(((1, 2, 2), frame(ONE, 1)),)),
        Report(1, 0, lives=((1, 1),), who=bytes(10**5), counters=tuple(range(10**5)), states=bytes(10**5)),
        Report(1, 0, lives=((1, 1),), who=b"\0\0", counters=(1, 2), states=b"\0\0",
               excused=((0, 1, ((0, 1),) * 10**4),)),
        Report(1, 0, lives=((1, 1),), who=b"\0\0", counters=(1, 2), states=b"\0\0", excused=((0, 1, ((1, 1),)),)),
        Report(1, 0, lives=((1, 1),), who=b"\0\0", base=2**63 - 3, counters=(1, 2), states=b"\0\0",
               excused=((0, 1, ((0, 3),)),)),
    ],
)  # fmt: skip
def test_bad_reports_are_refused(bad: Report) -> None:
    codec = Codec(PACKETS)
    with pytest.raises(WireError):
        codec.decode(codec.encode(bad))
    assert VERTICES_MAX < 10**5


# ---------------------------------------------------------------------------------------------------------------- site


def site(**options: object) -> Site:
    return Site(Cycles(20, 4, 30, 12), 400, set(), **options)  # type: ignore[arg-type]


def given(told: list) -> list[tuple[int, str]]:
    return [(g.tag, g.certainty) for g in told]


def test_who_precedes_what_was_delivered_is_late_and_may_be_skipped() -> None:
    for skips in (False, True):
        here = site()
        here.skips_late = skips
        here.message(0, 1, "1", True)
        assert given(here.advance(20)) == [(1, "expired")]
        here.message(21, 3, "3", False)
        assert given(here.advance(41)) == [(3, "expired")]
        here.report(42, Telling((1, 2, 3), ((1, 2, None), (2, 3, None)), (2,), rm=((2, "2"),)))
        assert given(here.advance(62)) == ([] if skips else [(2, "late")])
        assert here.skipped == ([2] if skips else [])


def test_the_others_orders_what_is_not_known_and_a_body_that_never_comes_is_a_dummy() -> None:
    here = site()
    here.message(0, 1, "1", True)
    here.advance(20)
    here.report(21, Telling((1, 2, 3), ((1, 2, frozenset()), (2, 3, frozenset())), (2, 3), rm=((3, "3"),)))
    assert given(here.advance(30)) == []
    assert here.make_report(30).lm == (2,)
    assert given(here.advance(41)) == [(2, "dummy"), (3, "marked")]


def test_a_return_begins_after_what_another_delivered_and_skips_what_precedes_it() -> None:
    here = site()
    here.begun = False
    here.message(0, 5, "5", False)
    here.report(1, Telling((3, 4, 5), ((3, 4, frozenset()), (4, 5, frozenset())), (4, 5), l_deliv=3))
    assert given(here.advance(30)) == []
    here.begin(30, 3, 5)
    assert given(here.advance(30)) == [(5, "expired")], "from the first that was heard in person"
    here.report(31, Telling((2, 5), ((2, 5, None),), (2,), rm=((2, "2"),)))
    assert given(here.advance(60)) == [] and 2 in here.skipped


def test_a_return_skips_all_that_the_other_delivered() -> None:
    """1, and 2 beside it, were delivered by another, whose last one is 1: only time told it that 2 is before 1."""
    for delivered, gets in (((), [(2, "expired"), (3, "expired")]), ((1, 2), [(3, "expired")])):
        here = site()
        here.begun = False
        here.report(0, Telling((1, 2, 3), ((1, 3, None), (2, 3, None)), (3,), 1, rm=((2, "2"), (3, "3"))))
        here.begin(1, 1, None, delivered)
        assert given(here.advance(30)) == gets


def test_delivered_vertices_stay_in_reports() -> None:
    """E7: else whoever does not hear itself starves."""
    here = site()
    here.message(0, 1, "1", True)
    here.advance(20)
    assert here.make_report(31).vertices == (1,)
    assert here.make_report(32).vertices == ()


def test_what_a_report_hides_between_two_that_it_names_is_named_again() -> None:
    here = site()
    for tag in (1, 2, 3):
        here.message(tag, tag, str(tag), True)
    here.advance(22)
    assert here.make_report(33).vertices == (1, 2, 3) and here.make_report(35).vertices == ()
    _, waive = here.report(36, Telling((1, 3), ((1, 3, None),)))
    told = here.make_report(36)
    assert waive and told.vertices == (2,), "its sender has lost it, and does not know of it"
    here.report(37, Telling((1, 2, 3), ((1, 2, None), (2, 3, None))))
    assert here.make_report(48).vertices == (), "nobody lacks it any more"


def test_what_no_report_named_and_ours_will_soon_not_name() -> None:
    """Another's report puts ours off, poor as it may be, once the message was named by anybody."""
    for named_by in ("nobody", "another", "us"):
        here = site()
        here.message(0, 1, "1", True)
        here.advance(20)
        if named_by == "us":
            here.make_report(21)
        else:
            here.report(21, Telling((1, 2) if named_by == "another" else (2,)))
        owed = named_by == "nobody"
        assert [here.owes(clock) for clock in (25, 26, 31, 32)] == [False, owed, owed, False]


def test_what_left_the_graph_is_not_remembered_as_named() -> None:
    here = site()
    here.message(0, 1, "1", True)
    here.message(1, 2, "2", True)
    here.advance(20)
    here.make_report(21)
    assert here.named == {1, 2}
    here.advance(99)
    assert 1 not in here.done and here.named == {2}


def test_a_body_that_did_not_come_is_asked_for_again() -> None:
    here = site()
    here.report(0, Telling((1,), (), (1,)))
    assert here.lacks(0) and here.make_report(0).lm == (1,)
    assert not here.lacks(3) and here.lacks(4) and here.make_report(4).lm == (1,)


@pytest.mark.parametrize(("patience", "comes", "dummy_at"), [(1, 99, 40), (3, 0, 40), (3, 36, 45), (3, 99, 80)])
def test_no_dummy_while_bodies_that_were_lost_still_come(patience: int, comes: int, dummy_at: int) -> None:
    """All of a chain were lost; from the third on one comes each count, as long as any do."""
    here, chain = site(), tuple(range(1, 100))
    here.patience = patience
    marks = tuple((x, y, frozenset()) for x, y in pairwise(chain))
    here.report(0, Telling(chain, marks, chain, rm=((1, "1"),)))
    assert given(here.advance(20)) == [(1, "expired")]
    for clock in range(21, 100):
        again = ((clock - 18, "x"),) if clock <= comes else ()
        if (first := given(here.report(clock, Telling(rm=again))[0])) != []:
            assert first[0] == (2, "dummy") and clock == dummy_at
            return
    raise AssertionError("it waits for ever")


def test_a_mark_that_own_messages_excuse_waits_for_them() -> None:
    """E12: another's message may be right behind, unless the own one lies between."""
    here = site(hears_self=False)
    here.message(0, 1, "1", True)
    here.advance(20)
    here.sent(21, 9, "9")
    assert given(here.message(22, 2, "2", True)) == []
    assert given(here.report(23, Telling((1, 9, 2), ((1, 9, frozenset()), (9, 2, frozenset())), ()))[0]) == [
        (9, "marked"), (2, "marked"),
    ]  # fmt: skip
