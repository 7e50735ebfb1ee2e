"""Process groups: one picture at every place of the order, through crashes, partitions and merges."""

from __future__ import annotations

import random
from itertools import pairwise

import msgspec
import pytest

from ordercast import verify
from ordercast.contract import (
    Action,
    Control,
    Delivered,
    Down,
    Event,
    GroupView,
    PassedBy,
    Refuse,
    Setup,
    Submit,
    Up,
    ViewChange,
)
from ordercast.framing import Framing
from ordercast.groups import GJoin, GLeave, Groups, GState
from ordercast.protocols.totem.layer import RingLayer
from ordercast.sim.faults import Crash, Leaving, Loss, Partition
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.stack import Stack, chain
from ordercast.trace.schema import Kind, Row
from ordercast.types import Batch, Nanoseconds, Service, Submission, View, ViewId, ViewKind


def layer(me: int) -> Groups:
    return Groups(me)


def view(seq: int, members: tuple[int, ...], kind: ViewKind = ViewKind.REGULAR) -> ViewChange:
    return ViewChange(View(ViewId(seq, members[0]), kind, members))


def control(sender: int, *messages: GJoin | GLeave | GState) -> Control:
    payloads = [msgspec.msgpack.encode(m) for m in messages]
    lengths = b"".join(len(p).to_bytes(4, "little") for p in payloads)
    return Control(Batch(sender, 1, 0, len(payloads), Service.AGREED, lengths, b"".join(payloads)))


def data(sender: int, counter: int, *groups: str) -> Delivered:
    return Delivered(Batch(sender, 1, counter, 1, Service.AGREED, b"\1\0\0\0", b"x", groups))


def up(groups: Groups, event: Event) -> list[Action]:
    return groups.up(0, event, 0)


def told(actions: list[Action]) -> list[Event]:
    return [action.event for action in actions if isinstance(action, Up)]


def test_union_once_and_open() -> None:
    groups = layer(1)
    up(groups, view(4, (1,)))
    up(groups, control(1, GState(ViewId(4, 1), (1,), ())))
    for event in (control(1, GJoin("red")), control(1, GJoin("blue"))):
        assert [type(e) for e in told(up(groups, event))] == [GroupView]
    both = data(1, 1, "blue", "red")
    assert told(up(groups, both)) == [both], "once, though this member is in both"
    passed = told(up(groups, data(1, 2, "green")))
    assert passed == [PassedBy(2, 1)], "a sender outside its group does not get its own message, and is told so"
    assert told(up(groups, data(1, 3))) != [], "to no group: to all"
    assert told(up(groups, control(1, GLeave("red")))) == [GroupView("red", (), ViewId(4, 1))]
    assert told(up(groups, data(1, 4, "red"))) == [PassedBy(4, 1)]


def merge(groups: Groups) -> list[Action]:
    """Member 1, alone so far and in red, meets 2 and 3."""
    up(groups, view(4, (1,)))
    up(groups, control(1, GState(ViewId(4, 1), (1,), ()), GJoin("red")))
    up(groups, view(8, (1,), ViewKind.TRANSITIONAL))
    return up(groups, view(8, (1, 2, 3)))


def test_messages_wait_until_every_cell_was_heard() -> None:
    groups = layer(1)
    met = merge(groups)
    assert [type(e) for e in told(met)] == [ViewChange]
    (said,) = [action.event for action in met if isinstance(action, Down)]
    assert isinstance(said, Submit) and said.control and said.ahead, "the state goes ahead of everything packed"
    first, second = data(2, 1, "red"), data(3, 1)
    assert told(up(groups, first)) == [] and told(up(groups, control(3, GJoin("blue")))) == []
    assert told(up(groups, control(1, GState(ViewId(8, 1), (1,), (("red", (1,)),))))) == []
    assert told(up(groups, second)) == []
    rest = GState(ViewId(8, 1), (2, 3), (("red", (2,)), ("blue", (2,))))
    assert told(up(groups, control(2, rest))) == [
        GroupView("blue", (2,), ViewId(8, 1)),
        GroupView("red", (1, 2), ViewId(8, 1)),
        first,
        GroupView("blue", (2, 3), ViewId(8, 1)),
        second,
    ]


