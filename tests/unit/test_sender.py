"""The Sender: accepted or refused whole, as fast as the layer below takes, rows first, drained before leaving."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from ordercast.contract import (
    Accepted,
    Action,
    Body,
    CancelTimer,
    Down,
    Leave,
    Multicast,
    Originate,
    Refuse,
    Room,
    SetTimer,
    Setup,
    Submit,
    Up,
    ViewChange,
    Window,
)
from ordercast.sender import LEAVE, Sender
from ordercast.types import Frame, Identity, Service, Submission, View, ViewId, ViewKind

T = 40_000_000
VIEW = View(ViewId(4, 1), ViewKind.REGULAR, (1, 2))


class Said(Body, frozen=True, gc=False, tag=1):
    frame: Frame


class Order:
    """An ordering protocol as the Sender sees it."""

    def __init__(self, frame_bytes: int = 100, settled: bool = True, **more: Any) -> None:
        setup = Setup(Identity(1, 1, (1, 2)), T, None, frame_bytes, random.Random(1))
        setup.outbox_bytes = 1_000
        self.settled = settled
        self.sender = Sender(setup, (Service.AGREED,), lambda: self.settled, carry=self.carry, **more)

    def carry(self, frame: Frame) -> list[Action]:
        return [self.sender.multicast(Said(frame))]

    def submit(self, *payloads: bytes, service: Service = Service.AGREED, **more: bool) -> list[Action]:
        return self.sender.down(0, Submit(Submission(list(payloads), service), **more))


def in_view(**more: Any) -> Order:
    order = Order(**more)
    order.sender.up(0, ViewChange(VIEW))
    return order


def sent(actions: list[Action]) -> list[int]:
    """Counters of the frames that leave; each is told of just before."""
    out = []
    for told, carried in pairwise(actions):
        if isinstance(carried, Down) and isinstance(carried.event, Multicast):
            assert isinstance(told, Originate) and told.frame is carried.event.body.frame  # type: ignore[attr-defined]
            out.append(told.frame.counter)
    return out


@pytest.mark.parametrize(
    ("submission", "why"),
    [
        (Submission([], Service.AGREED), "empty"),
        (Submission([b"x"], Service.SAFE), "service"),
        (Submission([b"x" * (16 * 2**20 + 1)], Service.AGREED), "too large"),
        (Submission([b"x"], Service.AGREED, ("g" * 60,)), "groups"),
    ],
)
def test_refused_whole_and_nothing_changed(submission: Submission, why: str) -> None:
    order = in_view()
    assert order.sender.down(0, Submit(submission)) == [Refuse(why)]
    assert order.sender.outbox.counter == 0 and not order.sender


def test_nothing_is_accepted_before_the_first_view_unless_there_are_none() -> None:
    order = Order()
    assert order.submit(b"x") == [Refuse("no view")]
    assert order.submit(b"x", control=True) == [Refuse("no view")]
    assert order.sender.up(0, ViewChange(VIEW)) == [Up(ViewChange(VIEW)), Up(Room())], "who was refused may go on"
    assert order.submit(b"x") == [Accepted(1, 1, Service.AGREED, ())]
    assert Order(views=False).submit(b"x") == [Accepted(1, 1, Service.AGREED, ())]


def test_frames_leave_as_fast_as_the_layer_below_takes_them() -> None:
    order = in_view()
    order.submit(*(bytes(90) for _ in range(5)))
    assert sent(order.sender.up(0, Window(2))) == [1, 2]
    assert order.sender.waiting() == 3 and order.submit(bytes(50)) == [Accepted(6, 1, Service.AGREED, ())]
    assert sent(order.sender.up(0, Window(1))) == [3]
    order.sender.multicast(Said(order.sender.take(1)[0]))  # a body of the protocol's own counts, too
    assert sent(order.sender.up(0, Window(9))) == [5, 6]
    assert order.sender.window == 7 and sent(order.submit(b"z")) == [7], "an open window is used at once"


def test_an_answer_comes_before_the_rows_of_what_it_answers() -> None:
    order = in_view()
    order.sender.up(0, Window(4))
    accepted, originated, carried = order.submit(b"x")
    assert accepted == Accepted(1, 1, Service.AGREED, ()) and isinstance(originated, Originate)
    assert originated.view == VIEW.id and isinstance(carried, Down)


def test_overloaded_then_room_when_half_has_left() -> None:
    order = in_view()
    assert order.submit(*(bytes(90) for _ in range(12))) == [Accepted(1, 12, Service.AGREED, ())]
    assert order.submit(b"y") == [Refuse("overloaded")]
    assert Up(Room()) not in order.sender.up(0, Window(3))
    assert order.sender.up(0, Window(9))[-1] == Up(Room())
    assert order.submit(b"y")[0] == Accepted(13, 1, Service.AGREED, ())


def test_room_is_told_to_who_takes_frames_itself() -> None:
    order = in_view()
    order.submit(*(bytes(90) for _ in range(12)))
    order.submit(b"y")
    frames = order.sender.take(12)
    assert order.sender.originated(frames) == [*(Originate(frame, VIEW.id) for frame in frames), Up(Room())]


def test_control_goes_ahead_and_is_never_told_as_accepted() -> None:
    order = in_view()
    order.submit(b"a")
    assert order.submit(b"state", control=True, ahead=True) == []
    assert order.submit(b"join", control=True) == []
    assert [(f.control, f.counter, f.data) for f in order.sender.take(9)] == [
        (True, 0, b"state"), (False, 1, b"a"), (True, 0, b"join"),
    ]  # fmt: skip


def test_a_view_takes_back_a_message_half_originated() -> None:
    order = in_view()
    order.submit(bytes(250))
    order.sender.up(0, Window(1))
    assert order.sender.waiting() == 2
    order.sender.enter(ViewId(8, 1))
    assert order.sender.waiting() == 3 and order.sender.take(1)[0].part == 0


def test_leaving_drains_then_goes_once() -> None:
    order = in_view(settled=False)
    order.submit(bytes(90), bytes(90))
    assert order.sender.down(0, Leave()) == [SetTimer(LEAVE, T)]
    assert order.submit(b"late") == [Refuse("closed")] and order.submit(b"g", control=True) == [Refuse("closed")]
    assert order.sender.settle(1) == [], "frames wait"
    assert sent(order.sender.up(1, Window(2))) == [1, 2]
    assert order.sender.settle(2) == [], "they have left and are not yet ordered"
    order.settled = True
    assert order.sender.settle(3) == [CancelTimer(LEAVE), Down(Leave())]
    assert order.sender.settle(4) == order.sender.go(4) == order.sender.down(4, Leave()) == []


def test_leaving_ends_after_a_timeout_and_at_once_when_there_is_nothing_to_drain() -> None:
    order = in_view(settled=False)
    order.sender.down(0, Leave())
    assert order.sender.go(T) == [CancelTimer(LEAVE), Down(Leave())]
    assert in_view().sender.down(0, Leave())[1:] == [CancelTimer(LEAVE), Down(Leave())]
