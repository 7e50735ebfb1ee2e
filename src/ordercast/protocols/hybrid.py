"""Token-site order: one active process, the sequencer, gives every frame a ticket; all deliver by ticket number.

Paper: L. Rodrigues, H. Fonseca, P. Verissimo, "A dynamic hybrid protocol for total order in large-scale systems",
section 3 (token-site) and figure 4 (data, tickets, delivery).  The rules below are those of the hybrid protocol with
fixed roles; a process is *active* (issues tickets) or *passive* (its frames are ticketed by its sequencer).
Provides: agreed.  Needs below: the view-synchronous layer.

At a view change the order is *drained*: first what has a ticket, by number, then the unticketed frames of those who
come along, by sender; unticketed frames of the departed, and tickets that were not yet sent, are discarded.  All this
follows from what was agreed upon, so nobody has to contribute anything.  In the next view the sequencer stays if
everybody comes from one view that it was in; else it is the highest id: who comes from elsewhere knows no roles.

Differs from the paper (numbers of the errata in docs/protocols/token_site.md):
  H2  A frame is ticketed once: the test covers tickets received and undelivered, not only those waiting to be sent.
  H3  A ticket of a delivered frame is dropped, it would block the head for ever.
  H4  An active process delivers nothing beyond an own ticket that it has not yet received back.
  H13 The counters c and done, which figure 4 forgets to move.
  H14 Tickets leave at once in a packet of their own when the input is drained (option tickets_at_once), else after
      T_null of silence; an idle sequencer never holds the group up.
  HL  The paper carries tickets over a view change; here no frame is delivered in another view than it was sent in.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Annotated, Any

from msgspec import Meta, Struct

from ordercast.contract import (
    Action,
    Body,
    CancelTimer,
    Crash,
    Down,
    Event,
    Flush,
    Layer,
    Leave,
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
from ordercast.errors import WireError
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.limits import PENDING_FRAMES_MAX
from ordercast.membership import PRIMARY_PROBES
from ordercast.membership import PROBES as MEMBERSHIP_PROBES
from ordercast.registry import ProtocolInfo
from ordercast.seam import Seam
from ordercast.sender import LEAVE, Sender
from ordercast.stack import Stack, chain
from ordercast.transis import PROBES as LINK_PROBES
from ordercast.transis.link import Link
from ordercast.transis.packets import packets
from ordercast.types import POLICIES, U32, U63, Frame, MemberId, Nanoseconds, NetId, Service, View, ViewKind

TICKETS_MAX = 1_024  # in one packet of their own
TICKETS_RIDING_MAX = 4  # with a frame, so that the packet fits a datagram
TICKETS_HELD_MAX = 4 * PENDING_FRAMES_MAX  # received, their frames not delivered
NUMBER_MAX = 2**62  # of a ticket

Ticket = tuple[U63, U32, U63]  # number, sender and c of the frame; its issuer is the packet's sender
Tickets = Annotated[tuple[Ticket, ...], Meta(max_length=TICKETS_MAX)]


class Sent(Body, frozen=True, gc=False, tag=1):
    """A frame, number c of its sender in this view, to be ticketed by `sequencer` = (pid, role number)."""

    c: U63
    sequencer: tuple[U32, U32]
    frame: Frame
    tickets: Tickets = ()
    promise: U63 = 0

    def check(self) -> None:
        if self.c == 0:
            raise WireError("counter", "c counts from 1")
        self.frame.check()


class Null(Body, frozen=True, gc=False, tag=2):
    """Tickets and a promise without a frame."""

    tickets: Tickets
    promise: U63


class HybridOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the token-site protocol."""

    tickets_at_once: bool = True  # else they ride on the sequencer's next frame, or go after T_null
    crash_hint: bool = True  # believe a port that answers that nobody is there; false: only silence tells


