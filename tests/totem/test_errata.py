"""What the letter of the Totem paper does in the smallest cases, and what is done here (numbers of the errata)."""

from __future__ import annotations

import pytest
from tests.totem import literal
from tests.totem.literal import Step

from ordercast.protocols.totem.guarantee import Merge, Row
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.ring import Ring


def test_t1_less_than_waits_for_the_next_of_the_same_ring() -> None:
    assert literal.t1(literal.Less) == [[], [], ["a"], []]
    assert literal.t1(Merge) == [[], ["a"], [], ["b"]]


def test_t2_an_idle_ring_would_block_the_others() -> None:
    assert literal.t2(literal.MessagesOnly) == [[], [], [], []]
    assert literal.t2(Merge) == [[], [], [], ["a", "b"]]


def test_t3_equal_timestamps_of_two_rings_need_an_order() -> None:
    assert [literal.t3(literal.Arrival, first) for first in "ab"] == [["a", "b"], ["b", "a"]]
    assert [literal.t3(Merge, first) for first in "ab"] == [["a", "b"], ["a", "b"]]


def test_t4_a_clock_as_high_as_the_token_gives_its_stamp_twice() -> None:
    assert literal.t4(literal.Exceeding) == (5, "stamp"), "dropped: everything up to 5 was there"
    assert literal.t4(Lamport) == (6, "")


def test_t5_a_clock_that_begins_anew_puts_new_messages_before_old_ones() -> None:
    one, other, _ = literal.t5(carried=False)
    assert one == ["x", "y"] and other == ["y", "x"]
    one, other, _ = literal.t5(carried=True)
    assert one == other == ["x", "y"]


def test_t6_receipt_at_a_gateway_is_not_receipt_on_its_ring() -> None:
    has, delivers = Step("4", "has m"), Step("1", "delivers m")
    by_the_letter, here = literal.t6(literal.OnReceipt), literal.t6(Row)
    assert by_the_letter.index(delivers) < by_the_letter.index(has)
    assert here.index(delivers) > here.index(has)


def test_t7_a_mark_that_comes_once_says_nothing_of_those_behind() -> None:
    by_the_letter, here = literal.t7(literal.Once), literal.t7(Ring)
    assert by_the_letter[1] == Step("2", "aru 1: f") and by_the_letter[2] == Step("3", "aru 0"), "3 lacks f"
    assert sorted(step.who for step in here if step.word.endswith(": f")) == ["1", "2", "3"]
    lowered = max(k for k, step in enumerate(here) if step.word == "aru 0")
    assert all(k > lowered for k, step in enumerate(here) if step.word.endswith(": f"))


def test_t8_a_lone_sender_that_counts_its_own_alternates() -> None:
    assert literal.t8(own_counts=True) == [10, 0] * 5 and literal.t8(own_counts=False) == [10] * 10


def test_t9_who_always_serves_serves_in_vain() -> None:
    assert [step.who for step in literal.t9(literal.Obliging) if step.word == "f again"] == ["2"] * 4
    assert [step.who for step in literal.t9(Ring) if step.word == "f again"] == ["2", "3"]


def test_t10_the_sum_needs_as_many_messages_one_way_as_the_other() -> None:
    assert literal.t10(100) == (literal.LATENCY_US, literal.LATENCY_US)
    letter, here = literal.t10(10)
    assert here == literal.LATENCY_US and letter == pytest.approx(4190.9, abs=0.1)


def test_t11_drift_times_holding_time_is_the_error() -> None:
    assert literal.t11(100_000_000, 1e18) == literal.t11(100_000_000, literal.HOLD_MAX_NS) == 97.5
    assert literal.t11(5_000_000_000, 1e18) == -25.0 and literal.t11(5_000_000_000, literal.HOLD_MAX_NS) is None
