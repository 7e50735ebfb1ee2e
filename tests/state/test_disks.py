"""A member that keeps nothing on disk: who calls durably hears of it at once, and nobody waits for it in vain."""

from __future__ import annotations

from abstract_order import Group, Member
from test_corrections import one_state

from ordercast.types import PRIMARY_MAJORITY


def without_disk(group: Group, id: int) -> None:
    del group.disks[id]
    group.of[id] = Member(group, id, 100 + id)


def test_a_durable_call_is_refused_while_somebody_has_no_disk() -> None:
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    without_disk(group, 2)
    group.view(1, 2, 3)
    group.run()
    assert group.of[1].call(durable=True) == "no disk at member 2"
    assert group.of[2].call(durable=True) == "no disk"
    (number,) = group.of[3].call()
    group.run()
    assert number in group.of[3].answered
    group.view(1, 3)
    group.run(1, 3)
    (number,) = group.of[1].call(durable=True)
    group.run(1, 3)
    assert number in group.of[1].answered, "it is not in the group any more"


def test_what_was_called_before_it_came_is_told_that_it_cannot_be_durable() -> None:
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    without_disk(group, 3)
    group.view(1, 2)
    group.run(1, 2)
    (early,) = group.of[1].call(durable=True)
    while group.turn(1) or group.deliver(1):  # applied here, and nobody has told of its disk
        pass
    assert early not in group.of[1].answered
    group.view(1, 2, 3)
    (late,) = group.of[1].call(durable=True)  # nobody knows yet who has a disk
    group.run()
    assert {early, late} <= group.of[1].unknown
    one_state(group)
    assert {line[2] for line in group.of[3].lines if line[0] == 1} == {early, late}, "both were applied"


def test_who_is_no_replica_any_more_needs_no_disk() -> None:
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    without_disk(group, 3)
    group.view(1, 2, 3)
    group.run()
    group.of[3].does(group.of[3].layer._end("its snapshot raised"))
    group.run()
    (number,) = group.of[1].call(durable=True)
    group.run()
    assert number in group.of[1].answered


def test_what_cannot_become_durable_is_told_also_when_another_ends_first() -> None:
    """A member without a disk comes while another is no replica any more: the call that waits is not forgotten."""
    group = Group(4, PRIMARY_MAJORITY, disks=True)
    without_disk(group, 4)
    group.view(1, 2, 3)
    group.run(1, 2, 3)
    group.of[3].does(group.of[3].layer._end("its snapshot raised"))
    group.run(1, 2, 3)
    (number,) = group.of[1].call(durable=True)
    while group.turn(1) or group.deliver(1):  # applied here, and nobody has told of its disk
        pass
    group.view(1, 2, 3, 4)
    offered = len(group.lists[group.of[1].view.id])
    while group.turn(4):  # it offers first
        pass
    assert len(group.lists[group.of[1].view.id]) > offered
    group.run()
    assert number in group.of[1].unknown
    one = {member.place for id, member in group.of.items() if id != 3}
    assert len(one) == 1


def test_the_slowest_disk_is_of_a_member_that_ends() -> None:
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    group.view(1, 2, 3)
    group.run()
    (number,) = group.of[1].call(durable=True)
    group.run(still=(3,))
    assert number not in group.of[1].answered
    group.of[3].does(group.of[3].layer._end("its snapshot raised"))
    group.run(still=(3,))
    assert number in group.of[1].answered, "nobody waits for it any more"
