"""The layer above an abstract order: calls, answers, who comes late, who leaves in the middle."""

from __future__ import annotations

import pytest
from abstract_order import Group, Member

from ordercast.sim.ledger import Line
from ordercast.state.machine import BEHIND, COMPLETE, ENDED, HALTED, UNDECIDED
from ordercast.types import ALL_CONTINUE, POLICIES, PRIMARY_MAJORITY, ViewId


def together(group: Group) -> None:
    """All who are up are complete, with one state."""
    assert {m.standing.word for m in group.of.values() if m.standing} == {COMPLETE}, [
        (id, m.standing, m.layer.status()["waits"]) for id, m in group.of.items()
    ]
    assert len({m.place for m in group.of.values()}) == 1
    assert len({tuple(m.lines) for m in group.of.values()}) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_calls_are_applied_everywhere_and_answered_to_their_caller(policy: str) -> None:
    group = Group(3, policy)
    group.view(1, 2, 3)
    numbers = group.of[2].call(3)
    group.run()
    together(group)
    assert group.of[2].answered == {number: number - 1 for number in numbers}
    assert not group.of[1].answered and not group.of[3].answered
    assert len(group.of[1].lines) == 3


@pytest.mark.parametrize("policy", POLICIES)
def test_who_comes_late_gets_the_state_and_what_follows(policy: str) -> None:
    group = Group(3, policy)
    group.view(1, 2, primary=True)
    group.of[1].call(300)
    group.run(1, 2)
    group.view(1, 2, 3)
    group.of[1].call(2)
    group.run()
    together(group)
    assert len(group.of[3].lines) == 302 and not group.of[3].machine.told


def test_the_donor_leaves_half_way() -> None:
    group = Group(3)
    group.view(1, 2)
    for _ in range(40):
        group.of[1].call(50)
    group.run(1, 2)
    group.view(1, 2, 3)
    while group.of[3].standing is None or group.of[3].standing.word != BEHIND:
        group.step()
    group.crash(1)
    group.view(2, 3)
    group.run()
    together(group)
    assert len(group.of[3].lines) == 2000


def test_a_view_that_ends_undecided_drops_what_was_held() -> None:
    group = Group(2)
    group.view(1, 2)
    (number,) = group.of[1].call()
    group.turn(1), group.turn(1)
    group.deliver(1), group.deliver(1)
    group.view(1)
    group.run(1)
    assert group.of[1].unknown == {number}
    assert group.of[1].lines == []


def test_in_a_view_that_is_not_primary_calls_are_refused() -> None:
    group = Group(3, PRIMARY_MAJORITY)
    group.view(1, 2, 3)
    group.run()
    group.view(3, primary=False)
    assert group.of[3].call() == "not primary"
    assert group.of[3].standing.word == HALTED


def test_parts_that_went_on_are_merged() -> None:
    group = Group(4)
    group.view(1, 2, 3, 4)
    group.of[1].call()
    group.run()
    group.view(1, 2)
    group.view(3, 4)
    group.of[1].call(2)
    group.of[4].call(3)
    group.run()
    group.view(1, 2, 3, 4)
    group.of[2].call()
    group.run()
    together(group)
    assert len(group.of[1].lines) == 7
    assert not any(member.machine.told for member in group.of.values())


def test_without_merge_the_longer_part_wins_and_the_other_is_told() -> None:
    group = Group(4, merges=False)
    group.view(1, 2, 3, 4)
    group.of[1].call()
    group.run()
    group.view(1, 2)
    group.view(3, 4)
    group.of[1].call(2)
    group.of[4].call(3)
    group.run()
    group.view(1, 2, 3, 4)
    group.run()
    together(group)
    assert len(group.of[1].lines) == 4
    assert [len(group.of[id].machine.told) for id in group.ids] == [2, 2, 0, 0]


def test_a_snapshot_that_raises_ends_the_donor_and_the_next_serves() -> None:
    group = Group(3)
    group.view(1, 2)
    group.of[1].call(5)
    group.run(1, 2)

    def broken() -> None:
        raise RuntimeError("no snapshot today")

    group.of[1].machine.snapshot = broken  # type: ignore[method-assign,assignment]
    group.view(1, 2, 3)
    group.run()
    assert group.of[1].standing.word == ENDED
    assert "no snapshot today" in group.of[1].standing.why
    assert group.of[1].call() == "ended"
    del group.of[1]
    together(group)
    assert len(group.of[3].lines) == 5


