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

from ordercast.contract import Control, Down, Note, Refuse, Room, SetTimer, Setup, Submit, Up, ViewChange
from ordercast.filing import Append, Remove, Rename, Sync
from ordercast.groups import Above
from ordercast.membership.primary import Knows
from ordercast.sim.files import Certain, Files
from ordercast.sim.ledger import Ledger, Line
from ordercast.state.answers import Answers
from ordercast.state.layer import State
from ordercast.state.machine import Answered, Calls, FateUnknown, Standing
from ordercast.state.packets import Called
from ordercast.state.recovery import recover
from ordercast.state.replica import Phase, Replica
from ordercast.types import ALL_CONTINUE, Batch, Identity, Peer, Service, View, ViewId, ViewKind

SERVICES = (Service.AGREED, Service.SAFE)


class Member:
    """One life of a replica, and what its application has heard."""

    def __init__(self, group: Group, id: int, incarnation: int) -> None:
        self.group, self.peer = group, Peer(id, incarnation)
        setup = Setup(Identity(id, incarnation, group.ids), 40_000_000, None, 1_400, random.Random(0))
        setup.partition = group.policy
        self.machine = group.make()
        self.disk = group.disks.get(id)
        self.flushes: list[tuple[Sync, Certain]] = []
        self.layer = State(self.machine, setup, SERVICES, self.disk.found() if self.disk is not None else None)
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
        self.rooms = 0  # how often it was told that there is room again
        self.does(self.layer.start(0, setup.identity, {}))

    def does(self, actions: list[Any]) -> None:
        log = self.layer.keeping.log
        assert log is None or log._kept_bytes == sum(map(len, log._kept))
        if any(isinstance(action, Note) and action.name == "answered" for action in actions):
            self._held_by_all(actions)
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
            elif isinstance(action, Sync):
                assert self.disk is not None
                self.flushes.append((action, self.disk.flush()))
            elif isinstance(action, Append | Rename | Remove):
                assert self.disk is not None
                self.disk.do(action, "")
            elif isinstance(action, SetTimer):
                self.timers.append(action.name)
            elif isinstance(action, Note):
                self.notes.append(action)
            elif isinstance(action, Up):
                self._told(action.event)
            else:
                assert isinstance(action, Refuse) or (isinstance(action, Down) and isinstance(action.event, Above))

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
        elif isinstance(event, Room):
            self.rooms += 1

    def _held_by_all(self, actions: list[Any]) -> None:
        """A4: an answered durable call is on the disk of every member of the view."""
        for action in actions:
            if isinstance(action, Note) and action.name == "answered" and action.fields["durable"]:
                assert self.view is not None
                first, count = action.fields["first"], action.fields["count"]
                lines = {(self.peer.id, self.peer.incarnation, first + k) for k in range(count)}
                up = self.group.of
                for id in (id for id in self.view.members if id not in up or up[id].layer.phase is not Phase.ENDED):
                    on_disk = self.group.on_disk(id)
                    assert lines <= on_disk, f"A4: {lines} is not on the disk of member {id}"

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

    def offers(self) -> set[Line]:
        """Calls that its Offer in a view that begins speaks for, also those that it has still to apply."""
        due = [(entry.caller, entry.said) for entry in self.layer.replica.due if not entry.irregular]
        steps = [(caller, said) for caller, said in due if isinstance(said, Called)]
        later = {(by.id, by.incarnation, said.first + k) for by, said in steps for k in range(len(said.payloads))}
        return {*self.lines, *later} - self.irregular

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
    def __init__(
        self,
        n: int,
        policy: str = ALL_CONTINUE,
        *,
        merges: bool = True,
        seed: int = 0,
        disks: bool = False,
        safe: bool = True,
    ) -> None:
        self.ids = tuple(range(1, n + 1))
        self.policy, self.merges, self.safe = policy, merges, safe
        self.draw = random.Random(seed)
        self.disks = {id: Files(random.Random(f"{seed}/{id}")) for id in self.ids} if disks else {}
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

    def crash(self, id: int, *, lost: str = "") -> None:
        """With what was not flushed, or part of that; `lost`: the disk, or the record, or both."""
        del self.of[id]
        if id in self.disks:
            self.disks[id].crash(torn=True, flip=False)
        if lost in ("disk", "both") and id in self.disks:
            self.disks[id].wipe()
        if lost in ("record", "both"):
            self.knows.pop(id, None)

    def on_disk(self, id: int) -> set[Line]:
        """What a life that starts from what is certain on this disk would have."""
        found = {name: bytes(data[:size]) for name, (data, size) in self.disks[id].certain.items()}
        ledger = self.make()
        replica = Replica(ledger, Peer(id, 0), Answers(SERVICES, 0, 1_400))
        recover(replica, found)
        return set(ledger.lines)

    def flush(self, id: int) -> bool:
        """The oldest flush under way is done."""
        member = self.of[id]
        if not member.flushes:
            return False
        sync, covered = member.flushes.pop(0)
        assert member.disk is not None
        why = member.disk.flushed(covered)
        assert not why
        member.does(member.layer.stored(0, "log", sync.number))
        return True

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
        if self.safe and left and member.at >= self.reached[member.view.id]:
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

    def step(self, ids: tuple[int, ...] | None = None, still: tuple[int, ...] = ()) -> bool:
        """One step of somebody, by chance; the disks of those who stand `still` do not answer."""
        steps = [(do, id) for id in ids or self.of for do in (self.turn, self.deliver, self.timer)]
        steps += [(self.flush, id) for id in ids or self.of if id not in still]
        self.draw.shuffle(steps)
        return any(do(id) for do, id in steps)

    def run(self, *ids: int, still: tuple[int, ...] = ()) -> None:
        """Until nothing moves, at all or at these."""
        for _ in range(100_000):
            if not self.step(ids or None, still):
                return
        raise AssertionError("it never comes to rest")

    # ------------------------------------------------------------------------------------------------------ views

    def view(self, *members: int, primary: bool | None = None, holes: float = 0.0) -> ViewId:
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
        self.offered[id] = {line for member in there for line in member.offers()}
        return id

    def _close(self, id: ViewId, going: list[Member], newest: Knows | None, holes: float) -> None:
        """The old view ends for those of it who go on together."""
        old = going[0].view
        assert old is not None
        ordered = self.lists[old.id]
        cut = max(member.at for member in going)
        along = {member.peer for member in going}
        safe = self.reached[old.id] if self.safe else 0  # delivered by somebody: all hold it
        rest = [
            item
            for k, item in enumerate(ordered[cut:], cut)
            if k < safe or item[0] in along or self.draw.random() >= holes
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
