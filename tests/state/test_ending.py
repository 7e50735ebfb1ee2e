"""Members that are no replicas any more while the state is on its way: the others go on without them."""

from __future__ import annotations

import pytest
from abstract_order import Group
from test_corrections import word

from ordercast.state.machine import COMPLETE, ENDED, UNDECIDED
from ordercast.state.packets import Ready, decode
from ordercast.types import PRIMARY_MAJORITY


def ends(group: Group, id: int) -> None:
    group.of[id].does(group.of[id].layer._end("its snapshot raised"))


def apart(parts: tuple[tuple[int, ...], ...], seed: int) -> Group:
    """Parts with calls of their own."""
    group = Group(sum(map(len, parts)), seed=seed)
    group.view(*group.ids)
    group.run()
    for part in parts:
        group.view(*part)
    for part in parts:
        group.of[part[0]].call()
    group.run()
    return group


def gone_on(group: Group, without: int) -> None:
    """All but this one have one state, and calls are answered."""
    group.run()
    there = {id: member for id, member in group.of.items() if id != without}
    assert word(group.of[without]) == ENDED
    assert {id: word(member) for id, member in there.items()} == dict.fromkeys(there, COMPLETE)
    assert len({member.place for member in there.values()}) == 1
    first = min(there)
    (number,) = group.of[first].call()
    group.run()
    assert number in group.of[first].answered
    assert len({tuple(member.lines) for member in there.values()}) == 1


PARTS = [((1,), (2,)), ((1, 2), (3,)), ((1,), (2,), (3,)), ((1, 2), (3, 4)), ((1,), (2, 3, 4))]


@pytest.mark.parametrize("steps", range(0, 60, 3))
@pytest.mark.parametrize("parts", PARTS)
def test_who_tells_its_part_of_a_merge_may_end(parts: tuple[tuple[int, ...], ...], steps: int) -> None:
    """Another of its part tells it then; if it was alone, the others are one without it.  At whatever moment."""
    for going in (part[0] for part in parts):
        group = apart(parts, seed=steps)
        group.view(*group.ids)
        for _ in range(steps):
            group.step()
        ends(group, going)
        gone_on(group, going)


def is_ready(raw: bytes) -> bool:
    return isinstance(decode(raw[1:]), Ready)


def test_what_was_said_of_the_former_parts_does_not_count() -> None:
    """All hold all parts, and are about to say so, as one that told a part ends: they say it anew of what is left."""
    group = apart(((1,), (2, 3), (4,)), seed=0)
    view = group.view(*group.ids)
    while not all(any(map(is_ready, member.outbox)) for member in group.of.values()):
        turns = [id for id, member in group.of.items() if member.outbox and not is_ready(member.outbox[0])]
        assert any([*map(group.turn, turns), *map(group.deliver, group.ids), *map(group.timer, group.ids)])
    ends(group, 2)
    begin = len(group.lists[view])
    for id in (2, 1, 3, 4):  # first that 2 ends, then what the others were about to say
        group.turn(id)
    while not any(word(member) == COMPLETE for member in group.of.values()):
        assert group.step()
    first = next(member for member in group.of.values() if word(member) == COMPLETE)
    said = [peer.id for peer, raw in group.lists[view][begin : first.at] if is_ready(raw)]
    assert sorted(said) == [1, 1, 2, 3, 3, 4, 4], "once before, and once of the parts as they are now"
    gone_on(group, 2)


def test_nobody_is_left_who_can_give_the_state() -> None:
    """Who waits for it is told so."""
    group = Group(3, PRIMARY_MAJORITY)
    group.view(1, 2, 3)
    group.run()
    group.view(1, 2)
    group.of[1].call()
    group.run(1, 2)
    group.view(1, 2, 3)
    for _ in range(1_000):
        if word(group.of[1]) == word(group.of[2]) == COMPLETE:
            break
        group.step((1, 2))
        group.turn(3), group.deliver(3)
    ends(group, 1), ends(group, 2)
    group.run()
    standing = group.of[3].standing
    assert standing is not None and standing.word == UNDECIDED
    assert standing.why == "the state, and can give it"


def test_who_has_just_got_the_state_gives_it_if_no_other_can() -> None:
    group = Group(4, PRIMARY_MAJORITY)
    group.view(1, 2, 3, 4)
    group.run()
    group.view(1, 2)
    group.of[1].call()
    group.run(1, 2)
    group.view(1, 2, 3, 4)
    while not all(group.of[id].layer.moving is not None for id in group.ids):
        assert any(group.turn(id) or group.deliver(id) for id in group.ids)
    while group.of[1].layer.moving.lacking != {4}:
        assert group.step((1, 2, 3))
    ends(group, 1), ends(group, 2)
    group.run()
    assert word(group.of[3]) == word(group.of[4]) == COMPLETE
    assert group.of[3].place == group.of[4].place