def test_a_class_that_differs_is_told_and_ends() -> None:
    group = Group(3)
    group.of[3].machine.digest = b"another"
    group.start(3)
    other = group.of[3]
    other.machine.digest = b"another"
    other.layer.replica.__init__(other.machine, other.peer, other.layer.answers)  # type: ignore[misc]
    group.view(1, 2, 3)
    group.of[1].call()
    group.run()
    assert other.standing.word == ENDED and "class differs" in other.standing.why
    del group.of[3]
    together(group)


def test_alone_nobody_goes_on_without_the_newest_decision() -> None:
    group = Group(3, PRIMARY_MAJORITY)
    group.view(1, 2, 3)
    group.run()
    group.view(1, 2)
    group.of[1].call()
    group.run(1, 2)
    group.crash(1), group.crash(2)
    group.start(2)
    group.view(2, 3)
    group.run()
    assert group.of[3].standing.word == UNDECIDED, "the state was in memory at 1 and 2, and 3 is behind"
    group.start(1)
    group.view(1, 2, 3)
    group.run()
    together(group)


class Chances:
    """A run by chance: views, cuts, holes and crashes at any step; then all are in one view."""

    def __init__(self, policy: str, seed: int, *, crashes: bool = True, n: int = 4, disks: bool = False) -> None:
        self.group = group = Group(n, policy, seed=seed, disks=disks)
        self.answered: dict[Line, ViewId] = {}
        self.durable: set[Line] = set()
        self.gone: list[Member] = []
        group.view(*group.ids)
        for _ in range(30):
            self._hurt(crashes)
        for id in group.ids:
            if id not in group.of:
                group.start(id)
        group.view(*group.ids)
        group.run()
        self.members = [*group.of.values(), *self.gone]
        for member in self.members:
            self.answered |= {(*astuple(member), number): view for number, view in member.answered_in.items()}
            self.durable |= {
                (*astuple(member), note.fields["first"] + k)
                for note in member.notes
                if note.name == "answered" and note.fields["durable"]
                for k in range(note.fields["count"])
            }
        self.lines = group.of[1].lines

    def _hurt(self, crashes: bool) -> None:
        group, draw = self.group, self.group.draw
        for _ in range(draw.randrange(60)):
            group.step()
        for member in group.of.values():
            if draw.random() < 0.5:
                member.call(draw.randint(1, 3), durable=bool(group.disks) and draw.random() < 0.5)
        chance = draw.random()
        if crashes and chance < 0.2 and len(group.of) > 1:
            id = draw.choice(list(group.of))
            self.gone.append(group.of[id])
            group.crash(id)
        elif chance < 0.4 and len(group.of) < len(group.ids):
            group.start(next(id for id in group.ids if id not in group.of))
        up = list(group.of)
        draw.shuffle(up)
        cut = draw.randint(1, len(up))
        for part in (up[:cut], up[cut:]):
            if part and draw.random() < 0.7:
                primary = None if group.policy == ALL_CONTINUE else 2 * len(part) > len(group.ids)
                group.view(*sorted(part), primary=primary, holes=0.5)

    def _answered(self) -> None:
        """A4: what was answered is in every later decision, as long as somebody there has it when the view begins."""
        group = self.group
        for line, view in self.answered.items():
            for later in sorted(later for later in group.decided if later > view):
                if line not in group.offered[later] and line not in self.durable:
                    break
                assert line in group.decided[later], f"A4: {line}, answered in {view}, is not in {later}"

    def judge(self, crashes: bool) -> None:
        together(self.group)
        assert len(set(self.lines)) == len(self.lines), "A3: nothing twice"
        if self.group.policy == PRIMARY_MAJORITY:
            self._answered()
        elif not crashes:
            assert self.answered.keys() <= set(self.lines), "A4: all parts are together again"
        if self.group.policy == PRIMARY_MAJORITY:
            assert self.durable <= set(self.lines), "S24"
        for member in self.group.of.values():
            told = member.machine.told
            assert applied(member) - set(self.lines) <= set(told), "A6: told"
            assert len(set(told)) == len(told), "A6: once"
            assert self.group.disks or set(told) <= applied(member), "A6: what it had"


def astuple(member: Member) -> tuple[int, int]:
    return member.peer.id, member.peer.incarnation


def applied(member: Member) -> set[Line]:
    """Every call that this life has applied, to whatever state."""
    return {
        (note.fields["caller"], note.fields["life"], note.fields["first"] + k)
        for note in member.notes
        if note.name == "applied" and note.fields["caller"]
        for k in range(note.fields["count"])
    }


@pytest.mark.parametrize("disks", [False, True])
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_by_chance(policy: str, crashes: bool, disks: bool) -> None:
    for seed in range(5):
        Chances(policy, seed, crashes=crashes, n=3 + seed % 3, disks=disks).judge(crashes)
