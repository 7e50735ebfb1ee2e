"""ToTo and all-ack: every message is a vote on those before it, and enough votes make an order.

Paper: D. Dolev, S. Kramer, D. Malki, "Early delivery totally ordered multicast in asynchronous environments".
Provides: agreed, safe.  Needs below: the view-synchronous layer in causal order.
The order itself is decided in ballots.py.  Here is what stands around it in a view: frames that come and go up, the
vote of a member that has nothing to say, safe delivery, and the end of the view.

A member from which a vote is waited for, and which sends nothing by itself, sends a *null* after T_ack, staggered by
rank: whoever speaks first may have decided it for the rest, so that about as many speak as a quorum needs.

A safe frame goes up when every member has sent something that follows it, and everything before it went up; so it is
also owed a null, by everybody.

Differs from the paper (beside E1-E8 of ballots.py):
  E9  A crash is told only after everything that anybody who goes on holds of that member has come: the layer does so.
  E10 Crashes alone do not settle all that is pending, the living must vote, too: at the flush whoever has no ballot has
      the empty one.  The order then depends only on what was agreed to be in the view.
  B1  The paper has no timer: one talker alone would never be delivered.
  B2  A frame of the service causal, which the product does not offer beside agreed, goes up when nothing in its past is
      pending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from operator import gt
from typing import Any, NamedTuple

from ordercast.contract import (
    Action,
    Body,
    CancelTimer,
    Crash,
    Event,
    Flush,
    Frozen,
    Layer,
    Note,
    Ordered,
    Receive,
    Received,
    SetTimer,
    Setup,
    Up,
    ViewChange,
    dropped,
)
from ordercast.protocols.toto.ballots import Ballots, Key, Vector
from ordercast.sender import LEAVE, Sender
from ordercast.types import Frame, MemberId, Nanoseconds, NetId, Service, ViewKind

ACK = "ack"  # timer
CAUSAL, SAFE = int(Service.CAUSAL), int(Service.SAFE)


class Sent(Body, frozen=True, gc=False, tag=1):
    """A frame; it votes, too."""

    frame: Frame

    def check(self) -> None:
        self.frame.check()


class Null(Body, frozen=True, gc=False, tag=2):
    """A vote without a frame."""


class Pending(NamedTuple):
    """A frame without a place in the order."""

    frame: Frame
    vec: Vector
    omega: int  # index of latency when it came
    came: Nanoseconds


class Toto(Layer):
    """One member.  `quorum`: how many ballots make a win, in a view of n; n + 1 is all-ack."""

    name = "toto"

    def __init__(self, setup: Setup, quorum: Callable[[int], int], strict: bool = True) -> None:
        self.sender = Sender(setup, (Service.AGREED, Service.SAFE), self._unsettled, carry=self._carry)
        self.quorum, self.strict = quorum, strict
        self.ack_ns, self.stagger_ns = max(1, setup.timeout_ns // 500), max(1, 3 * setup.timeout_ns // 1000)
        self.me = setup.identity.me
        self.armed = False  # the timer
        self._reset((self.me,))

    def _reset(self, members: tuple[MemberId, ...]) -> None:
        """All that belongs to one view."""
        self.members = members
        self.rank_of = {member: rank for rank, member in enumerate(members)}
        self.rank = self.rank_of[self.me]
        self.ballots = Ballots(len(members), self.quorum(len(members)), self.strict)
        self.have = [0] * len(members)  # the newest message of each
        self.pending: dict[Key, Pending] = {}  # without a place in the order
        self.causal: list[tuple[Vector, Frame]] = []  # B2
        self.line: deque[tuple[Key, Frame, int]] = deque()  # in their order, behind a safe one that is not safe yet
        self.owes: Nanoseconds | None = None  # since when a safe frame waits for a message of mine
        self.since: Nanoseconds | None = None  # when it began that something waits for a message of mine
        self.patience = self.ack_ns + self.rank * self.stagger_ns
        self.frozen = False

    # ----------------------------------------------------------------------------------------------------- sending

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        return self.sender.down(now, event)

    def _carry(self, frame: Frame) -> list[Action]:
        return [self.sender.multicast(Sent(frame))]

    # --------------------------------------------------------------------------------------------------- receiving

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Received:
            return self._receive(now, event)  # type: ignore[arg-type]
        if kind is Crash:
            self.ballots.crash(self.rank_of[event.member])  # type: ignore[attr-defined]
            return self._deliver([])
        if kind is Flush:
            return [*self._flush(), Up(event)]
        if kind is Frozen:
            self.frozen = True
        elif kind is ViewChange and event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
            self._reset(event.view.members)  # type: ignore[attr-defined]
            return [*self._disarm(), *self.sender.up(now, event)]
        return self.sender.up(now, event)

    def _receive(self, now: Nanoseconds, event: Received) -> list[Action]:
        """A message enters.  One whose frame is another member's is a vote like any other: all see it alike."""
        rank, seq, vec = self.rank_of[event.sender], event.seq, event.vec
        frame: Frame | None = getattr(event.body, "frame", None)
        out: list[Action] = []
        agreed = False
        if frame is not None and frame.sender != event.sender:
            out.append(dropped("origin", member=event.sender))
        elif frame is not None:
            if not event.told:
                out.append(Receive(frame))
            agreed = frame.service != CAUSAL
            if agreed:
                self.pending[rank, seq] = Pending(frame, vec, 1 + sum(map(gt, self.have, vec)), now)
            else:
                self.causal.append((vec, frame))
        self.have[rank] = seq
        if rank == self.rank:
            self.owes = None
        elif self.owes is None and agreed and frame.service == SAFE:  # type: ignore[union-attr]
            self.owes = now
        before = self.ballots.activations
        if self.ballots.insert(rank, seq, vec, agreed):
            self._deliver(out)
            if self.ballots.activations != before:
                self.since = None  # other candidates: it begins anew
        elif self.causal or self.line:
            self._release()
            self._hand_up(out)
        self._watch(now, out)
        return out + self.sender.settle(now) if self.sender.leaving else out

    def _deliver(self, out: list[Action]) -> list[Action]:
        """Everything that has got its place in the order."""
        ballots, have = self.ballots, self.have
        while keys := ballots.activate():
            for key in keys:
                frame, vec, omega, _ = self.pending.pop(key)
                tau = 1 + sum(map(gt, have, vec)) - (have[key[0]] > key[1])
                out.append(Note("index", {"tau": tau, "omega": omega}))
                self.line.append((key, frame, ballots.activations))
            if ballots.beaten:
                out.append(Note("beaten", {"candidates": ballots.beaten}))
            self._release()
        self._hand_up(out)
        return out

    def _release(self) -> None:
        """Frames that are not ordered, behind what they follow."""
        if self.causal:
            waiting = []
            for vec, frame in self.causal:
                if self.ballots.pending_in(vec):
                    waiting.append((vec, frame))
                else:
                    self.line.append(((0, 0), frame, 0))
            self.causal = waiting

    def _hand_up(self, out: list[Action]) -> None:
        """The line moves up to the first safe frame that is not safe."""
        line, ballots = self.line, self.ballots
        while line:
            key, frame, activation = line[0]
            if frame.service == SAFE and not ballots.held_by_all(*key):
                return
            line.popleft()
            out.append(Up(Ordered(frame, activation, key[0] + 1)))

    # ------------------------------------------------------------------------------------------------------- votes

    def _watch(self, now: Nanoseconds, out: list[Action]) -> None:
        """See to the timer; one that is set is left alone, and looks again when it is due."""
        lacks = self.ballots.lacks(self.rank)
        if not lacks and self.owes is None:
            self.since = None
        elif self.since is None:
            self.since = now if self.owes is None else self.owes
            if lacks:  # since the first of the candidates came, all of which are others'
                head = self.ballots.head
                self.since = min(self.since, *[self.pending[c, head[c]].came for c in self.ballots.candidates])
            if not self.armed and not self.frozen:
                self.armed = True
                out.append(SetTimer(ACK, max(now, self.since + self.patience)))

    def _disarm(self) -> list[Action]:
        armed, self.armed = self.armed, False
        return [CancelTimer(ACK)] if armed else []

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == LEAVE:
            return self.sender.timer(now)
        assert name == ACK
        self.armed = False
        if self.since is None or self.frozen:
            return []
        if now < self.since + self.patience:
            self.armed = True
            return [SetTimer(ACK, self.since + self.patience)]
        return [Note("null"), self.sender.multicast(Null())]

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        return self.sender.settle(now) if self.sender.leaving else []

    # ------------------------------------------------------------------------------------------------ view changes

    def _flush(self) -> list[Action]:
        """The view is over: with everybody's ballot here, given or empty, all that is pending gets its place."""
        out: list[Action] = []
        if self.pending or self.line:
            out.append(Note("closing", {"pending": len(self.pending), "unsafe": len(self.line)}))
        self.ballots.close()
        self._deliver(out)
        for key in sorted(self.pending):  # only what a liar made follow itself, and the same at all
            out.append(dropped("vector", member=self.members[key[0]]))
            self.line.append((key, self.pending.pop(key).frame, 0))
        out += [Up(Ordered(frame, activation, key[0] + 1)) for key, frame, activation in self.line]
        self.line.clear()
        return out

    def _unsettled(self) -> Iterator[Frame]:
        """Own frames that have not gone up."""
        yield from (frame for _, frame, _ in self.line if frame.sender == self.me)
        yield from (each.frame for (rank, _), each in self.pending.items() if rank == self.rank)

    def status(self) -> dict[str, Any]:
        ballots, waits = self.ballots, self.sender.waits()
        if ballots.candidates:
            silent = [member for rank, member in enumerate(self.members) if not ballots.voted >> rank & 1]
            waits = f"votes of members {silent}"
        elif self.line:
            key = self.line[0][0]
            silent = [member for rank, member in enumerate(self.members) if ballots.last[rank][key[0]] < key[1]]
            waits = f"messages of members {silent}, to know a frame safe"
        elif self.sender:
            waits = "the window of the layer below"
        return {
            "quorum": ballots.quorum,
            "candidates": {self.members[rank]: ballots.head[rank] for rank in sorted(ballots.candidates)},
            "undelivered": len(self.pending),
            "unsafe": len(self.line),
            "sender": self.sender.status(),
            "queues": {
                "outbox": self.sender.outbox.waiting(),
                "undelivered": len(self.pending),
                "unsafe": len(self.line),
            },
            "waits": waits,
        }