def test_a_view_change_during_the_wait_costs_a_view_and_nothing_else() -> None:
    groups = layer(1)
    merge(groups)
    held = data(2, 1, "red")
    up(groups, held)
    out = told(up(groups, view(12, (1, 3), ViewKind.TRANSITIONAL)))
    assert out[0] == held and type(out[1]) is ViewChange, "in the view it was sent in"
    up(groups, view(12, (1, 3)))
    up(groups, control(1, GState(ViewId(12, 1), (1,), (("red", (1,)),))))
    out = told(up(groups, control(3, GState(ViewId(12, 1), (3,), (("red", (3,)),)))))
    assert out == [GroupView("red", (1, 3), ViewId(12, 1))]


def waiting() -> Groups:
    """Member 1 in one cell with 2 and 3, red is 1 and 2, blue is 2 and 3; now they wait for the groups of 4."""
    groups = layer(1)
    merge(groups)
    up(groups, control(1, GState(ViewId(8, 1), (1,), (("red", (1,)),))))
    up(groups, control(2, GState(ViewId(8, 1), (2, 3), (("blue", (2, 3)), ("red", (2,))))))
    up(groups, view(12, (1, 2, 3), ViewKind.TRANSITIONAL))
    up(groups, view(12, (1, 2, 3, 4)))
    return groups


def test_who_departs_during_the_wait_is_told_at_once() -> None:
    groups = waiting()
    out = told(up(groups, view(16, (1, 4), ViewKind.TRANSITIONAL)))
    assert out[1:] == [GroupView("blue", (), ViewId(16, 1)), GroupView("red", (1,), ViewId(16, 1))]
    up(groups, view(16, (1, 4)))
    up(groups, control(1, GState(ViewId(16, 1), (1,), (("red", (1,)),))))
    out = told(up(groups, control(4, GState(ViewId(16, 1), (4,), ()))))
    assert out == [GroupView("red", (1,), ViewId(16, 1))]


def test_alone_after_a_wait_the_whole_picture_is_told() -> None:
    groups = waiting()
    out = told(up(groups, view(16, (1,), ViewKind.TRANSITIONAL)))
    assert out[1:] == [GroupView("blue", (), ViewId(16, 1)), GroupView("red", (1,), ViewId(16, 1))]
    assert len(told(up(groups, view(16, (1,))))) == 1, "it is known already"


def test_a_new_life_is_not_taken_for_the_one_that_departed_during_a_wait() -> None:
    groups = waiting()
    up(groups, view(16, (1, 3, 4), ViewKind.TRANSITIONAL))  # without 2
    up(groups, view(16, (1, 3, 4)))
    up(groups, view(20, (1, 3, 4), ViewKind.TRANSITIONAL))
    up(groups, view(20, (1, 2, 3, 4)))
    held = data(3, 1, "red")
    up(groups, control(2, GState(ViewId(20, 1), (2,), ())))
    up(groups, held)
    up(groups, control(2, GJoin("red")))
    out = told(up(groups, view(24, (1, 2, 3), ViewKind.TRANSITIONAL)))
    assert out[:2] == [held, GroupView("red", (1, 2), ViewId(20, 1))], "red was 1 alone, until the new 2 joined"
    assert type(out[2]) is ViewChange


def test_a_leave_during_a_wait_that_is_given_up_is_told_at_its_place() -> None:
    groups = waiting()
    held = data(3, 1, "red")
    up(groups, control(2, GLeave("red")))
    up(groups, held)
    out = told(up(groups, view(16, (1, 2, 3), ViewKind.TRANSITIONAL)))
    assert out[:2] == [GroupView("red", (1,), ViewId(12, 1)), held]


