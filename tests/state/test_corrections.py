"""The smallest cases that earlier rules failed: each is a way to lose what was answered, or to stand still for ever.

Members 1, 2, 3; who is primary is said where it matters, by the half with the smallest member.
"""

from __future__ import annotations

from abstract_order import Group, Member

from ordercast.state.machine import BEHIND, COMPLETE, UNDECIDED
from ordercast.types import ALL_CONTINUE, PRIMARY_MAJORITY


def word(member: Member) -> str:
    assert member.standing is not None
    return member.standing.word


def until(group: Group, id: int, wanted: str, *others: int) -> None:
    """Let these go on until one of them stands so."""
    for _ in range(10_000):
        if word(group.of[id]) == wanted:
            return
        group.step((id, *others))
    raise AssertionError(f"member {id} is {word(group.of[id])}")


def one_state(group: Group) -> None:
    assert {word(member) for member in group.of.values()} == {COMPLETE}
    assert len({tuple(member.lines) for member in group.of.values()}) == 1


def call(group: Group, id: int, **how: bool) -> tuple[int, int, int]:
    """One call, by its name."""
    (number,) = group.of[id].call(**how)
    return id, group.of[id].peer.incarnation, int(number)


def alone(group: Group, id: int) -> None:
    """It orders and delivers what it has, while the others stand still."""
    while group.turn(id) or group.deliver(id) or group.timer(id):
        pass


def test_an_undecided_primary_view_does_not_outdo_who_was_answered() -> None:
    """Z1: 1 is answered alone in a view that the others leave; theirs is primary, and ends undecided."""
    group = Group(3, PRIMARY_MAJORITY, safe=False)
    group.view(1, 2, 3)
    group.run()
    line = call(group, 1)
    alone(group, 1)
    assert line[2] in group.of[1].answered
    group.view(2, 3, holes=1.0)
    group.turn(2), group.deliver(2)
    group.view(1, 2, 3)
    group.run()
    one_state(group)
    assert line in group.of[2].lines


def later_decision_is_known(first: bool) -> None:
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    if first:
        group.view(1, 2, 3)
        group.run()
    group.view(2, 3)
    group.run(2, 3)
    line = call(group, 2, durable=True)
    group.run(2, 3)
    assert line[2] in group.of[2].answered
    group.view(1, 2)
    group.view(1, primary=True)
    group.run(1)
    assert word(group.of[1]) == UNDECIDED
    group.view(1, 2, 3)
    group.run()
    one_state(group)
    assert line in group.of[1].lines


def test_who_installed_a_view_knows_of_decisions_without_an_offer() -> None:
    """Z2: 2 and 3 answer a durable call; 1 leaves the next view before the last Offer, and is primary alone."""
    later_decision_is_known(first=True)


def test_to_hold_the_place_of_a_decision_is_not_to_hold_what_followed() -> None:
    """Z3: as before, and the decision was at a place where 1 stands, too."""
    later_decision_is_known(first=False)


def test_the_source_may_leave_its_own_decision_undecided() -> None:
    """Z3b: 1 hears that 3 has the state; 3 leaves before it decides.  Nobody has that epoch, but 3 has the state."""
    group = Group(3, PRIMARY_MAJORITY)
    group.view(1, 2, 3)
    group.run()
    group.view(2, 3)
    line = call(group, 2)
    group.run(2, 3)
    group.crash(2)
    group.view(1, 3)
    while word(group.of[1]) != BEHIND:
        assert group.turn(1) or group.turn(3) or group.deliver(1) or group.deliver(3)
        if len(group.lists[group.of[1].view.id]) > 3:
            group.deliver(1)
    assert word(group.of[3]) == UNDECIDED
    group.view(3, primary=False)
    group.view(1, 3)
    group.run()
    one_state(group)
    assert line in group.of[1].lines


def test_regular_calls_count_before_transitional_ones() -> None:
    """Z4: 1 has calls a, b; 2 and 3 lack a, of the departed, and have b, c in a transitional view."""
    group = Group(4, PRIMARY_MAJORITY, safe=False)
    group.view(1, 2, 3, 4)
    group.run()
    a = call(group, 4)
    group.turn(4)
    b = call(group, 2)
    group.turn(2)
    group.deliver(1), group.deliver(1)
    call(group, 3)
    group.turn(3)
    assert group.of[1].lines == [a, b]
    group.view(2, 3, holes=1.0)
    assert b in group.of[2].lines and a not in group.of[2].lines and len(group.of[2].lines) == 2
    assert not group.of[2].answered, "a call in a transitional view is answered after the next decision"
    group.crash(4)
    group.view(1, 2, 3, holes=1.0)
    group.run()
    one_state(group)
    assert group.of[2].lines[:2] == [a, b]
    assert b[2] not in group.of[2].answered, "its state was replaced"


def test_nobody_vouches_before_its_own_decision() -> None:
    """Z5: 3 comes back with a longer dead history; a durable call waits until 3 has it on disk."""
    group = Group(3, PRIMARY_MAJORITY, disks=True, safe=False)
    group.view(1, 2, 3)
    group.run()
    for _ in range(3):
        call(group, 3)
    alone(group, 3)
    group.view(1, 2, holes=1.0)
    group.run(1, 2)
    assert len(group.of[3].lines) > len(group.of[1].lines)
    group.view(1, 2, 3)
    line = call(group, 1, durable=True)
    while word(group.of[3]) != COMPLETE:
        group.step()
    group.run(still=(3,))
    assert line[2] not in group.of[1].answered
    group.run()
    assert line[2] in group.of[1].answered and line in group.on_disk(3)


