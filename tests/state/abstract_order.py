"""Replicas above an abstract order: views, cuts and holes as the promises of the order allow them, and nothing below.

A view has one list of what was ordered in it.  Members append to it when it is their turn, and deliver it one by one.
At a change those who come from one view together deliver what any of them had; the rest is delivered in the
transitional view, where messages of those who do not come along may be missing (S19), differently in each part; unless
somebody had delivered them: everything is safe here.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from ordercast.contract import Control, Down, Note, Refuse, SetTimer, Setup, Submit, Up, ViewChange
from ordercast.membership.primary import Knows
from ordercast.sim.ledger import Ledger, Line
from ordercast.state.layer import State
from ordercast.state.machine import Answered, Calls, FateUnknown, Standing
from ordercast.types import ALL_CONTINUE, Batch, Identity, Peer, Service, View, ViewId, ViewKind

SERVICES = (Service.AGREED, Service.SAFE)


class Member:
    """One life of a replica, and what its application has heard."""

    def __init__(self, group: Group, id: int, incarnation: int) -> None:
        self.group, self.peer = group, Peer(id, incarnation)
        setup = Setup(Identity(id, incarnation, group.ids), 40_000_000, None, 1_400, random.Random(0))
        setup.partition = group.policy
        self.machine = group.make()
        self.layer = State(self.machine, setup, SERVICES)
        self.view: View | None = None
        self.at = 0  # in its view's list
        self.outbox: deque[bytes] = deque()
        self.timers: list[str] = []
        self.next = 1
        self.answered: dict[int, Any] = {}
        self.answered_in: dict[int, ViewId] = {}
        self.unknown: set[int] = set()
        self.standing: Standing | None = None
        self.notes: list[Note] = []

    def does(self, actions: list[Any]) -> None:
        epoch = self.layer.replica.epoch
        if epoch not in self.group.decided and self.view is not None and epoch == self.view.id:
            self.group.decided[epoch] = set(self.lines)
        for action in actions:
            if isinstance(action, Down) and isinstance(action.event, Submit):
                payload = action.event.submission.payloads[0]
                (self.outbox.appendleft if action.event.ahead else self.outbox.append)(payload)
            elif isinstance(action, Down) and isinstance(action.event, Knows):
                mine = self.group.knows.get(self.peer.id)
                event = action.event
                if mine is None or (event.view, event.n, event.h) > (mine.view, mine.n, mine.h):
                    self.group.knows[self.peer.id] = event
            elif isinstance(action, SetTimer):
                self.timers.append(action.name)
            elif isinstance(action, Note):
                self.notes.append(action)
            elif isinstance(action, Up):
                self._told(action.event)
            else:
                assert isinstance(action, Refuse), action

    def _told(self, event: Any) -> None:
        if isinstance(event, Answered):
            for k, answer in enumerate(event.answers):
                number = event.first + k
                assert number not in self.answered and number not in self.unknown, "told once"
                self.answered[number] = answer
                assert self.view is not None
                self.answered_in[number] = self.view.id
        elif isinstance(event, FateUnknown):
            numbers = set(range(event.first, event.first + event.count))
            assert not numbers & (self.unknown | self.answered.keys()), "told once"
            self.unknown |= numbers
        elif isinstance(event, Standing):
            self.standing = event

    def call(self, count: int = 1, **how: Any) -> list[int] | str:
        """The numbers of the calls, or why not."""
        first, self.next = self.next, self.next + count
        actions = self.layer.down(0, Calls(first, [b"call"] * count, 0, **how))
        self.does(actions)
        refused = [action.why for action in actions if isinstance(action, Refuse)]
        return refused[0] if refused else list(range(first, first + count))

    @property
    def irregular(self) -> set[Line]:
        """Calls that it delivered in a transitional view."""
        found = [note.fields for note in self.notes if note.name == "applied" and not note.fields["regular"]]
        return {(f["caller"], f["life"], f["first"] + k) for f in found for k in range(f["count"])}

    @property
    def at_view(self) -> ViewId | None:
        return self.view.id if self.view is not None else None

    @property
    def lines(self) -> list[Line]:
        return self.machine.lines

    @property
    def place(self) -> tuple[int, bytes]:
        return self.layer.replica.history.place


class Group:
    def __init__(self, n: int, policy: str = ALL_CONTINUE, *, merges: bool = True, seed: int = 0) -> None:
        self.ids = tuple(range(1, n + 1))
        self.policy, self.merges = policy, merges
        self.draw = random.Random(seed)
        self.seq = 0
        self.lives = 0
        self.lists: dict[ViewId, list[tuple[Peer, bytes]]] = {}
        self.decided: dict[ViewId, set[Line]] = {}  # what the first that decided had then, or soon after
        self.offered: dict[ViewId, set[Line]] = {}  # what anybody had when it began, not in a transitional view
        self.reached: dict[ViewId, int] = {}  # how much of it anybody has delivered
        self.knows: dict[int, Knows] = {}  # the record of each, which a crash leaves
        self.of: dict[int, Member] = {}
        for id in self.ids:
            self.start(id)

    def make(self) -> Ledger:
        return Ledger(self.merges)

    def start(self, id: int) -> Member:
        """A process starts, without a view."""
        self.lives += 1
        self.of[id] = Member(self, id, self.lives)
        return self.of[id]

    def crash(self, id: int) -> None:
        del self.of[id]

    # ---------------------------------------------------------------------------------------------------- steps

    def turn(self, id: int) -> bool:
        """One of its messages gets its place."""
        member = self.of[id]
        if member.view is None or not member.outbox or member.view.primary is False:
            return False
        self.lists[member.view.id].append((member.peer, member.outbox.popleft()))
        return True

    def deliver(self, id: int) -> bool:
        member = self.of[id]
        if member.view is None or member.at >= len(self.lists[member.view.id]):
            return False
        left = any(id not in self.of or self.of[id].at_view != member.at_view for id in member.view.members)
        if left and member.at >= self.reached[member.view.id]:
            return False  # not safe: somebody may lack it for ever
        return self._next(member)

    def _next(self, member: Member) -> bool:
        assert member.view is not None
        item = self.lists[member.view.id][member.at]
        member.at += 1
        self.reached[member.view.id] = max(self.reached[member.view.id], member.at)
        self._hand(member, item)
        return True

    def timer(self, id: int) -> bool:
        member = self.of[id]
        if not member.timers:
            return False
        member.does(member.layer.timer(0, member.timers.pop(0), 0))
        return True

    def _hand(self, member: Member, item: tuple[Peer, bytes]) -> None:
        peer, payload = item
        batch = Batch(peer.id, peer.incarnation, 0, 1, Service.AGREED, len(payload).to_bytes(4, "little"), payload)
        member.does(member.layer.up(0, Control(batch), 0))

    def step(self, ids: tuple[int, ...] | None = None) -> bool:
        """One step of somebody, by chance."""
        steps = [(do, id) for id in ids or self.of for do in (self.turn, self.deliver, self.timer)]
        self.draw.shuffle(steps)
        return any(do(id) for do, id in steps)

    def run(self, ids: tuple[int, ...] | None = None) -> None:
        """Until nothing moves."""
        for _ in range(100_000):
            if not self.step(ids):
                return
        raise AssertionError("it never comes to rest")

    # ------------------------------------------------------------------------------------------------------ views

    def view(self, *members: int, primary: bool | None = None, holes: bool = False) -> ViewId:
        """These install a view together; each comes from the one it was in."""
        self.seq += 4
        id = ViewId(self.seq, min(members))
        self.lists[id], self.reached[id] = [], 0
        there = [self.of[member] for member in members]
        knows = [self.knows[member] for member in members if member in self.knows]
        newest = max(knows, key=lambda k: (k.view, k.n, k.h), default=None)
        olds = {member.view.id for member in there if member.view is not None}
        for old in olds:
            self._close(id, [m for m in there if m.view is not None and m.view.id == old], newest, holes)
        if self.policy != ALL_CONTINUE:
            primary = primary if primary is not None else True
        for member in there:
            previous = member.view.id if member.view is not None else None
            if newest is not None and member.view is None:
                member.does(member.layer.up(0, newest, 0))
            if newest is not None:
                self.knows[member.peer.id] = newest
            member.view, member.at = View(id, ViewKind.REGULAR, members, (), (), previous, primary=primary), 0
        for member in there:
            member.does(member.layer.up(0, ViewChange(member.view), 0))
        self.offered[id] = {line for member in there for line in member.lines if line not in member.irregular}
        return id

    def _close(self, id: ViewId, going: list[Member], newest: Knows | None, holes: bool) -> None:
        """The old view ends for those of it who go on together."""
        old = going[0].view
        assert old is not None
        ordered = self.lists[old.id]
        cut = max(member.at for member in going)
        along = {member.peer for member in going}
        safe = self.reached[old.id]  # delivered by somebody: all hold it
        rest = [
            item
            for k, item in enumerate(ordered[cut:], cut)
            if k < safe or item[0] in along or not holes or self.draw.random() < 0.5
        ]
        members = tuple(sorted(member.peer.id for member in going))
        for member in going:
            while member.at < cut:
                self._next(member)
            if newest is not None:
                member.does(member.layer.up(0, newest, 0))
            between = View(id, ViewKind.TRANSITIONAL, members, members, (), old.id, primary=old.primary)
            member.does(member.layer.up(0, ViewChange(between), 0))
            for item in rest:
                self._hand(member, item)
