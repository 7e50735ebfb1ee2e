"""What the letter of the DPG paper does in the smallest cases, and what is done here (numbers of the errata)."""

from __future__ import annotations

from tests.dpg import literal

from ordercast.protocols.dpg.channel import Buffers, Timing
from ordercast.protocols.dpg.flow import MessageCycle, Reports
from ordercast.protocols.dpg.graph import MARKED
from ordercast.protocols.dpg.pace import Pace
from ordercast.protocols.dpg.site import Site


def test_e1_a_report_out_of_its_place_puts_a_message_before_an_earlier_one() -> None:
    arcs, out = literal.e1(one_order=False)
    assert (3, 2, None) in arcs and out == [1, 3, 2]
    arcs, out = literal.e1(one_order=True)
    assert arcs == [(1, 2, MARKED), (2, 3, None)] and out == [1, 2, 3]


def test_e2_one_bit_for_two_buffers_marks_an_arc_over_what_was_lost() -> None:
    assert literal.e2(literal.OneBit) == [(1, 2, None), (2, 4, MARKED)], "3 lies between 2 and 4"
    assert literal.e2(Buffers) == [(1, 2, MARKED), (2, 4, None)]


def test_e3_frames_back_to_back_are_never_less_apart_than_one_of_them_takes() -> None:
    assert literal.e3(literal.Apart) == [False] * 4
    assert literal.e3(Timing) == [False, True, True, False]


def test_e4_the_printed_formula_reverses_marks() -> None:
    printed, right = literal.e4()
    assert {(2, 1), (3, 2), (5, 4)} <= printed
    assert {(x, y) for x, y, _ in right} == {(1, 2), (2, 3), (3, 4), (4, 5)}


def test_e5_a_reception_takes_an_arc_away() -> None:
    assert literal.e5() == [(1, 2, None), (2, 3, None), (3, 4, MARKED)]


def test_e6_what_does_not_follow_the_last_delivered_never_comes() -> None:
    assert literal.e6(literal.SUCCESSORS) == ["L", "b", "a"]
    assert literal.e6(Site) == ["L", "b", "a", "c"]


def test_e7_a_sender_that_does_not_hear_itself_waits_for_reports_that_name_its_messages() -> None:
    by_the_letter, here = literal.e7("dpg_reports_forget"), literal.e7()
    at = 700.0
    assert max(n for ms, n in by_the_letter if ms < at) < 40 < 100 < max(n for ms, n in here if ms < at)


def test_e8_timers_that_all_reset_all_expire() -> None:
    together, staggered = literal.e8(literal.Together), literal.e8(Reports)
    assert all(sum(at == count for at, _ in together) == 4 for count, _ in together)
    assert staggered and all(sum(at == count for at, _ in staggered) == 1 for count, _ in staggered)


def test_e9_who_does_not_hear_itself_waives_the_delay_every_time() -> None:
    assert literal.e9(literal.Unlimited) == list(range(20)) and literal.e9(Reports) == [0, 10]


def test_e10_a_maximum_never_decays() -> None:
    assert set(literal.e10(literal.Largest)) == {10.0}
    assert literal.e10(MessageCycle)[-1] < 1


def test_e11_without_traffic_no_time_passes() -> None:
    assert literal.e11(literal.SILENT) is None and literal.e11(Pace) is not None


def test_e12_a_mark_across_an_own_message_is_false_and_spreads() -> None:
    arcs, soon, late = literal.e12(literal.SUSPENDED)
    assert arcs == [("x", "y", MARKED)] and soon + late == ["x", "y", "z"]
    arcs, soon, late = literal.e12(Site)
    assert arcs == [("x", "y", frozenset({"z"}))] and soon + late == ["x", "z", "y"]
