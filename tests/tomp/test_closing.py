"""The end of a view: the cores over a model of the layer, whoever goes on and wherever each of them was."""

from __future__ import annotations

import random
from typing import Any

import pytest
from model import Group, final_of, random_run

from ordercast.contract import Action, Event
from ordercast.protocols.tomp import closing, layer
from ordercast.protocols.tomp.closing import Mid, Part
from ordercast.protocols.tomp.layer import Stamping, Validations
from ordercast.protocols.tomp.stamps import Stamp

RUNS = 1_200


def bad_runs(core: type[Stamping] = Stamping, runs: int = RUNS) -> list[str]:
    """What is wrong with random runs of both variants; the first bad one ends it."""
    for seed in range(runs):
        rng = random.Random(seed)
        group = Group(rng.randint(2, 5), anticipate=bool(seed % 2), core=core)
        together = random_run(group, rng, rng.choice((40, 80, 160)))
        found = group.wrong(together) + [str(note) for note in group.notes if note.name == "drop"]
        if found:
            return [f"run {seed}, {together} of {len(group.members)}: {text}" for text in found]
    return []


def test_any_who_go_on_agree() -> None:
    """Also with what each had delivered before; FIFO and causal order by delivery hold; nothing is disbelieved."""
    assert bad_runs() == []


# ------------------------------------------------------------------------------------------------------ counterexamples


@pytest.mark.parametrize("anticipate", [False, True], ids=["abcast", "tomp"])
def test_E1_the_clock_jumps_to_a_final_stamp(anticipate: bool) -> None:
    """Two hosts: 2 has m' and m, 1 has m alone and delivers it with 2.2; m' must not get less than that at 1."""
    group = Group(2, anticipate=anticipate)
    group.send(2, "2.1")
    group.send(1, "1.1")
    group.pass_(1, 2)
    group.answer(2, 1)
    assert group.delivered[1] == ["1.1"] and final_of(group, 1).stamp == (2, 2)
    group.calm()
    assert group.delivered[1] == group.delivered[2] == ["1.1", "2.1"] and final_of(group, 2).stamp == (3, 1)


@pytest.mark.parametrize("anticipate", [False, True], ids=["abcast", "tomp"])
def test_E1_three_hosts(anticipate: bool) -> None:
    group = Group(3, anticipate=anticipate)
    group.send(2, "2.1")
    group.pass_(2, 3)
    group.send(1, "1.1")
    group.pass_(1, 2, 3)
    group.answer(2, 1)
    group.answer(3, 1)
    assert group.delivered[1] == ["1.1"] and final_of(group, 1).stamp == (2, 3)
    group.calm()
    assert all(group.delivered[p] == ["1.1", "2.1"] for p in group.members)


def f3(core: type[Stamping] = Stamping) -> Group:
    """4 sends u and z; z reaches nobody, u only 2.  x of 1 gets 3.4; its validation reaches only 2, behind u."""
    group = Group(4, anticipate=False, core=core)
    group.send(4, "4.1")
    group.pass_(4, 2)
    group.send(4, "4.2")
    group.send(1, "1.1")
    group.pass_(1, 2, 3, 4)
    for p in (2, 3, 4):
        group.answer(p, 1)
    assert final_of(group, 1).stamp == (3, 4)
    group.pass_(1, 2)
    group.end((2, 3))
    return group


def test_F3_what_is_inserted_during_the_install_is_only_recorded() -> None:
    group = f3()
    assert group.delivered[2] == group.delivered[3] == ["4.1", "1.1"]


def test_F2_the_order_depends_on_who_goes_on() -> None:
    """Undecided m: 5.1 1.2 2.3, m': 4.1 3.2 1.3.  {1,2,3} give m' m, {2,3} give m m': so a plan that somebody may have
    installed is kept (tests/transis/test_views.py, V6)."""
    orders = []
    for together in ((1, 2, 3), (2, 3)):
        stamps: dict[int, dict[Mid, Stamp]] = {
            1: {(1, 1): (5, 1), (2, 1): (4, 1)},
            2: {(1, 1): (1, 2), (2, 1): (3, 2)},
            3: {(1, 1): (2, 3), (2, 1): (1, 3)},
        }
        parts = {p: Part(5, stamps[p], ()) for p in together}
        keys = closing.flush_keys(parts, [(1, 1), (2, 1)], {}, {})
        orders.append(closing.in_order(keys, {}))
    assert orders == [[(2, 1), (1, 1)], [(1, 1), (2, 1)]]


