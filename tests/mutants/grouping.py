"""Variants of process groups: who gets what, and from which place of the order on."""

from __future__ import annotations

from tests.mutants.parts import totem
from tests.mutants.registry import mutant

from ordercast.contract import Action, Delivered, Event, GroupView, Setup, Up, ViewChange
from ordercast.groups import GJoin, GLeave, Groups, GState
from ordercast.stack import Stack
from ordercast.types import MemberId, Nanoseconds, View

AREA = "groups"


@mutant("groups_no_filter", "totem", AREA, "messages go to members outside their groups")
def groups_no_filter(setup: Setup) -> Stack:
    class Open(Groups):
        def _deliver(self, event: Delivered) -> list[Action]:
            return [Up(event)]

    return totem(setup, groups=Open)


@mutant("groups_filter_by_sender", "totem", AREA, "a message is filtered by its sender's groups, not its own")
def groups_filter_by_sender(setup: Setup) -> Stack:
    class WrongSide(Groups):
        def _deliver(self, event: Delivered) -> list[Action]:
            groups = event.batch.groups
            theirs = {group for group, members in self.groups.items() if event.batch.sender in members}
            return [] if groups and self.mine.isdisjoint(theirs) else [Up(event)]

    return totem(setup, groups=WrongSide)


@mutant("groups_join_at_once", "totem", AREA, "a member counts itself in before its join has its place in the order")
def groups_join_at_once(setup: Setup) -> Stack:
    class Early(Groups):
        def regroup(self, now: Nanoseconds, group: str, join: bool) -> list[Action]:
            out = super().regroup(now, group, join)
            if self.view is not None and join:
                self.mine.add(group)
            return out

    return totem(setup, groups=Early)


@mutant("groups_leave_ignored", "totem", AREA, "who leaves a group still gets its messages")
def groups_leave_ignored(setup: Setup) -> Stack:
    class Stays(Groups):
        def _change(self, sender: MemberId, message: GJoin | GLeave) -> list[Action]:
            mine = set(self.mine)
            out = super()._change(sender, message)
            self.mine |= mine
            return out

    return totem(setup, groups=Stays)


@mutant(
    "groups_no_wait_after_merge", "totem", AREA, "messages of a merged view do not wait for the others' groups",
    scenario="groups_merge",
)  # fmt: skip
def groups_no_wait_after_merge(setup: Setup) -> Stack:
    class Hasty(Groups):
        def _regular(self, view: View) -> list[Action]:
            out = super()._regular(view)
            self.missing = set()
            return out

    return totem(setup, groups=Hasty)


@mutant(
    "groups_state_lost", "totem", AREA, "after a merge the other side's groups are not taken over",
    scenario="groups_merge",
)  # fmt: skip
def groups_state_lost(setup: Setup) -> Stack:
    class Deaf(Groups):
        def _state(self, state: GState) -> list[Action]:
            return super()._state(GState(state.view, state.cell, ()))

    return totem(setup, groups=Deaf)


@mutant(
    "groups_held_dropped", "totem", AREA, "what waited for the others' groups is dropped when the view changes",
    scenario="groups_held",
)  # fmt: skip
def groups_held_dropped(setup: Setup) -> Stack:
    class Drops(Groups):
        def _give_up(self) -> list[Action]:
            if self.missing:
                self.held.clear()
            return super()._give_up()

    return totem(setup, groups=Drops)


@mutant(
    "groups_vanished_stay_told", "totem", AREA, "who gave up waiting is never told that a group's members are gone",
    scenario="groups_vanish",
)  # fmt: skip
def groups_vanished_stay_told(setup: Setup) -> Stack:
    class Forgets(Groups):
        gave_up = False

        def _give_up(self) -> list[Action]:
            self.gave_up = bool(self.missing)
            return super()._give_up()

        def _transitional(self, view: View) -> list[Action]:
            out = super()._transitional(view)
            return [] if self.gave_up else out

    return totem(setup, groups=Forgets)


@mutant(
    "groups_told_in_common", "totem", AREA, "who gave up waiting is told only what all others know of its groups too",
    scenario="groups_new_life",
)  # fmt: skip
def groups_told_in_common(setup: Setup) -> Stack:
    class Common(Groups):
        common: set[tuple[str, MemberId]] | None = None  # of the picture, while parts are missing

        def _give_up(self) -> list[Action]:
            if self.missing:
                self.common = {(g, m) for g, members in self.groups.items() for m in members & self.heard}
            return super()._give_up()

        def _change(self, sender: MemberId, message: GJoin | GLeave) -> list[Action]:
            if self.common is not None:
                (self.common.add if type(message) is GJoin else self.common.discard)((message.group, sender))
            return super()._change(sender, message)

        def _state(self, state: GState) -> list[Action]:
            waited = bool(self.missing)
            out = super()._state(state)
            self.common = None if waited and not self.missing else self.common
            return out

        def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
            return [a for a in super().up(now, event, child) if not (isinstance(a, Up) and self._unknown(a.event))]

        def _unknown(self, event: Event) -> bool:
            """A group I am in, as far as others do not know it."""
            if self.common is None or not isinstance(event, GroupView):
                return False
            return event.group in self.mine and (event.group, self.me) not in self.common

    return totem(setup, groups=Common)


@mutant("groups_one_state_suffices", "totem", AREA, "the first of the others' groups ends the wait for all of them")
def groups_one_state_suffices(setup: Setup) -> Stack:
    class Eager(Groups):
        def _state(self, state: GState) -> list[Action]:
            if self.view is not None and state.view == self.view.id and set(state.cell) != self.cell:
                self.missing &= set(state.cell)
            return super()._state(state)

    return totem(setup, groups=Eager)


@mutant("groups_departed_stay", "totem", AREA, "members that did not come along stay in their groups")
def groups_departed_stay(setup: Setup) -> Stack:
    class Keeps(Groups):
        def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
            if type(event) is ViewChange:
                groups = {name: set(members) for name, members in self.groups.items()}
                out = super().up(now, event, child)
                for name, members in groups.items():
                    self.groups.setdefault(name, set()).update(members)
                return out
            return super().up(now, event, child)

    return totem(setup, groups=Keeps)