def test_calls_that_two_of_three_parts_share_count_once() -> None:
    """Z6."""
    group = Group(3)
    group.view(1, 2, 3)
    group.run()
    group.view(1, 2)
    group.view(3)
    lines = {call(group, 1), call(group, 3)}
    group.run()
    group.view(1)
    group.view(2)
    lines |= {call(group, 1), call(group, 2)}
    group.run()
    before = {id: member.place[0] for id, member in group.of.items()}
    group.view(1, 2, 3)
    group.run()
    one_state(group)
    assert sorted(group.of[1].lines) == sorted(lines)
    steps = {
        name for member in group.of.values() for step in member.layer.replica.history.steps for name in step.names()
    }
    assert group.of[1].place[0] == len(steps), "n counts every step once, those that tell who came included"
    assert group.of[1].place[0] > max(before.values())


def test_what_was_held_is_dropped_by_all() -> None:
    """Z7: a call that is held in an undecided view is in no state; nobody is told that it lost it."""
    group = Group(3)
    group.view(1, 2, 3)
    group.run()
    group.view(1, 2)
    line = call(group, 2)
    for _ in range(2):
        group.turn(2)
    for id in (1, 2):
        while group.deliver(id):
            pass
    group.view(1, 2, 3)
    group.run()
    one_state(group)
    assert group.of[2].unknown == {line[2]}
    assert not any(member.machine.told for member in group.of.values())


def test_all_configured_members_go_on_with_what_there_is() -> None:
    """Z8: 1 and 2 decide, and lose their disks; nobody else ever had that state."""
    group = Group(4, PRIMARY_MAJORITY, disks=True)
    group.view(1, 2, 3, 4)
    old = call(group, 3)
    group.run()
    group.view(1, 2)
    call(group, 1)
    group.run(1, 2)
    for id in (1, 2):
        group.crash(id, lost="disk")
        group.start(id)
    group.view(1, 2, 3)
    group.run(1, 2, 3)
    assert word(group.of[3]) == UNDECIDED
    group.view(1, 2, 3, 4)
    group.run()
    one_state(group)
    assert group.of[1].lines == [old]
    assert any(note.name == "state lost" for note in group.of[1].notes)


def test_an_old_state_is_kept_until_another_is_here() -> None:
    """Z9: the donor leaves after the decision; 3 has what it had, and is told of it when it takes another over."""
    group = Group(3, ALL_CONTINUE, merges=False)
    group.view(1, 2, 3)
    group.run()
    group.view(1, 2)
    group.view(3)
    for _ in range(3):
        call(group, 1)
    mine = call(group, 3)
    group.run()
    group.view(1, 3)
    until(group, 3, BEHIND, 1)
    assert group.of[3].lines == [mine] and not group.of[3].machine.told
    group.crash(1)
    group.view(2, 3)
    group.run()
    assert len(group.of[3].lines) == 3
    assert group.of[3].machine.told == [mine]


def test_two_branches_of_a_decision_nobody_settled() -> None:
    """Z10: 2 decides, 1 is cut off before and goes on as primary: the dead branch is told."""
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    group.view(1, 2, 3)
    group.run()
    group.view(1, 2)
    dead = call(group, 2)
    while word(group.of[2]) != COMPLETE:
        assert group.flush(1) or group.flush(2) or group.turn(1) or group.turn(2) or group.deliver(2)
    group.turn(2), group.deliver(2)
    assert dead in group.of[2].lines
    group.safe = False
    group.view(1, primary=True, holes=1.0)
    lives = call(group, 1)
    group.run(1)
    assert word(group.of[1]) == COMPLETE
    group.view(1, 2, 3)
    group.run()
    one_state(group)
    assert lives in group.of[2].lines and dead not in group.of[2].lines
    assert group.of[2].machine.told == [dead]


def slowly(group: Group, *others: int) -> None:
    """1 and these go on as far as they come while 1 writes no snapshot."""
    while any(group.turn(id) or group.deliver(id) or group.flush(id) for id in (1, *others)) or any(
        group.timer(id) for id in others
    ):
        pass


def test_a_state_is_offered_once_it_is_on_disk() -> None:
    """1 takes over the state of 2, and comes to 3 before it has it on disk.  If they decide on it, and stop, no disk
    has what they decided: 1 and 2, who has the state, could not go on."""
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    group.view(1, 2, 3)
    group.run()
    group.view(2, 3)
    line = call(group, 2, durable=True)
    group.run(2, 3)
    group.view(1, 2)
    slowly(group, 2)
    assert word(group.of[1]) == COMPLETE and line in group.of[1].lines
    group.view(1, 3)
    slowly(group, 3)
    group.crash(1), group.crash(3)
    group.start(1)
    group.view(1, 2)
    group.run(1, 2)
    assert word(group.of[1]) == word(group.of[2]) == COMPLETE
    assert line in group.of[1].lines


def test_a_state_that_was_taken_over_is_offered_when_it_is_on_disk() -> None:
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    group.view(1, 2, 3)
    group.run()
    group.view(2, 3)
    line = call(group, 2, durable=True)
    group.run(2, 3)
    group.view(1, 2)
    slowly(group, 2)
    group.view(1, 3)
    slowly(group, 3)
    assert word(group.of[1]) == word(group.of[3]) == UNDECIDED
    group.run(1, 3)
    assert word(group.of[1]) == word(group.of[3]) == COMPLETE
    group.crash(1), group.crash(3)
    group.start(1), group.start(3)
    group.view(1, 3)
    group.run(1, 3)
    assert word(group.of[1]) == word(group.of[3]) == COMPLETE
    assert line in group.of[1].lines