class TokenSite(Layer):
    """One process.  Names follow the paper: c, t, Q, UT, LT, hi."""

    name = "hybrid"

    def __init__(self, setup: Setup) -> None:
        identity, self.options = setup.identity, setup.options
        self.sender = Sender(setup, (Service.AGREED,), self._unsettled, carry=self._carry, go=self._go)
        self.null_ns = max(1, setup.timeout_ns // 50)  # T_null
        self.me = identity.me
        self.active: MemberId | None = None  # the sequencer; the only active process
        self.sequencer = (0, 0)
        self.t = 0  # ticket clock; kept over views
        self.null_set = False
        self._reset(())

    def _reset(self, members: tuple[MemberId, ...]) -> None:
        """All that belongs to one view."""
        self.c = 0  # last own frame
        self.done: dict[MemberId, int] = dict.fromkeys(members, 0)  # last delivered c of each sender
        self.heard = self.done.copy()  # last received c of each sender
        self.ticketed = self.done.copy()  # highest c of each sender that has a ticket
        self.last = 0  # number of the last ticket received
        self.Q: dict[tuple[MemberId, int], Frame] = {}  # received, undelivered
        self.UT: list[tuple[int, MemberId, MemberId, int]] = []  # received tickets: number, issuer, sender, c
        self.LT: list[Ticket] = []  # own tickets not yet multicast
        self.own: list[int] = []  # own numbers issued and not yet received back, ascending
        self.gone: set[MemberId] = set()  # of this view, who does not come along

    @property
    def is_active(self) -> bool:
        return self.me == self.active

    # ----------------------------------------------------------------------------------------------------- sending

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        return self.sender.down(now, event)

    def _carry(self, frame: Frame) -> list[Action]:
        """An own frame leaves; the sequencer's with its ticket."""
        self.c += 1
        if not self.is_active:
            return [self.sender.multicast(Sent(self.c, self.sequencer, frame))]
        out = self._null() if len(self.LT) >= TICKETS_RIDING_MAX else []
        self._issue(self.me, self.c)
        out.append(self.sender.multicast(Sent(self.c, self.sequencer, frame, self._outgoing(), self.t)))
        return out

    def _issue(self, sender: MemberId, c: int) -> None:
        self.t += 1
        self.LT.append((self.t, sender, c))
        self.own.append(self.t)

    def _outgoing(self) -> tuple[Ticket, ...]:
        tickets = tuple(self.LT[:TICKETS_MAX])
        del self.LT[:TICKETS_MAX]
        return tickets

    def _null(self) -> list[Action]:
        out: list[Action] = []
        while self.LT:
            out.append(Note("null", {"tickets": len(self.LT)}))
            out.append(self.sender.multicast(Null(self._outgoing(), self.t)))
        return out

    # --------------------------------------------------------------------------------------------------- receiving

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Received:
            return self._receive(now, event)  # type: ignore[arg-type]
        if kind is Crash:
            self.gone.add(event.member)  # type: ignore[attr-defined]
            return []
        if kind is Flush:
            return [*self._flush(), Up(event)]
        if kind is ViewChange and event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
            return self._enter(event.view) + self.sender.up(now, event)  # type: ignore[attr-defined]
        return self.sender.up(now, event)

    def _receive(self, now: Nanoseconds, event: Received) -> list[Action]:
        sender, body = event.sender, event.body
        why = self._doubt(sender, body)  # type: ignore[arg-type]
        if why:
            return [dropped(why, member=sender)]
        out: list[Action] = []
        if sender == self.active:  # nobody else issues tickets, or has a clock that counts
            if body.tickets:  # type: ignore[attr-defined]
                self._take_tickets(sender, body.tickets)  # type: ignore[attr-defined]
            self.t = max(self.t, body.promise)  # type: ignore[attr-defined]
        if type(body) is Sent:
            if not event.told:
                out.append(Receive(body.frame))
            self.Q[sender, body.c] = body.frame
            self.heard[sender] = body.c
            if self.is_active and sender != self.me and body.sequencer == self.sequencer:
                self._issue(sender, body.c)
                if not self.options.tickets_at_once and not self.null_set:
                    self.null_set = True
                    out.append(SetTimer("null", now + self.null_ns))
        self._drain(out)
        if self.sender.leaving:
            out += self.sender.settle(now)
        return out

    def _doubt(self, sender: MemberId, body: Sent | Null) -> str:
        """Why what this member is said to have sent cannot be true, or must not be kept; empty: it may be."""
        if sender == self.me:
            return ""
        if (body.tickets or body.promise) and (sender != self.active or not self._tickets_follow(body)):
            return "tickets"
        if type(body) is Sent:
            if body.c != self.heard[sender] + 1:
                return "counter"
            if body.frame.sender != sender:
                return "origin"
            if body.sequencer != self.sequencer:
                return "sequencer"
            if body.c - self.done[sender] > PENDING_FRAMES_MAX:
                return "unordered"
        return ""

    def _tickets_follow(self, body: Sent | Null) -> bool:
        """Numbers ascend; the frames of each sender get theirs in order."""
        last, ticketed = self.last, self.ticketed.copy()
        for number, sender, c in body.tickets:
            if number <= last or c > ticketed.get(sender, -2) + 1:
                return False
            last, ticketed[sender] = number, max(c, ticketed[sender])
        return max(last, body.promise) <= NUMBER_MAX and len(self.UT) + len(body.tickets) <= TICKETS_HELD_MAX

    def _take_tickets(self, issuer: MemberId, tickets: tuple[Ticket, ...]) -> None:
        done, pending, ticketed = self.done, self.UT, self.ticketed
        for number, sender, c in tickets:
            if c > done[sender]:  # H3
                heappush(pending, (number, issuer, sender, c))
            if c > ticketed[sender]:
                ticketed[sender] = c
        last = self.last = tickets[-1][0]
        self.t = max(self.t, last)
        if issuer == self.me:
            while self.own and self.own[0] <= last:
                del self.own[0]

    def _drain(self, out: list[Action]) -> None:
        """Deliver by smallest ticket while its frame is here; H4: never beyond an own ticket still on its way."""
        pending, queue, done, own = self.UT, self.Q, self.done, self.own
        while pending:
            number, issuer, sender, c = pending[0]
            if c <= done[sender]:
                heappop(pending)
                continue
            frame = queue.get((sender, c))
            if frame is None or (own and own[0] <= number):
                return
            heappop(pending)
            del queue[sender, c]
            assert done[sender] == c - 1, "the layer below broke FIFO"
            done[sender] = c
            out.append(Up(Ordered(frame, issuer, number)))

    # ------------------------------------------------------------------------------------------------ view changes

    def _flush(self) -> list[Action]:
        """Drain: tickets in their order, then what has none, by sender, of those who come along."""
        out: list[Action] = []
        queue, done = self.Q, self.done
        for number, issuer, sender, c in sorted(self.UT):
            frame = queue.pop((sender, c), None)
            if frame is not None:
                done[sender] = c
                out.append(Up(Ordered(frame, issuer, number)))
        if queue or self.LT:
            out.append(Note("drain", {"unticketed": len(queue), "unsent": len(self.LT)}))
        for sender, c in sorted(queue):
            if sender not in self.gone:
                self.t += 1
                done[sender] = c
                out.append(Up(Ordered(queue[sender, c], 0, self.t)))
        self.Q, self.UT, self.LT, self.own = {}, [], [], []
        return out

    def _enter(self, view: View) -> list[Action]:
        """Everything starts anew but the ticket clock; the sequencer stays if everybody knows it and it is here.
        A clock that no honest sequencer reaches starts anew, too: else its next number might be beyond all numbers."""
        self.t = self.t if self.t < NUMBER_MAX // 2 else 0
        if self.active not in view.members or len(view.components) > 1:
            self.active = view.members[-1]
        self.sequencer = (self.active, 0)
        self._reset(view.members)
        if not self.null_set:
            return []
        self.null_set = False
        return [CancelTimer("null")]

    # ---------------------------------------------------------------------------------------------- pauses, timers

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        out = self._null() if self.LT and self.options.tickets_at_once else []
        return out + self.sender.settle(now) if self.sender.leaving else out

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == LEAVE:
            return self.sender.timer(now)
        assert name == "null"
        self.null_set = False
        return self._null()

    def _unsettled(self) -> Iterator[Frame]:
        """Own frames without a place in the order."""
        return (frame for (sender, _), frame in self.Q.items() if sender == self.me)

    def _go(self, now: Nanoseconds, until: Nanoseconds) -> list[Action]:
        """Not without the tickets of what was received, which only the sequencer can give."""
        return [*self._null(), Down(Leave(until))]

    def status(self) -> dict[str, Any]:
        waits = self.sender.waits()
        if self.UT and (self.UT[0][2], self.UT[0][3]) not in self.Q:
            waits = f"frame {self.UT[0][3]} of member {self.UT[0][2]}, whose ticket is here"
        elif self.Q:
            waits = f"tickets of the sequencer, member {self.active}"
        elif self.sender:
            waits = "the window of the layer below"
        return {
            "role": "active" if self.is_active else "passive",
            "sequencer": self.active,
            "undelivered": len(self.Q),
            "tickets": len(self.UT),
            "tickets_to_send": len(self.LT),
            "sender": self.sender.status(),
            "queues": {
                "outbox": self.sender.outbox.waiting(), "undelivered": len(self.Q), "tickets": len(self.UT),
                "tickets_to_send": len(self.LT),
            },
            "waits": waits,
        }  # fmt: skip


def token_site(setup: Setup) -> Stack:
    """Process groups over framing over token-site over the view-synchronous layer."""
    link = Link(setup, crash_hint=setup.options.crash_hint)
    return chain(Groups(setup.identity.me), Framing(), Seam(), TokenSite(setup), link)


_PAPER = "A dynamic hybrid protocol for total order in large-scale systems (Rodrigues, Fonseca, Verissimo)"
PROTOCOLS = {
    "token_site": ProtocolInfo(
        name="token_site",
        summary="One sequencer numbers all frames; the simplest total order, in views that change.",
        paper=_PAPER,
        factory=token_site,
        packets=packets(Sent | Null),
        provides=(Service.AGREED,),
        promises={
            "agreed": ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16",
                       "S17", "S19", "S21", "S22", "L1", "L2", "L3", "L4", "L6", "L7", "L8", "L12", "L13")
        },
        survives=frozenset({"loss", "duplication", "reordering", "delay", "clog", "corruption", "version", "replay",
                            "partition", "crash", "pause", "leave", "slow", "drift", "clock", "disk", "overload",
                            "permanent"}),
        needs=("the view-synchronous layer",),
        changes_views=True,
        partitions=POLICIES,
        judges_lives=True,
        options=HybridOptions,
        measures=("t_loss", "install"),
        probes=("null", "drain", "group state", "group state again", *LINK_PROBES, *MEMBERSHIP_PROBES, *PRIMARY_PROBES),
    )
}  # fmt: skip
