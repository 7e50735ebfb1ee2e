"""Calls that are known to follow a state are applied a few at a time, also while a view changes, and in their order."""

from __future__ import annotations

from typing import Any

import pytest
from abstract_order import Group, Member
from test_layer import Chances, together

from ordercast.contract import Note
from ordercast.state import layer, replica
from ordercast.state.machine import ENDED
from ordercast.state.packets import Offer, decode
from ordercast.state.replica import Phase
from ordercast.types import POLICIES, PRIMARY_MAJORITY

STEP = 4  # calls that are applied in one


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "CALLS_PER_STEP", STEP)


def catching(calls: int = 20, policy: str = PRIMARY_MAJORITY, disks: bool = False) -> tuple[Group, Member]:
    """Member 3 has just got its state, and has still most of what came meanwhile to apply."""
    group = Group(3, policy, disks=disks)
    group.view(1, 2)
    group.of[1].call(3)
    group.run(1, 2)
    group.view(1, 2, 3)
    late = group.of[3]
    while late.layer.phase is not Phase.BEHIND:  # without timers: no chunk of the state leaves
        for id in group.ids:
            group.turn(id), group.flush(id), group.deliver(id)
    for _ in range(calls):
        group.of[1].call()
    hear(group, 1, 3)
    while late.layer.phase is Phase.BEHIND:
        group.step()
    assert late.layer.phase is Phase.CATCHING and len(late.layer.replica.due) > STEP
    return group, late


def hear(group: Group, speaker: int, hearer: int) -> None:
    """All that this one has to say is ordered, and heard by that one."""
    while group.turn(speaker) or group.deliver(hearer):
        pass


def applied(member: Member) -> int:
    return sum(note.fields["count"] for note in member.notes if note.name == "applied")


@pytest.mark.parametrize("disks", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_change_of_view_goes_on_in_small_steps(policy: str, disks: bool) -> None:
    group, late = catching(policy=policy, disks=disks)
    before = applied(late)
    group.view(2, 3)
    assert applied(late) - before <= STEP and late.layer.replica.due, "not all of it at once"
    group.of[2].call(2)
    while late.layer.replica.due:
        before = applied(late)
        assert not late.layer.keeping.log or late.layer.keeping._offer is None
        said = [decode(payload[1:]) for payload in late.outbox]
        assert not any(isinstance(each, Offer) for each in said), "an Offer is of the state after all that was due"
        for id in (2, 3):
            group.turn(id), group.deliver(id), group.flush(id)
        assert group.timer(3)
        assert applied(late) - before <= STEP
    group.run(2, 3)
    del group.of[1]
    together(group)
    assert [line[2] for line in late.lines if line[0] == 1] == list(range(1, 24)), "in their order, each once"


@pytest.mark.parametrize("primary", [False, True])
def test_another_change_in_between_drops_nothing_that_was_due(primary: bool) -> None:
    group, late = catching()
    group.view(3, primary=primary)
    assert late.layer.replica.due
    if primary:
        late.call()  # of a view that ends undecided: nobody applies it
        hear(group, 3, 3)
    group.view(2, 3)
    group.run(2, 3)
    del group.of[1]
    together(group)
    assert late.unknown == ({1} if primary else set())
    assert [line[2] for line in late.lines if line[0] == 1] == list(range(1, 24))


def test_own_calls_that_were_due_are_answered() -> None:
    group, late = catching()
    numbers = [number for _ in range(3) for number in late.call()]
    hear(group, 3, 3)
    assert late.layer.phase is Phase.CATCHING and not late.answered
    group.view(3, primary=False)
    group.run(3)
    assert not late.layer.replica.due and not late.answered, "the others may have decided without it"
    group.view(2, 3)
    group.run(2, 3)
    assert set(late.answered) == set(numbers) and not late.unknown


def test_who_ends_while_calls_are_due_tells_its_callers() -> None:
    group, late = catching()
    (number,) = late.call()
    hear(group, 3, 3)
    group.view(2, 3)

    def broken(*args: Any) -> Any:
        raise RuntimeError("no more")

    late.machine.apply = broken  # type: ignore[method-assign]
    group.run(2, 3)
    assert late.standing.word == ENDED and late.unknown == {number} and not late.layer.replica.held_bytes
    (number,) = group.of[2].call()
    group.run(2, 3)
    assert number in group.of[2].answered, "the other goes on without it"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_later_state_is_asked_of_a_donor_that_has_not_come_so_far(policy: str) -> None:
    """It gives its state as of the place where it was asked, neither earlier nor later."""
    group = Group(3, policy)
    group.view(1, 2)
    group.run(1, 2)
    group.view(1, 2, 3)
    donor, late = group.of[1], group.of[3]
    for _ in range(30):
        group.of[2].call()
        group.turn(2)
    while late.layer.phase is not Phase.BEHIND:
        for id in group.ids:
            group.turn(id), group.deliver(id)
    late.does(late.layer._ask_again())
    group.turn(3)
    group.of[2].call(3)
    group.turn(2)
    hear(group, 2, 1)
    assert donor.layer.phase is Phase.CATCHING and donor.layer.moving.cut is not None
    group.run()
    together(group)
    assert len(late.lines) == 33
    assert any(isinstance(note, Note) and note.name == "state again" for note in late.notes)


@pytest.mark.parametrize("disks", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_by_chance(policy: str, disks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "CALLS_PER_STEP", 1)
    for seed in range(100, 115):
        Chances(policy, seed, n=3 + seed % 3, disks=disks).judge(True)


def in_small_steps() -> None:
    """For whoever changes a rule."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer, "CALLS_PER_STEP", STEP)
        test_a_change_of_view_goes_on_in_small_steps(PRIMARY_MAJORITY, False)


def a_later_state() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer, "CALLS_PER_STEP", STEP)
        test_a_later_state_is_asked_of_a_donor_that_has_not_come_so_far(PRIMARY_MAJORITY)


def test_who_was_refused_because_too_much_waits_hears_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "HELD_BYTES_MAX", 100)
    group = Group(2, PRIMARY_MAJORITY)
    group.view(1, 2)
    group.run()
    group.view(1, 2)
    waits = group.of[2]
    for _ in range(20):
        group.of[1].call()
    hear(group, 1, 2)
    assert waits.layer.phase is Phase.OFFERING and waits.call() == "overloaded"
    group.run()
    assert waits.layer.phase is Phase.COMPLETE and waits.rooms == 1
    assert waits.call() != "overloaded"
