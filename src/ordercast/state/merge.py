"""Diverged states are put together, in one view: each part tells its state, and all compute the same from the same.

The smallest member of each part sends its snapshot, its history and its calls since the last common mark to everybody.
When all have said, in the order, that they hold every part, each merges them by itself: a pure function of the parts in
their order.  A view that changes before ends it; nobody who goes on together has merged then.  If one of those who tell
a part ends as a replica, all decide anew without it; the *serial* says how often.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ordercast.contract import Action, Note, SetTimer
from ordercast.state.decision import Council, Decision
from ordercast.state.history import CallName, History, calls_of
from ordercast.state.machine import Call, Mark, Part
from ordercast.state.moving import SERVE, send
from ordercast.state.packets import Ack, Chunk, Ready, say
from ordercast.state.replica import Failed, Replica, guarded
from ordercast.state.transfer import Arriving, Serving
from ordercast.types import MemberId, Nanoseconds


class Merged(Struct, frozen=True):
    """What came of it."""

    mark: Mark
    history: History
    parts: list[History]  # what it is made of
    why: str = ""  # why the machine could not merge: then the first part is the state


class Meeting:
    """One member's part in it."""

    def __init__(
        self, council: Council, serial: int, me: MemberId, members: tuple[MemberId, ...], replica: Replica,
        decision: Decision,
    ) -> None:  # fmt: skip
        self.council, self.view, self.serial = council, council.view, serial
        self.me, self.members, self.replica = me, members, replica
        self.parts, self.common = decision.parts, decision.common
        self.ready: set[MemberId] = set()
        self._said = False
        self._pieces: list[list[bytes]] = [[] for _ in self.parts]
        initial = replica.machine.digest
        self._arriving = [
            Arriving((self.view, serial, k), part[0], self._pieces[k].append, initial)
            for k, part in enumerate(self.parts)
        ]
        self.serving: Serving | None = None

    def begin(self, now: Nanoseconds) -> list[Action]:
        """Each part's smallest member tells its state to all."""
        for k, part in enumerate(self.parts):
            if part[0] == self.me:
                machine, history = self.replica.machine, self.replica.history
                head = history.pieces(guarded("the size of the state", machine.size), self._since)
                others = [member for member in self.members if member != self.me]
                self.serving = Serving((self.view, self.serial, k), head, guarded("snapshot", machine.snapshot), others)
                return [Note("states merge", {"parts": len(self.parts)}), SetTimer(SERVE, now)]
        return []

    @property
    def _since(self) -> int:
        return self.common.n if self.common is not None else 0

    def send(self, now: Nanoseconds) -> list[Action]:
        return send(self.serving, now)

    def ack(self, member: MemberId, ack: Ack) -> None:
        if self.serving is not None:
            self.serving.ack(member, ack)

    def chunk(self, member: MemberId, chunk: Chunk) -> list[Action]:
        if chunk.serial != self.serial or chunk.part >= len(self._arriving):
            return []
        ack = self._arriving[chunk.part].take(member, chunk)
        out: list[Action] = [say(ack)] if ack is not None and member != self.me else []
        if not self._said and self.whole:
            self._said = True
            out.append(say(Ready(self.view, self.serial)))
        return out

    @property
    def whole(self) -> bool:
        """All parts are here."""
        return all(arriving.done for arriving in self._arriving)

    def all_ready(self, member: MemberId, said: Ready) -> bool:
        """This one holds all parts; whether everybody does now."""
        if said.serial != self.serial:
            return False
        self.ready.add(member)
        return self.ready.issuperset(self.members)

    def needs(self, member: MemberId) -> bool:
        """Whether it goes on only with this member."""
        return any(part[0] == member for part in self.parts)

    def without(self, member: MemberId) -> bool:
        """It is no replica any more; whether all others are ready."""
        self.council.leave(member)
        self.members = tuple(m for m in self.members if m != member)
        if self.serving is not None:
            self.serving.without(member)
        return self.ready.issuperset(self.members)

    def merge(self) -> Merged:
        """The machine's state becomes that of all parts."""
        machine, initial = self.replica.machine, self.replica.machine.digest
        if any(arriving.damaged for arriving in self._arriving):
            raise Failed("a state that is to be merged did not arrive as it was sent")
        told: set[CallName] = set()
        try:
            histories = [arriving.history.finish() for arriving in self._arriving]
            parts = [self._part(k, history, told) for k, history in enumerate(histories)]
        except (msgspec.MsgspecError, ValueError) as why:
            raise Failed(f"a history that is to be merged cannot be read: {why}") from None
        mine = next((k for k, part in enumerate(self.parts) if self.me in part), None)
        try:
            machine.merge(self.common, parts, mine)
        except Exception as why:
            return self._first(histories, f"merge raised {type(why).__name__}: {why}")
        history = History.merged(histories, self._since, initial)
        return Merged(Mark(self.view, *history.place), history, histories)

    def _part(self, k: int, history: History, told: set[CallName]) -> Part:
        """A part, with those of its calls that none before it has; `told` grows by them."""
        calls: list[Call] | None = []
        for step in history.since(self._since):
            if calls is not None:
                calls = None if step.raw is None else [*calls, *calls_of(step, told)]
            told.update(step.names())
        kept = None if calls is None or history.floor > self._since + 1 else tuple(calls)
        return Part(Mark(self.view, *history.place), self._pieces[k], kept)

    def _first(self, histories: list[History], why: str) -> Merged:
        """The machine cannot: the first part's state, everywhere."""
        restoring = guarded("restore", self.replica.machine.restore)
        for piece in self._pieces[0]:
            guarded("restore", restoring.feed, piece)
        guarded("restore", restoring.finish)
        return Merged(Mark(self.view, *histories[0].place), histories[0], histories[:1], why)
