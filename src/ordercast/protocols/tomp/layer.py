"""ABCAST and TOMP: a total order by stamps that every member proposes and the source of a frame decides.

Paper: M. Dasser, "TOMP: A Total Ordering Multicast Protocol"; without anticipation it is the ABCAST protocol of its
section 2.1, by D. Skeen (Birman, Joseph 1987).  Provides: agreed.  Needs below: the view-synchronous layer.

The source multicasts a frame; everybody stamps it and answers the source; the source takes the greatest stamp and
multicasts it.  Frames are delivered by final stamps, as soon as nothing that is undecided can get a lesser one.  The
answers of TOMP also say which frame of each member is expected next; so a validation tells of other frames, too, what
they get at least (stamps.py).  At a view change what is undecided is finished by all who go on (closing.py).

Differs from the paper (numbers of the errata in docs/protocols/tomp.md):
  E1  The clock also jumps to a final stamp.  By the text it counts receptions only; then a member that delivered m can
      propose less than m's stamp for a later frame, and members disagree.
  E2  `max_next_ts` is a lower bound: the maximum among those who hold the minimum id (the formulas are lost).
  E8  Of equal stamps the decided one goes first: finals are unique, so the undecided one can only end up behind it.
  D1  Answers and validations wait until the input is drained; those for one member, and all validations, share a
      packet.  The snapshot in an answer is that of its stamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct

from ordercast.contract import (
    Action,
    Body,
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
    UnicastReceived,
    Up,
    ViewChange,
    Window,
    dropped,
)
from ordercast.errors import WireError
from ordercast.limits import MEMBERS_MAX
from ordercast.protocols.tomp.closing import Mid, contribution, flush_keys, in_order, part, read
from ordercast.protocols.tomp.stamps import Book, Stamp, Votes
from ordercast.sender import LEAVE, Sender
from ordercast.types import U32, Frame, MemberId, Nanoseconds, NetId, Service, ViewKind

TOGETHER_MAX = 64  # answers, or validations, in one packet
OWN_MAX = 256  # own frames on their way to delivery; more wait, so that one that stays undecided bounds what piles up
OPEN = "open"  # timer
LEAP_MAX = 2**32  # nobody's clock is so far ahead of another's

Number = Annotated[int, Meta(ge=1, le=2**62)]
WireStamp = tuple[Number, U32]
Numbers = Annotated[tuple[Number, ...], Meta(max_length=MEMBERS_MAX)]


class Sent(Body, frozen=True, gc=False, tag=1):
    """A frame, number n of its sender in this view (3.2.2.1)."""

    n: Number
    frame: Frame

    def check(self) -> None:
        self.frame.check()


class Final(Struct, frozen=True, array_like=True, gc=False):
    """The final stamp of frame n of the packet's sender; the vectors are TOMP's, by rank."""

    n: Number
    stamp: WireStamp
    min_next_mid: Numbers = ()
    max_next_ts: Annotated[tuple[WireStamp, ...], Meta(max_length=MEMBERS_MAX)] = ()


class Validations(Body, frozen=True, gc=False, tag=2):
    """What was decided (3.2.3.1, ts_mi)."""

    finals: Annotated[tuple[Final, ...], Meta(min_length=1, max_length=TOGETHER_MAX)]

    def check(self) -> None:
        for final in self.finals:
            bounds = final.max_next_ts
            if len(bounds) != len(final.min_next_mid):
                raise WireError("vector", "bounds for others than ids")
            if bounds and max(bounds)[0] > final.stamp[0] + 1:
                raise WireError("stamp", "a bound above all that was proposed")


class Ack(Struct, frozen=True, array_like=True, gc=False):
    """The number that the packet's sender gave frame n, and what it expected next of each rank then; TOMP's."""

    n: Number
    number: Number
    next_mid: Numbers = ()


class Acks(Body, frozen=True, gc=False, tag=1):
    """Answers to the source of these frames (3.2.2.2, ack_mi)."""

    acks: Annotated[tuple[Ack, ...], Meta(min_length=1, max_length=TOGETHER_MAX)]


class Held:
    """A received, undelivered frame; when it came, when its final stamp did."""

    __slots__ = ("came", "decided", "frame")

    def __init__(self, frame: Frame, came: Nanoseconds) -> None:
        self.frame, self.came, self.decided = frame, came, came


class Stamping(Layer):
    """One member.  Names follow the paper: next_mid, min_next_mid, max_next_ts; the clock is `book.clock`."""

    name = "stamping"

    def __init__(self, setup: Setup, *, anticipate: bool) -> None:
        self.me, self.anticipate, self.frame_bytes = setup.identity.me, anticipate, setup.frame_bytes
        self.sender = Sender(setup, (Service.AGREED,), self._unsettled, carry=self._carry)
        self._reset((self.me,))

    def _reset(self, members: tuple[MemberId, ...]) -> None:
        """All that belongs to one view."""
        self.members = members
        self.rank_of = {member: rank for rank, member in enumerate(members)}
        self.together = max(1, min(TOGETHER_MAX, self.frame_bytes // (16 + 12 * len(members))))
        self.book = Book(self.me, len(members))
        self.n = self.done = 0  # last own frame that left, that was delivered
        self.takes = 0  # number of the last own frame, as far as the layer below takes it
        self.held: dict[Mid, Held] = {}
        self.votes: dict[int, Votes] = {}  # own frames without a final stamp
        self.acks: dict[MemberId, list[Ack]] = {}  # to be sent
        self.finals: list[Final] = []  # to be sent
        self.last: dict[MemberId, Stamp] = {}  # final stamp of the last frame delivered, by sender
        self.gone: set[MemberId] = set()  # of this view, who does not come along
        self.frozen = False
        self.told: dict[Mid, Stamp] = {}  # finals that came during the install

    # --------------------------------------------------------------------------------------------------------- sending

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        return self.sender.down(now, event)

    def _carry(self, frame: Frame) -> list[Action]:
        self.n += 1
        self.votes[self.n] = Votes(self.members)
        return [self.sender.multicast(Sent(self.n, frame))]

    def _open(self, now: Nanoseconds) -> list[Action]:
        """As many frames as the layer below takes, and no more than `OWN_MAX` that are not delivered."""
        last = min(self.takes, self.done + OWN_MAX)
        return self._say() + self.sender.up(now, Window(max(0, last - self.n)))

    def _say(self) -> list[Action]:
        """The answers and validations that wait."""
        out: list[Action] = []
        step = self.together
        for member, acks in self.acks.items():
            for at in range(0, len(acks), step):
                out.append(self.sender.unicast(member, Acks(tuple(acks[at : at + step]))))
        for at in range(0, len(self.finals), step):
            out.append(self.sender.multicast(Validations(tuple(self.finals[at : at + step]))))
        self.acks, self.finals = {}, []
        return out

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        return self._say() if self.acks or self.finals else []

    # ------------------------------------------------------------------------------------------------------- receiving

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Received:
            out = self._receive(now, event)  # type: ignore[arg-type]
            return out + self.sender.settle(now) if self.sender.leaving else out
        if kind is UnicastReceived:
            return self._acknowledged(event.source, event.body)  # type: ignore[attr-defined]
        if kind is Frozen:
            self.frozen, self.acks, self.finals = True, {}, []  # what was not said has no meaning any more
        elif kind is Crash:
            self.gone.add(event.member)  # type: ignore[attr-defined]
            return []
        elif kind is Flush:
            return self._flush(event)  # type: ignore[arg-type]
        elif kind is Window:
            self.takes = self.n + event.frames  # type: ignore[attr-defined]
            if len(self.members) > 1 or event.frames <= self.sender.window:  # type: ignore[attr-defined]
                return self._open(now)
            return [SetTimer(OPEN, now)]  # alone it is open again at once: a step for each, however much waits
        elif kind is ViewChange and event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
            self._reset(event.view.members)  # type: ignore[attr-defined]
        return self.sender.up(now, event)

    def _receive(self, now: Nanoseconds, event: Received) -> list[Action]:
        sender, body = event.sender, event.body
        if type(body) is not Sent:
            assert type(body) is Validations
            return self._settle(now, sender, body)
        rank, book = self.rank_of[sender], self.book
        why = self._doubt(sender, rank, body)
        if why:
            return [dropped(why, member=sender)]
        self.held[sender, body.n] = Held(body.frame, now)
        came: list[Action] = [] if event.told else [Receive(body.frame)]
        if self.frozen:
            book.next_mid[rank] += 1
            return came
        number = book.propose(rank)
        ack = Ack(body.n, number, tuple(book.next_mid) if self.anticipate else ())
        if sender == self.me:
            self._vote(self.me, ack)
            if len(self.members) == 1:  # nobody has to be told
                alone, self.finals = Validations(tuple(self.finals)), []
                return [*came, *self._settle(now, sender, alone)]
        else:
            self.acks.setdefault(sender, []).append(ack)
        return came

    def _doubt(self, sender: MemberId, rank: int, body: Sent) -> str:
        """Why what this member is said to have sent cannot be true, or must not be kept; empty: it may be."""
        if body.n != self.book.next_mid[rank]:
            return "counter"
        if body.frame.sender != sender:
            return "origin"
        return "unordered" if len(self.book.lines[rank].numbers) >= OWN_MAX else ""

    # ----------------------------------------------------------------------------------------- at the source of a frame

    def _acknowledged(self, source: MemberId, body: Body) -> list[Action]:
        assert type(body) is Acks
        out: list[Action] = []
        expected = len(self.members) if self.anticipate else 0
        for ack in body.acks:
            if ack.n not in self.votes or len(ack.next_mid) != expected or ack.number > self.book.clock + LEAP_MAX:
                out.append(dropped("ack", member=source))
            else:
                self._vote(source, ack)
        return out

    def _vote(self, host: MemberId, ack: Ack) -> None:
        votes = self.votes[ack.n]
        if votes.add(host, ack.number, ack.next_mid):
            del self.votes[ack.n]
            vectors = (tuple(votes.min_next_mid), tuple(votes.max_next_ts))
            self.finals.append(Final(ack.n, votes.final, *vectors))

    # ------------------------------------------------------------------------------------------------------- decisions

    def _settle(self, now: Nanoseconds, sender: MemberId, body: Validations) -> list[Action]:
        """Final stamps take effect, at their source too."""
        out: list[Action] = []
        rank, book, raised = self.rank_of[sender], self.book, False
        for final in body.finals:
            why = self._disbelief(sender, rank, final)
            if why:
                out.append(dropped(why, member=sender))
            elif self.frozen:
                self.told[sender, final.n] = final.stamp
            else:
                self.held[sender, final.n].decided = now
                book.decide(rank, final.n, final.stamp)
                if self.anticipate:
                    raised |= book.anticipate(final.min_next_mid, final.max_next_ts)
        if self.frozen:
            return out
        if raised:
            out.append(Note("anticipate"))
        for stamp, rank, n in book.deliverable():
            sender = self.members[rank]
            held = self.held.pop((sender, n))
            self.last[sender] = stamp
            out.append(Note("order", {"t1_ns": held.decided - held.came, "t2_ns": now - held.decided}))
            out.append(Up(Ordered(held.frame, stamp[1], stamp[0])))
            if sender == self.me:
                self.done = n
        if self.sender and self.sender.window <= 0 < self.takes - self.n and len(self.members) > 1:
            out += self._open(now)
        return out

    def _disbelief(self, sender: MemberId, rank: int, final: Final) -> str:
        """Why a validation cannot be true; empty: it may be.  P12: what was promised of a stamp is not above it."""
        bound = self.book.stamp(rank, final.n)
        if bound is None:
            late = self.frozen and (sender, final.n) in self.held and (sender, final.n) not in self.told
            return "" if late else "final"
        if final.stamp < bound or final.stamp[0] > self.book.clock + LEAP_MAX or final.stamp[1] not in self.rank_of:
            return "stamp"
        return "vector" if len(final.min_next_mid) != (len(self.members) if self.anticipate else 0) else ""

    # ---------------------------------------------------------------------------------------------------- view changes

    def flush_state(self) -> bytes:
        return contribution(self.book, self.flush_state_above())

    def _flush(self, event: Flush) -> list[Action]:
        """Finish what is undecided, deliver everything."""
        together = [member for member in self.members if member not in self.gone]
        told = {p: read(state, self.members) for p, state in zip(together, event.contributions, strict=True)}
        out: list[Action] = [dropped("flush state", member=p) for p, state in told.items() if state is None]
        finals = self.told | {(self.members[rank], n): final for final, rank, n in self.book.ready}
        parts = {p: part(state, self.members, self.held) for p, state in told.items() if state is not None}
        keys = flush_keys(parts, self.held, finals, self.last)
        if len(finals) < len(keys):
            out.append(Note("finish", {"undecided": len(keys) - len(finals), "late": len(self.told)}))
        for mid in in_order(keys, finals):
            number, host = keys[mid]
            out.append(Up(Ordered(self.held[mid].frame, host, number)))
        self.held = {}
        above = tuple(b"" if state is None else state.above for state in told.values())
        return [*out, Up(Flush(above, event.cut))]

    # ------------------------------------------------------------------------------------------------- timers, reports

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == OPEN:
            return [] if self.frozen else self._open(now)
        assert name == LEAVE
        return self.sender.timer(now)

    def _unsettled(self) -> Iterator[Frame]:
        """Own frames without a place in the order."""
        return (held.frame for (sender, _), held in self.held.items() if sender == self.me)

    def status(self) -> dict[str, Any]:
        waits = self.sender.waits()
        missing = sorted(set().union(*(votes.missing for votes in self.votes.values())))
        if missing:
            waits = f"stamps of members {missing} for own frames"
        elif self.held:
            undecided = sorted({self.members[rank] for rank, _, _ in self.book.listed()})
            waits = f"final stamps of frames of members {undecided}"
        elif self.sender:
            waits = "the window of the layer below"
        return {
            "clock": self.book.clock,
            "undelivered": len(self.held),
            "undecided": len(self.book.listed()),
            "to_decide": len(self.votes),
            "sender": self.sender.status(),
            "queues": {
                "outbox": self.sender.outbox.waiting(),
                "undelivered": len(self.held),
                "to_decide": len(self.votes),
            },
            "waits": waits,
        }
