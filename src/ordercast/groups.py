"""Process groups over one order: who is in which group is a function of the ordered messages alone.

Joining and leaving are ordered messages like any other, so every member changes its picture of the groups at the same
place of the order, and a message goes to the union of its groups as of its own place, once, whether its sender belongs
to them or not.  Groups that share members need nothing more: there is one order.
Paper: "Performance engineering of the Totem group communication system" (1998), section 2 (process group layer).

Members that know each other's groups form a *cell*.  When views merge, the smallest member of each cell sends its
cell's part of the picture ahead of everything it has packed; messages of the new view wait, in order, until the cells
heard of cover the view, then the group views go up, and the messages after them.

Differs:
  D1  A view change during that wait: the messages held go up before it, in the view they belong to, each member being
      told first what it has heard so far; the parts still missing are sent again in the next view.  (Held beyond the
      change they would be delivered in another view than they were sent in.)
      Pictures differ then, yet nobody disagrees on who gets a message.  Each member decides for itself by the groups it
      is in, and those follow from its own joins and leaves, whose places in the order are the same for all.  And what a
      member is told of others is never too much: a part tells the truth of the beginning of its view, joins and leaves
      follow at their places, and who does not come along is out, and told to be out, at once.  So whoever is told to be
      in a group, and comes along, delivers what was sent to it; a picture may only lack members not yet heard of.
  D2  Group views go up at every member, in the group or not: all know the picture, and an outsider may want to send.
  D3  The wait ends also when more than `PENDING_FRAMES_MAX` frames wait, as at a view change (D1): a part comes within
      a rotation, or was lost to somebody who forges.
  D4  In a view that is not primary nobody can say anything: the cells stay apart until one that is.
"""

from __future__ import annotations

from collections import deque
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ordercast.contract import (
    Action,
    Control,
    Delivered,
    Down,
    Event,
    GroupView,
    Layer,
    Note,
    PassedBy,
    Refuse,
    Submit,
    Up,
    ViewChange,
    dropped,
)
from ordercast.joining import Audience
from ordercast.limits import (
    CONFIGURATION_MAX,
    GROUP_NAME_BYTES_MAX,
    GROUPS_MAX,
    GROUPS_PER_MESSAGE_MAX,
    PENDING_BYTES_MAX,
    PENDING_FRAMES_MAX,
)
from ordercast.types import U32, GroupName, MemberId, Nanoseconds, Submission, View, ViewId, ViewKind

Members = Annotated[tuple[U32, ...], Meta(max_length=CONFIGURATION_MAX)]


