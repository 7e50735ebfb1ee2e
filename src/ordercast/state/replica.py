"""One replica's state: the machine, its history, and the calls that wait to be applied to it.

It knows how a state changes, and nothing of when: calls are applied in their order, held while it is not known which
state they belong to, or dropped; a state is decided upon, taken over, merged.  Calls that are known to follow this
state are *due*: they are applied a few at a time, also over a change of view, and dropped by nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeVar

from msgspec import Struct

from ordercast.contract import Action, Note
from ordercast.limits import HELD_BYTES_MAX, WITHIN_MAX
from ordercast.state import machine as standing
from ordercast.state.answers import Answers, unknown
from ordercast.state.history import NO_VIEW, NOBODY, YES, History, Place
from ordercast.state.log import Log
from ordercast.state.machine import Context, Machine, Mark, Restoring
from ordercast.state.packets import Arrived, Called, Holds, Offer, encode
from ordercast.state.records import Beginning, Heard, Offered
from ordercast.types import MemberId, Peer, ViewId

T = TypeVar("T")


class Phase(Enum):
    """Where a replica stands in its view; the value is what the application is told."""

    AWAY = standing.HALTED  # before the first view, or in one that may not go on
    OFFERING = standing.UNDECIDED
    BEHIND = standing.BEHIND
    CATCHING = "catching up"  # it has its state, and applies what waited
    COMPLETE = standing.COMPLETE
    ENDED = standing.ENDED


class Failed(Exception):
    """The machine raised where it must not; the text is the sentence."""


class Entry(Struct, frozen=True, gc=False):
    """A step of the order."""

    caller: Peer
    said: Called | Arrived
    raw: bytes
    irregular: bool = False
    mine: bool = False  # calls of this life that wait for an answer

    @property
    def count(self) -> int:
        return len(self.said.payloads) if isinstance(self.said, Called) else 1

    @classmethod
    def arrival(cls, view: ViewId, peers: tuple[Peer, ...]) -> Entry:
        """The step that follows a decision: who is in the view."""
        said = Arrived(view, peers)
        return cls(Peer(NOBODY, view.seq), said, encode(said))


def guarded(what: str, do: Callable[..., T], *args: Any) -> T:
    """Call the machine; whatever it raises ends this replica."""
    try:
        return do(*args)
    except Exception as why:
        raise Failed(f"{what} raised {type(why).__name__}: {why}") from why


class Replica:
    """`log`: where its steps go, once it has one."""

    def __init__(self, machine: Machine, me: Peer, answers: Answers) -> None:
        self.machine, self.me, self.answers = machine, me, answers
        self.log: Log | None = None
        self.durable_n = 0  # the last durable call, anybody's
        self.history = History(machine.digest)
        self.epoch = NO_VIEW  # the last decision that this state belongs to
        self.knows: Mark | None = None  # the newest decision heard of
        self.within: tuple[ViewId, ...] = ()  # views in which it offered its state since it last decided
        self.short = False  # its log was altered on disk: until the next decision it may lack what it vouched for
        self.held: deque[Entry] = deque()  # until it is known which state they belong to
        self.due: deque[Entry] = deque()  # they belong to this one
        self.held_bytes = 0  # of both

    @property
    def behind(self) -> bool:
        return self.knows is not None and self.epoch < self.knows.view

    @property
    def crowded(self) -> bool:
        return self.held_bytes > HELD_BYTES_MAX

    # ---------------------------------------------------------------------------------------------------- what it tells

    def offer(self, view: ViewId) -> Offer:
        history, machine = self.history, self.machine
        n, h = history.place
        size = guarded("the size of the state", machine.size)
        return Offer(
            view, machine.digest, machine.merges, self.epoch, n, history.regular, h, self.knows, self.within, size,
            self.log is not None, self.short,
        )  # fmt: skip

    def compare(self, view: ViewId, questions: Iterable[Place]) -> Holds:
        return Holds(view, tuple(self.history.holds(place) for place in questions), self.history.all_marks())

    def learn(self, mark: Mark) -> bool:
        """Of a decision, wherever it was heard; whether it is news."""
        news = self.knows is None or mark > self.knows
        if news:
            self.knows = mark
            if self.log is not None:
                self.log.add(Heard(mark, decided=False))
        return news

    def enter(self, view: ViewId) -> None:
        """A view begins in which the state is offered."""
        self.history.enter(view)
        self.within = (*self.within, view)[-WITHIN_MAX:]
        if self.log is not None:
            self.log.add(Offered(view))

    def heard(self, mark: Mark) -> None:
        """The view was decided: whether or not this state is the one, that is known."""
        self.learn(mark)
        self.within = ()
        if self.log is not None:
            self.log.add(Heard(mark, decided=True))

    # ------------------------------------------------------------------------------------------------------------ calls

    def apply(self, entry: Entry, *, late: bool = False) -> list[Action]:
        """The next step, to the state as it is; `late`: its view is over, and others may have decided without it."""
        said, caller, history = entry.said, entry.caller, self.history
        if isinstance(said, Arrived):
            history.peers = said.peers
            context = Context(caller, said.view.rep, history.n, history.h, 0, said.peers)
            guarded("present", self.machine.present, said.peers, context)
            self._grow(entry, said.view.rep)
            return [self._note(caller, said.view.rep, 1, entry.irregular)]
        count = entry.count
        context = Context(caller, said.first, history.n, history.h, said.time_ns, history.peers)
        answers = guarded("apply", self.machine.apply, said.payloads, context)
        self._grow(entry, said.first)
        if said.durable:
            self.durable_n = history.n
        out: list[Action] = [self._note(caller, said.first, count, entry.irregular)]
        if entry.mine:
            wait = entry.irregular or late
            out += self.answers.applied(history.n, said.first, answers, durable=said.durable, irregular=wait)
        return out

    def _grow(self, entry: Entry, first: int) -> None:
        step = self.history.add(entry.caller, first, entry.count, entry.raw, irregular=entry.irregular)
        if self.log is not None:
            self.log.stepped(step, entry.irregular)

    def _note(self, caller: Peer, first: int, count: int, irregular: bool) -> Action:
        fields = {"caller": caller.id, "life": caller.incarnation, "first": first, "count": count, "n": self.history.n}
        return Note("applied", {**fields, "h": self.history.h.hex(), "regular": not irregular})

    def hold(self, entry: Entry, *, due: bool = False) -> None:
        """It waits for its state, or for its turn."""
        (self.due if due else self.held).append(entry)
        self.held_bytes += len(entry.raw)

    def arrive(self, view: ViewId, peers: Iterable[Peer]) -> None:
        """The first step after a decision, ahead of all that waits: who is in the view."""
        entry = Entry.arrival(view, tuple(sorted(peers)))
        self.held.appendleft(entry)
        self.held_bytes += len(entry.raw)

    def ripen(self) -> None:
        """It is known now: what waits follows this state."""
        self.due.extend(self.held)
        self.held.clear()

    @property
    def due_n(self) -> int:
        """Where it stands once all that is due is applied."""
        return self.history.n + sum(entry.count for entry in self.due)

    def drain(self, calls: int, upto: int | None = None, *, late: bool = False) -> list[Action]:
        """Apply about so many calls of what is due, and none beyond that place."""
        out: list[Action] = []
        while self.due and calls > 0 and self.history.n != upto:
            entry = self.due.popleft()
            self.held_bytes -= len(entry.raw)
            calls -= entry.count
            out += self.apply(entry, late=late)
        return out

    def drop(self, why: str) -> list[Action]:
        """What waits for its state is applied by nobody here: the caller hears that its fate is unknown."""
        self.held_bytes -= sum(len(entry.raw) for entry in self.held)
        return _given_up(self.held, why)

    def end(self, why: str) -> list[Action]:
        """Nothing is applied any more."""
        self.held_bytes = 0
        return _given_up(self.due, why) + _given_up(self.held, why)

    # ---------------------------------------------------------------------------------------------------- another state

    def decided(self, mark: Mark, members: Iterable[MemberId]) -> list[Action]:
        """This state is the group's."""
        self.history.decided(mark, members)
        self.epoch = mark.view
        if self.log is not None:
            self.log.decided(mark, members)
        short, self.short = self.short, False
        return self.save() if short else []  # the log that was altered is not read again

    def take_over(
        self, mark: Mark, history: History, restoring: Restoring, members: Iterable[MemberId]
    ) -> list[Action]:
        """Another's state, which has arrived whole, becomes this one's; what that costs is told."""
        guarded("restore", restoring.finish)
        return self.replace(mark, history, members)

    def replace(self, mark: Mark, history: History, members: Iterable[MemberId]) -> list[Action]:
        """The machine has another state now."""
        old, self.history = self.history, history
        kept, lost = history.holds(old.place) == YES, old.lost_to(history)
        history.decided(mark, members)
        self.epoch, self.durable_n, self.short = mark.view, mark.n, False
        if self.log is not None:
            self.log.rebase()
        out = self.answers.settled(0) if kept else self.answers.replaced("another state was taken over")
        out += self.save()
        if lost:
            names = [(call.caller.id, call.caller.incarnation, call.number) for call in lost]
            out.append(Note("lost", {"calls": names}))
            guarded("lost", self.machine.lost, lost)
        return out

    def save(self) -> list[Action]:
        """Begin a snapshot on disk, of the state as it is now."""
        if self.log is None:
            return []
        history = self.history
        beginning = Beginning(self.epoch, history.irregular, self.knows, self.within)
        head = history.pieces(guarded("the size of the state", self.machine.size))
        return self.log.snapshot(history.n, beginning, head, guarded("snapshot", self.machine.snapshot))


def _given_up(entries: deque[Entry], why: str) -> list[Action]:
    own = [entry.said for entry in entries if entry.mine and isinstance(entry.said, Called)]
    entries.clear()
    return [unknown(said.first, len(said.payloads), why) for said in own]
