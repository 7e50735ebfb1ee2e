"""What no honest member says is not believed: bodies, one by one, at a passive member of a view of three."""

from __future__ import annotations

from typing import Any

import pytest

from ordercast.contract import Body, Down, Multicast
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.packets import NUMBER_MAX, Null, Reassign, Role, Sent
from ordercast.protocols.hybrid.plausible import OWN_MAX, Plausible
from ordercast.protocols.hybrid.process import Process
from ordercast.types import Frame

MEMBERS = (1, 2, 3)


def frame(sender: int, counter: int = 1) -> Frame:
    return Frame(sender, 1, counter, 1, 3, b"\x01\0\0\0", b"x")


def view(*, roles_change: bool = True) -> Plausible:
    """1 looks on; 2 is passive, 3 active."""
    process = Process(1, Lamport(), lambda body: Down(Multicast(body)), list)
    process.enter(MEMBERS, dict.fromkeys(MEMBERS, 0), (3,))
    return Plausible(process, MEMBERS, roles_change)


def say(plausible: Plausible, j: int, body: Body) -> str:
    why = plausible.doubt(j, body)
    if not why:
        plausible.process.receive(j, body)
    return why


GOOD: list[tuple[int, Any]] = [
    (2, Sent(1, (3, 0), frame(2))),
    (3, Sent(1, (3, 0), frame(3), ((5, 2, 1), (6, 3, 1)), 6)),
]


@pytest.mark.parametrize(
    ("j", "body", "why"),
    [
        (2, Null(((7, 2, 1),), 7), "tickets"),
        (2, Null((), 7), "tickets"),
        (3, Null(((6, 2, 2),), 7), "tickets"),
        (3, Null(((7, 2, 9),), 7), "tickets"),
        (3, Null(((7, 9, 1),), 7), "tickets"),
        (3, Null(((7, 2, 1),), 7), "tickets"),
        (3, Null((), NUMBER_MAX + 1), "tickets"),
        (3, Sent(2, (3, 0), frame(3, 2), ((8, 3, 2),), 7), "tickets"),
        (3, Sent(2, (3, 0), frame(3, 2), ((8, 3, 3),), 8), "tickets"),
        (2, Sent(3, (3, 0), frame(2, 2)), "counter"),
        (2, Sent(2, (3, 0), frame(3, 2)), "origin"),
        (2, Sent(2, (3, 1), frame(2, 2)), "sequencer"),
        (2, Sent(2, (9, 0), frame(2, 2)), "sequencer"),
        (2, Role(2, (3, 0), False), "role"),
        (3, Role(2, (3, 0), True, ((8, 3, 2),), 8), "role"),
        (3, Reassign(1, 1, (3, 0)), "role"),
        (2, Reassign(1, 2, (3, 0)), "range"),
        (2, Reassign(1, 1, (3, 4)), "sequencer"),
    ],
)
def test_what_cannot_be_true_is_dropped_and_changes_nothing(j: int, body: Body, why: str) -> None:
    plausible = view()
    for member, good in GOOD:
        assert say(plausible, member, good) == ""
    heard, ticketed = plausible.heard.copy(), plausible.ticketed[3].copy()
    assert say(plausible, j, body) == why
    assert (plausible.heard, plausible.ticketed[3]) == (heard, ticketed)


@pytest.mark.parametrize(
    ("j", "body"),
    [
        (3, Null((), 6)),
        (3, Null((), 9)),
        (3, Sent(2, (3, 0), frame(3, 2), ((7, 3, 2),), 7)),
        (2, Sent(2, (3, 0), frame(2, 2))),
        (2, Role(2, (3, 0), True)),
        (3, Role(2, (3, 0), False, ((7, 3, 2),), 7)),
        (2, Reassign(1, 1, (3, 0))),
    ],
)
def test_what_may_be_true_is_taken(j: int, body: Body) -> None:
    plausible = view()
    assert [say(plausible, *good) for good in [*GOOD, (j, body)]] == ["", "", ""]


def test_who_changes_its_role_says_nothing_until_that_is_delivered() -> None:
    plausible = view()
    assert say(plausible, 2, Role(1, (3, 0), True)) == ""
    assert say(plausible, 2, Sent(2, (3, 0), frame(2))) == "role"
    assert say(plausible, 3, Null(((1, 2, 1),), 2)) == ""
    assert plausible.process.actives == {2, 3}
    assert say(plausible, 2, Sent(2, (2, 1), frame(2), ((3, 2, 2),), 3)) == ""


def test_static_roles_do_not_change() -> None:
    plausible = view(roles_change=False)
    assert say(plausible, 2, Role(1, (3, 0), True)) == "role"
    assert say(plausible, 2, Reassign(1, 1, (3, 0))) == "role"


def test_what_nobody_orders_is_bounded() -> None:
    plausible = view()
    said = [say(plausible, 2, Sent(c, (3, 0), frame(2, c))) for c in range(1, OWN_MAX + 2)]
    assert said == [""] * OWN_MAX + ["unordered"]
