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
    FreeSpace,
    Leave,
    Left,
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
from ordercast.sender import LEAVE, PATIENCE, ROOM_OF_ONE_THAT_LEAVES, Sender
from ordercast.types import Frame, Identity, Service, Submission, View, ViewId, ViewKind

T = 40_000_000
VIEW = View(ViewId(4, 1), ViewKind.REGULAR, (1, 2))


class Said(Body, frozen=True, gc=False, tag=1):
    frame: Frame


class Order:
    """An ordering protocol as the Sender sees it."""

    def __init__(self, frame_bytes: int = 100, **more: Any) -> None:
        setup = Setup(Identity(1, 1, (1, 2)), T, None, frame_bytes, random.Random(1))
        setup.outbox_bytes = 1_000
        self.open: list[Frame] = []  # left, and not yet known to be everywhere
        self.sender = Sender(setup, (Service.AGREED,), lambda: self.open, carry=self.carry, **more)

    def carry(self, frame: Frame) -> list[Action]:
        self.open.append(frame)
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


def leaving(order: Order, now: int = 0, until: int | None = None) -> list[Action]:
    """What asking to leave causes, but for the room that is given up."""
    actions = order.sender.down(now, Leave(until))
    assert not actions or actions[0] == Down(FreeSpace(ROOM_OF_ONE_THAT_LEAVES))
    return actions[1:]


def test_leaving_drains_then_goes_once() -> None:
    order = in_view()
    order.submit(bytes(90), bytes(90))
    assert leaving(order) == [SetTimer(LEAVE, PATIENCE * T)]
    assert order.submit(b"late") == [Refuse("closed")] and order.submit(b"g", control=True) == [Refuse("closed")]
    assert order.sender.down(0, FreeSpace(0)) == [], "who leaves reads no more, and holds nobody up"
    assert order.sender.settle(1) == [], "frames wait"
    assert sent(order.sender.up(1, Window(2))) == [1, 2]
    assert order.sender.settle(2) == [], "they have left and are not yet ordered"
    order.open.clear()
    last = 3 + PATIENCE * T
    assert order.sender.settle(3) == [CancelTimer(LEAVE), Down(Leave(last))]
    assert order.sender.settle(4) == order.sender.go(4) == []
    assert order.sender.down(4, Leave(9)) == [Down(Leave(9))], "the layer below need not wait so long either"
    assert order.sender.up(5, Left()) == [Up(Left())]


def test_at_once_when_there_is_nothing_to_drain_also_before_the_first_view() -> None:
    for order in (in_view(), Order()):
        assert leaving(order)[1:] == [CancelTimer(LEAVE), Down(Leave(PATIENCE * T))]


def test_leaving_waits_while_something_moves_and_names_what_did_not() -> None:
    order = in_view()
    order.submit(*(bytes(90) for _ in range(6)))
    order.sender.up(0, Window(1))
    leaving(order)
    now = PATIENCE * T
    order.sender.up(now, Window(1))
    assert order.sender.timer(now) == [SetTimer(LEAVE, now + PATIENCE * T)], "a frame left"
    now += PATIENCE * T
    del order.open[0]
    assert order.sender.timer(now) == [SetTimer(LEAVE, now + PATIENCE * T)], "one has arrived everywhere"
    now += PATIENCE * T
    order.sender.enter(ViewId(8, 1))
    assert order.sender.timer(now) == [SetTimer(LEAVE, now + PATIENCE * T)], "a view began"
    now += PATIENCE * T
    assert order.sender.timer(now) == [CancelTimer(LEAVE), Down(Leave(now + PATIENCE * T))], "nothing moved"
    assert order.sender.up(now, Left()) == [Up(Left((2, 6)))], "message 2 left, and is not known to have arrived"
    order.open.clear()
    assert order.sender.up(now, Left()) == [Up(Left((3, 6)))], "message 3 never left"
    assert order.sender.up(now, Left((1, 2))) == [Up(Left((1, 6)))], "the layer below knows more"


def test_leaving_takes_no_longer_than_the_application_allows() -> None:
    order = in_view()
    order.submit(bytes(250))
    order.sender.up(0, Window(1))
    assert leaving(order, 0, 3 * T) == [SetTimer(LEAVE, 3 * T)]
    assert order.sender.down(1, Leave(2 * T)) == [SetTimer(LEAVE, 2 * T)], "asked again: sooner"
    assert order.sender.down(2, Leave(5 * T)) == [SetTimer(LEAVE, 2 * T)], "never later"
    order.sender.up(2 * T, Window(1))
    assert order.sender.timer(2 * T) == [CancelTimer(LEAVE), Down(Leave(2 * T))], "though something moved"
    assert order.sender.up(2 * T, Left()) == [Up(Left((1, 1)))], "a message of which a part left did not arrive"


def test_control_messages_are_waited_for_and_never_named() -> None:
    order = in_view()
    order.submit(b"join", control=True)
    leaving(order)
    assert order.sender.settle(1) == []
    order.sender.go(1)
    assert order.sender.up(1, Left()) == [Up(Left())]
