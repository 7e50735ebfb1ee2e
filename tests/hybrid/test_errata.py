"""Errata of the hybrid paper: the smallest run that shows each, right with the correction, wrong by the letter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hybrid import literal
from tests.hybrid.schedules import Group, random_run

from ordercast.conformance import golden
from ordercast.conformance.golden_hybrid import ticket_run
from ordercast.protocols.hybrid.assignment import assign
from ordercast.protocols.hybrid.detector import MeanShift
from ordercast.protocols.hybrid.policy import Policy
from ordercast.protocols.hybrid.process import Process
from ordercast.protocols.hybrid.ways import Ways

CASES = {case["name"]: case for case in golden.load(Path(__file__).parents[1] / "golden/hybrid.json")}
FAR = {3: {1: 1.0, 2: 9.0}}


@pytest.mark.parametrize(
    ("case", "by_the_letter"),
    [
        ("H1-role-change-not-applied-yet", {"process": literal.H1}),
        ("H2-H3-no-second-ticket", {"process": literal.H2H3}),
        ("H7-no-active-left", {"change": literal.h7}),
        ("H10-ghost-ticket", {"change": literal.h10}),
        ("H15-last-active-aborts-go-passive", {"process": literal.H15}),
    ],
)
def test_vectors(case: str, by_the_letter: dict[str, Any]) -> None:
    assert ticket_run(CASES[case]) == []
    assert ticket_run(CASES[case], **by_the_letter)


def h4(**variant: Any) -> Group:
    """1 and 2 are active; 1 has ticketed a message of 3, not sent the ticket, and receives two of 2."""
    group = Group(3, [1, 2], {3: 1}, **variant)
    return group.play("send 3", "recv 1 3", "send 2", "send 2", "recv 1 2", "recv 1 2").settle()


def h6(**variant: Any) -> Group:
    """3 has nothing outstanding and changes to a closer sequencer."""
    return Group(3, [1, 2], {3: 2}, FAR, **variant).play("change_sequencer 3", "send 3").settle()


def h8(**variant: Any) -> Group:
    """1 dies with the wish of 3 to be active; 3 is promoted, and orders that wish itself."""
    group = Group(3, [1], **variant)
    return group.play("go_active 3", "recv 2 3", "crash 1", "view", "send 2").settle()


def h9(**variant: Any) -> Group:
    """The ticket of a message of 3 waits at 1 when 3 dies."""
    group = Group(3, [1, 2], {3: 1}, **variant)
    return group.play("send 3", "recv 1 3", "recv 2 3", "crash 3", "view", "send 1").settle()


def h11(**variant: Any) -> Group:
    """3 has a message that 1 did not order and one that waits; 1 dies."""
    group = Group(3, [1], **variant)
    return group.play("send 3", "recv 2 3", "change_sequencer 3", "send 3", "crash 1", "view").settle()


def h12(**variant: Any) -> Group:
    """2 has delivered three messages of 1 when it sends its own."""
    group = Group(2, [1, 2], **variant)
    return group.play("send 1", "send 1", "send 1", "recv 2 1", "recv 2 1", "recv 2 1", "send 2").settle()


@pytest.mark.parametrize(
    ("run", "by_the_letter"),
    [
        (h4, {"process": literal.H4}),
        (h6, {"process": literal.H6}),
        (h8, {"process": literal.H8}),
        (h9, {"process": literal.H9, "change": literal.h9}),
        (h11, {"change": literal.h11}),
        (h12, {"numbers": literal.H12}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_smallest_runs(run: Callable[..., Group], by_the_letter: dict[str, Any]) -> None:
    assert run().wrong() == ""
    assert run(**by_the_letter).wrong()


@pytest.mark.parametrize(("kind", "count"), [(Process, 1), (literal.H5, 2)], ids=["corrected", "by the letter"])
def test_H5_only_who_loses_its_sequencer_reassigns(kind: type[Process], count: int) -> None:
    """4 leans on 1, though 3 is closer; 2 becomes passive, which is no concern of 4."""
    group = Group(4, [1, 2, 3], {4: 1}, process=kind)
    group.play("send 4", "go_passive 2", "recv 1 2", "null 1", "recv 3 2", "null 3", "recv 4 2", "recv 4 1", "recv 4 3")
    assert group.order(4) == [(2, 1)]
    assert group.settle().wrong() == ""
    assert group.tickets[4, 1] == count


def test_H14_idle_active_processes_hold_everybody_up_without_nulls() -> None:
    group = Group(2, [1, 2]).play("send 1")
    group.empty()
    assert group.order(1) == []
    assert group.settle().order(1) == group.order(2) == [(1, 1)]


def test_H15_who_is_alone_does_not_try_to_leave() -> None:
    group = Group(2, [1], {2: 1})
    ways = Ways(1)
    policy = Policy(MeanShift(1), 0.2, ways, 20, False)
    for now in (0, 1_000_000, 2_000_000):
        policy.submitted(now)
    ways.ask(0, [2])
    assert ways.answered(10, 2, 1)
    assert policy.decide(2_000_000, group.up[1]) is None
    group.up[1].actives |= {2}
    assert policy.decide(2_000_000, group.up[1]) == "passive"


def test_H17_figure_2_depends_on_the_order_of_visits() -> None:
    rates = {"f": 100.0, "x": 20.0, "y": 20.0}
    distance = {"f": {"f": 0, "x": 100, "y": 100}, "x": {"f": 100, "x": 0, "y": 10}, "y": {"f": 100, "x": 10, "y": 0}}
    assert assign(rates, distance, "fxy").active == ["f", "x"]
    assert assign(rates, distance, "fyx").active == ["f", "y"]


def test_H16_a_tie_makes_passive() -> None:
    rates, distance = {"a": 20.0, "b": 10.0}, {"a": {"a": 0, "b": 100}, "b": {"a": 100, "b": 0}}
    assert assign(rates, distance, "ab").active == ["a"]
    assert assign(rates, distance, "ab", "active").active == ["a", "b"]


# ------------------------------------------------------------------------------------------------------- random runs


def test_random_runs_with_role_changes_and_crashes() -> None:
    for seed in range(1_000):
        assert random_run(seed) == "", f"seed {seed}"


@pytest.mark.parametrize(
    "by_the_letter",
    [{"process": literal.H1}, {"process": literal.H2H3}, {"process": literal.H4}, {"process": literal.H6},
     {"change": literal.h7}, {"process": literal.H9, "change": literal.h9}, {"change": literal.h11},
     {"numbers": literal.H12}],
    ids=["H1", "H2 H3", "H4", "H6", "H7", "H9", "H11", "H12"],
)  # fmt: skip
def test_random_runs_find_what_is_wrong_by_the_letter(by_the_letter: dict[str, Any]) -> None:
    def fails(seed: int) -> bool:
        try:
            return bool(random_run(seed, **by_the_letter))
        except (AssertionError, KeyError):
            return True

    assert any(map(fails, range(400)))