@pytest.mark.parametrize("anticipate", [False, True], ids=["abcast", "tomp"])
def test_F4_what_somebody_holds_back_is_left_out(anticipate: bool) -> None:
    """x of 4 gets 6.5, for 5 has received much that nobody else has.  1 delivers x and sends m.  2 has m and the
    validation of x, but not what 4 said before that, which 3 has: if both were taken in, m would come before x."""
    for listed, delivered in ((None, ["4.1", "4.2"]), ({1: 1, 4: 4}, ["4.1", "1.1", "4.2"])):
        group = Group(5, anticipate=anticipate)
        group.send(4, "4.1")
        group.pass_(4, 1, 2, 3, 5)
        for k in range(4):
            group.send(5, f"5.{k + 1}")
        group.send(4, "4.2")
        group.pass_(4, 1, 2, 3, 5)
        for p in (1, 2, 3, 5) * 2:  # 4 says the final of 4.1, then that of 4.2
            group.answer(p, 4)
        assert final_of(group, 4).stamp == (6, 5) and len([1 for rank, _ in group.said if rank == 3]) == 4
        group.pass_(4, 1, 3)
        group.pass_(4, 1)
        assert group.delivered[1] == ["4.1", "4.2"]
        group.send(1, "1.1")
        group.end((2, 3), listed)
        assert group.delivered[2] == group.delivered[3] == delivered
        assert bool(group.wrong((2, 3))) == (listed is not None)


def test_a_message_of_a_dead_source_is_finished_one_that_nobody_holds_never_was() -> None:
    group = Group(3)
    group.send(3, "3.1")
    group.pass_(3, 1)
    group.send(3, "3.2")
    group.end((1, 2))
    assert group.delivered[1] == group.delivered[2] == ["3.1"]


def test_the_floor_along_a_sender_counts_what_was_delivered_long_ago() -> None:
    """1.1 got its final from 3, which dies; 2 has delivered it, 1's next frame must stay behind it at both."""
    for_all = Part(1, {(1, 2): (2, 1)}, ())
    keys = closing.flush_keys({1: for_all, 2: for_all}, [(1, 2)], {}, {1: (9, 3)})
    assert keys == {(1, 2): (10, 3)}


# --------------------------------------------------------------------------------------------------------------- traps


class ActsInTheInstall(Stamping):
    """Trap of rule 0: normal rules during the install."""

    def up(self, now: int, event: Event, child: int) -> list[Action]:
        out = super().up(now, event, child)
        self.frozen = False
        return out


class ActsOnValidations(Stamping):
    """Only validations take effect during the install."""

    def _settle(self, now: int, sender: int, body: Validations) -> list[Action]:
        frozen, self.frozen = self.frozen, False
        known = [final for final in body.finals if self.book.stamp(self.rank_of[sender], final.n) is not None]
        out = super()._settle(now, sender, Validations(tuple(known))) if known else []
        self.frozen = frozen
        return out


class BareProposals(Stamping):
    """Contributions with the stamps given here, not the anticipated ones."""

    def flush_state(self) -> bytes:
        bare = [(rank, n, (number, self.me)) for rank, line in enumerate(self.book.lines)
                for n, number in line.numbers.items()]  # fmt: skip
        kept, self.book.listed = self.book.listed, lambda: bare  # type: ignore[method-assign]
        try:
            return super().flush_state()
        finally:
            self.book.listed = kept  # type: ignore[method-assign]


class OtherKeys(Stamping):
    """With another rule for what is undecided."""

    def keys(self, parts: Any, messages: Any, finals: Any, before: Any) -> dict[Mid, Stamp]:
        raise NotImplementedError

    def _flush(self, event: Any) -> list[Action]:
        layer.flush_keys = self.keys
        try:
            return super()._flush(event)
        finally:
            layer.flush_keys = closing.flush_keys


class NoFloor(OtherKeys):
    """Keys of one sender's messages need not ascend."""

    def keys(self, parts: Any, messages: Any, finals: Any, before: Any) -> dict[Mid, Stamp]:
        return {mid: closing.flush_keys(parts, [mid], finals, {})[mid] for mid in messages}


class LackedAreSilent(OtherKeys):
    """Who had not received a frame proposes nothing for it."""

    def keys(self, parts: Any, messages: Any, finals: Any, before: Any) -> dict[Mid, Stamp]:
        silent = {p: Part(told.base, told.stamps, ()) for p, told in parts.items()}
        return closing.flush_keys(silent, messages, finals, before)


class OwnStampsOnly(Stamping):
    """Everybody goes by its own queue."""

    def _flush(self, event: Any) -> list[Action]:
        for member in self.members:
            if member != self.me and member not in self.gone:
                event = type(event)(tuple(self.flush_state() for _ in event.contributions), event.cut)
        return super()._flush(event)


@pytest.mark.parametrize("core", [BareProposals, NoFloor, LackedAreSilent, OwnStampsOnly], ids=lambda c: c.__name__)
def test_traps_are_found(core: type[Stamping]) -> None:
    assert bad_runs(core)


@pytest.mark.parametrize("core", [ActsInTheInstall, ActsOnValidations], ids=lambda c: c.__name__)
def test_F3_by_the_letter(core: type[Stamping]) -> None:
    """Random runs hardly ever show it; its smallest case does."""
    group = f3(core)
    assert group.delivered[2] != group.delivered[3]