class GJoin(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Its sender joins a group."""

    group: GroupName


class GLeave(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """Its sender leaves a group."""

    group: GroupName


class GState(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """The groups of the members of one cell, at the beginning of `view`."""

    view: ViewId
    cell: Members
    groups: Annotated[tuple[tuple[GroupName, Members], ...], Meta(max_length=GROUPS_MAX)]


class Above(Event, frozen=True, gc=False):
    """Down: a layer stands above that has control messages of its own; they begin with `FOR_ABOVE`."""


FOR_ABOVE = b"\xc1"  # begins a control message of the layer above, of whatever groups; MessagePack never begins so

_decoder: msgspec.msgpack.Decoder[GJoin | GLeave | GState] = msgspec.msgpack.Decoder(GJoin | GLeave | GState)
_encode = msgspec.msgpack.Encoder().encode


class Groups(Layer):
    """The top layer: addressing."""

    name = "groups"

    def __init__(self, me: MemberId, *, audience: bool = False) -> None:
        self.me = me
        self.audience = audience  # somebody below carries messages only to where they are wanted
        self.groups: dict[str, set[MemberId]] = {}  # the picture
        self.mine: set[str] = set()  # the groups I am in
        self.view: View | None = None
        self.cell: frozenset[MemberId] = frozenset((me,))  # who knows the groups of all of them, as I do
        self.missing: set[MemberId] = set()  # of the view, not yet heard of: messages wait
        self.heard: set[MemberId] = set()  # by GStates of this view
        self.above = False  # somebody there takes what begins with FOR_ABOVE
        self.held: deque[Event] = deque()
        self.held_bytes = 0

    # ------------------------------------------------------------------------------------------------------ inputs

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        if submission.groups and not _good_names(submission.groups):
            return [Refuse("groups")]
        return [Down(Submit(submission))]

    def regroup(self, now: Nanoseconds, group: str, join: bool) -> list[Action]:
        if not _good_names((group,)) or (join and len(self.groups) >= GROUPS_MAX and group not in self.groups):
            return [Refuse("groups")]
        return [_say(GJoin(group) if join else GLeave(group))]

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Delivered:
            if self.missing:
                return self._hold(event)  # type: ignore[arg-type]
            return self._deliver(event)  # type: ignore[arg-type]
        if kind is Control:
            return self._above(event) + self._control(event)  # type: ignore[arg-type]
        if kind is ViewChange:
            view: View = event.view  # type: ignore[attr-defined]
            if view.kind is ViewKind.TRANSITIONAL:
                return [*self._give_up(), Up(event), *self._transitional(view)]
            return [*self._give_up(), Up(event), *self._regular(view)]
        return [Up(event)]

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if type(event) is Above:
            self.above = True
            return []
        return [Down(event)]

    # ------------------------------------------------------------------------------------------------- the picture

    def _above(self, event: Control) -> list[Action]:
        """What is not this layer's; it needs no picture, and waits for none."""
        if not any(payload[:1] == FOR_ABOVE for payload in event.batch.payloads()):
            return []
        return [Up(event)] if self.above else [dropped("control", text="for a layer that is not here")]

    def _deliver(self, event: Delivered) -> list[Action]:
        batch = event.batch
        if batch.groups and self.mine.isdisjoint(batch.groups):
            return [Up(PassedBy(batch.counter, batch.count))] if batch.sender == self.me else []
        return [Up(event)]

    def _hold(self, event: Delivered | Control) -> list[Action]:
        """It waits for the groups of others, unless too much does (D3)."""
        self.held.append(event)
        self.held_bytes += len(event.batch.data)
        much = len(self.held) > PENDING_FRAMES_MAX or self.held_bytes > PENDING_BYTES_MAX
        return self._give_up() if much else []

    def _control(self, event: Control) -> list[Action]:
        out: list[Action] = []
        for payload in event.batch.payloads():
            if payload[:1] == FOR_ABOVE:
                continue
            try:
                message = _decoder.decode(payload)
            except msgspec.MsgspecError as why:
                out.append(dropped("control", text=str(why)))
                continue
            if isinstance(message, GState):
                out += self._state(message) if self._possible(event.batch.sender, message) else [dropped("group state")]
            elif self.missing:
                return out + self._hold(event)  # its joins and leaves, at their place
            else:
                out += self._change(event.batch.sender, message)
        return out

    def _change(self, sender: MemberId, message: GJoin | GLeave) -> list[Action]:
        group, join = message.group, type(message) is GJoin
        if self.view is not None and sender not in self.view.members:
            return []  # it has left every group already: its last messages, in the transitional view
        if join and group not in self.groups and len(self.groups) >= GROUPS_MAX:
            return [dropped("groups", group=group)]
        if sender == self.me:
            (self.mine.add if join else self.mine.discard)(group)
        if (sender in self.groups.get(group, ())) is join:
            return []
        (_add if join else _remove)(self.groups, group, sender)
        return self._tell(group)

    def _tell(self, *groups: str) -> list[Action]:
        """The application, and who carries messages."""
        out: list[Action] = []
        for group in groups:
            members = tuple(sorted(self.groups.get(group, ())))
            out.append(Up(GroupView(group, members, self.view.id if self.view is not None else None)))
            if self.audience:
                out.append(Down(Audience(group, members)))
        return out

    def _settled(self, settled: bool) -> list[Action]:
        """All groups are known here, or not for now: whoever carries messages must know."""
        return [Down(Audience(settled=settled))] if self.audience else []

    # ------------------------------------------------------------------------------------------------------- views

    def _transitional(self, view: View) -> list[Action]:
        """Who does not come along leaves every group."""
        here = set(view.members)
        self.cell &= here
        self.view = view
        smaller = [group for group in sorted(self.groups) if self.groups[group] - here]
        for group in smaller:
            for member in self.groups[group] - here:
                _remove(self.groups, group, member)
        return self._tell(*smaller)

    def _regular(self, view: View) -> list[Action]:
        """A merge: my cell's smallest member says what the others of the view cannot know."""
        self.view = view
        self.heard = set()
        silent = view.primary is False  # nothing is sent, or delivered, in such a view
        self.missing = set() if silent or self.cell == set(view.members) else set(view.members)
        settled = self._settled(not self.missing)
        if not self.missing or self.me != min(self.cell):
            return settled
        groups = tuple((g, tuple(sorted(m & self.cell))) for g, m in sorted(self.groups.items()) if m & self.cell)
        state = GState(view.id, tuple(sorted(self.cell)), groups)
        return [*settled, Note("group state", {"cell": len(self.cell), "groups": len(groups)}), _say(state, ahead=True)]

    def _possible(self, sender: MemberId, state: GState) -> bool:
        """A cell's part comes from one of the cell, and all of the cell are in the view."""
        if self.view is None or state.view != self.view.id:
            return True  # says nothing here
        return sender in state.cell and set(state.cell).issubset(self.view.members)

    def _state(self, state: GState) -> list[Action]:
        """Another cell's part (or my own): the wait ends when the view is covered."""
        if self.view is None or state.view != self.view.id or not self.missing:
            return []  # of an earlier view, sent again since
        cell = set(state.cell)
        if cell <= self.heard:
            return []  # once
        if cell != self.cell:
            for group, members in state.groups:
                self.groups.setdefault(group, set()).update(cell.intersection(members))
        self.heard |= cell
        self.missing -= cell
        if self.missing:
            return []
        self.cell = frozenset(self.view.members)
        return [*self._tell(*sorted(self.groups)), *self._settled(True), *self._release()]

    def _release(self) -> list[Action]:
        out: list[Action] = []
        held, self.held, self.held_bytes = self.held, deque(), 0
        for event in held:
            out += self._deliver(event) if type(event) is Delivered else self._control(event)  # type: ignore[arg-type]
        return out

    def _give_up(self) -> list[Action]:
        """The view ends before the wait did (D1)."""
        if not self.missing:
            return []
        missing, self.missing = self.missing, set()
        others = self.heard - self.cell
        if self.me not in missing:
            self.cell = frozenset(self.heard)
        news = self._tell(*(group for group in sorted(self.groups) if not others.isdisjoint(self.groups[group])))
        again = Note("group state again", {"missing": len(missing)})
        return [*self._settled(False), again, *news, *self._release()]

    def status(self) -> dict[str, Any]:
        waits = f"the groups of members {sorted(self.missing)}" if self.missing else ""
        return {
            "groups": {group: sorted(members) for group, members in sorted(self.groups.items())},
            "queues": {"held": len(self.held)},
            "waits": waits,
        }


def _say(message: GJoin | GLeave | GState, ahead: bool = False) -> Action:
    """A control message, ordered like any other; `ahead` of everything that is packed already."""
    return Down(Submit(Submission([_encode(message)]), control=True, ahead=ahead))


def _add(picture: dict[str, set[MemberId]], group: str, member: MemberId) -> None:
    picture.setdefault(group, set()).add(member)


def _remove(picture: dict[str, set[MemberId]], group: str, member: MemberId) -> None:
    picture[group].discard(member)
    if not picture[group]:
        del picture[group]


def _good_names(names: tuple[str, ...]) -> bool:
    return len(names) <= GROUPS_PER_MESSAGE_MAX and all(
        0 < len(name.encode()) <= GROUP_NAME_BYTES_MAX for name in names
    )