def test_what_was_heard_before_the_wait_was_given_up_is_told_before_the_messages() -> None:
    groups = waiting()
    held = data(3, 1, "red")
    up(groups, held)
    up(groups, control(4, GState(ViewId(12, 1), (4,), (("red", (4,)),))))
    out = told(up(groups, view(16, (1, 2, 3), ViewKind.TRANSITIONAL)))
    assert out[:2] == [GroupView("red", (1, 2, 4), ViewId(12, 1)), held]
    assert out[3:] == [GroupView("red", (1, 2), ViewId(16, 1))]


def test_who_does_not_come_along_leaves_and_its_last_join_does_not_count() -> None:
    groups = layer(1)
    merge(groups)
    up(groups, control(1, GState(ViewId(8, 1), (1,), (("red", (1,)),))))
    up(groups, control(2, GState(ViewId(8, 1), (2, 3), (("red", (2,)),))))
    out = told(up(groups, view(12, (1, 3), ViewKind.TRANSITIONAL)))
    assert out[1:] == [GroupView("red", (1,), ViewId(12, 1))]
    assert told(up(groups, control(2, GJoin("blue")))) == []


@pytest.mark.parametrize("names", [("",), ("x" * 65,), tuple(f"g{k}" for k in range(65))])
def test_bad_names_are_refused(names: tuple[str, ...]) -> None:
    assert layer(1).submit(0, Submission([b"x"], Service.AGREED, names)) == [Refuse("groups")]


# ------------------------------------------------------------------------------------------------------- whole groups


class User(Groups):
    """An application that joins, leaves and addresses groups at random."""

    def __init__(self, me: int, generator: random.Random) -> None:
        super().__init__(me)
        self.generator = generator

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        r, out = self.generator, list[Action]()
        if self.view is not None and r.random() < 0.25:
            out = self.regroup(now, r.choice("abc"), r.random() < 0.65)
        if r.random() < 0.6:
            submission = msgspec.structs.replace(submission, groups=tuple(sorted(r.sample("abc", r.choice([1, 1, 2])))))
        return out + super().submit(now, submission)


def maker(setup: Setup) -> Stack:
    user = User(setup.identity.me, random.Random(setup.random.random()))
    return chain(user, Framing(), RingLayer(setup, setup.options))


def group_views(outcome: Outcome) -> dict[tuple[object, object], dict[tuple[int, int], list[object]]]:
    """(view, next view) -> life -> the group views it was told in between."""
    lives: dict[tuple[int, int], list[Row]] = {}
    for row in outcome.trace.rows:
        if row.member:
            lives.setdefault((row.member, row.incarnation), []).append(row)
    out: dict[tuple[object, object], dict[tuple[int, int], list[object]]] = {}
    for life, rows in lives.items():
        starts = [i for i, r in enumerate(rows) if r.kind == Kind.VIEW and r.view_kind == ViewKind.REGULAR]
        for a, b in pairwise(starts):
            way = ((rows[a].view_seq, rows[a].view_rep), (rows[b].view_seq, rows[b].view_rep))
            seen = [(r.groups, r.members) for r in rows[a:b] if r.kind == Kind.GROUP_VIEW]
            out.setdefault(way, {})[life] = seen
    return out


@pytest.mark.parametrize("seed", range(6))
def test_groups_through_faults(seed: int) -> None:
    scenario = Scenario(
        protocol="totem", members=5, messages=250, seed=seed, load=Load(rate=150), heal_ms=350.0,
        faults=(
            Loss(p=0.03), Crash(at_ms=80, down_ms=40), Partition(shape="halves", at_ms=140, until_ms=230),
            Leaving(at_ms=250, away_ms=30),
        ),
    )  # fmt: skip
    outcome = run(scenario, level="full", maker=maker)
    found = [
        f"{v.promise}: {v.state}: {v.text}"
        for v in verify.check(outcome.trace)
        if v.state in ("broken", "cannot judge")
    ]
    assert not found, found
    told = group_views(outcome)
    assert any(len(lives) > 1 and any(lives.values()) for lives in told.values())
    if not outcome.notes["group state again"]:
        for way, lives in told.items():
            assert len({repr(seen) for seen in lives.values()}) == 1, (way, lives)
