"""One process of the family in one view: tickets, the order they make, and roles that change within that order.

Paper: L. Rodrigues, H. Fonseca, P. Verissimo, "A dynamic hybrid protocol for total order in large-scale systems",
sections 4 and 5, figure 4.  An *active* process gives tickets to its own messages and to those of the *passive* ones
that chose it as their sequencer; messages are delivered by (number, issuer) of their tickets, each as soon as no active
process can give a smaller number any more.  Whoever changes its role says so in a message of its own, and its role is
another from the place of that message in the order on, for everybody.  All active: the symmetric protocol.  One: the
token site.  Names follow the paper: c, l, Q, UT, LT, S, rn; `own`, `hi` and `done` are what it leaves out.

Differs from figure 4 (the errata of docs/protocols/hybrid.md):
  H1  One ticket at a time; a role change takes effect before the next ticket is looked at.
  H2  A message is ticketed once: tickets received and undelivered count, not only those waiting to be sent.
  H3  A ticket of a delivered message is dropped, it would block the head for ever.
  H4  An active process delivers nothing beyond an own ticket that it has not yet received back.
  H5  Only those whose sequencer leaves reassign their messages, and never who is itself leaving.
  H6  A change of sequencer with nothing outstanding is over at once.
  H8  Who is active already is not made so again: its role number stays.
  H11 Who becomes active gives tickets to its old messages before new ones leave.
  H13 The counters c, l and done, which figure 4 forgets to move.
  H14 Nulls carry tickets and promises of a process that has nothing to send.
The owner says when a null is due, and takes care of views: the drain of `close` (the product's), or carry.py (the
paper's).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Any

from ordercast.contract import Action, Body, Note, Ordered, Up
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.packets import TICKETS_MAX, Null, Reassign, Role, Sent, Sequencer, Ticket
from ordercast.types import Frame, MemberId, Nanoseconds

ACTIVE, PASSIVE, CHGSEQ, TOACTIVE, TOPASSIVE = "active", "passive", "chgseq", "toactive", "topassive"
LEANS = (PASSIVE, CHGSEQ, TOACTIVE)  # on a sequencer
Mid = tuple[MemberId, int]  # sender, c
Held = Frame | Role


class Process:
    """`say` makes an action of a body; `resume` gives the actions that send what waited while the role was changing."""

    riding_max = 2**30  # tickets that a message may carry beside its own; more go before it
    together_max = TICKETS_MAX  # tickets of one null
    null_at_once = True  # of one that becomes active

    def __init__(
        self, me: MemberId, numbers: Lamport, say: Callable[[Body], Action], resume: Callable[[], list[Action]]
    ) -> None:
        self.me, self.numbers, self.say, self.resume = me, numbers, say, resume
        self.now: Nanoseconds = 0  # of the input that is being handled
        self.distance: Mapping[MemberId, float] = {}  # as far as known
        self.rn: dict[MemberId, int] = {}  # role number of each member
        self.actives: frozenset[MemberId] = frozenset()
        self.enter((), {}, ())

    def enter(self, members: Iterable[MemberId], rn: dict[MemberId, int], actives: Iterable[MemberId]) -> None:
        """A view begins with these roles; everything starts anew but the numbers."""
        self.rn, self.actives = rn, frozenset(actives)
        self.c = self.l = 0  # last own message; the last one delivered
        self.done: dict[MemberId, int] = dict.fromkeys(members, 0)  # last delivered c of each sender
        self.hi = self.done.copy()  # largest number seen of each, of a ticket or a promise
        self.Q: dict[Mid, Held] = {}  # received, undelivered
        self.UT: list[tuple[int, MemberId, MemberId, int]] = []  # received tickets, a heap: number, issuer, sender, c
        self.LT: list[Ticket] = []  # own tickets not yet multicast
        self.own: deque[int] = deque()  # own numbers issued and not yet received back
        self.mine: dict[Mid, int] = {}  # of Q, without a ticket, assigned to me: the role number meant
        self.early: set[Mid] = set()  # ticketed, not in Q; never on a causal layer
        self.seen = self.promised = 0  # the largest number of a ticket here; my last promise
        self.quiet = False  # the view ends: nothing is said
        self.state = ACTIVE if self.me in self.actives else PASSIVE
        self.S: Sequencer = self._closest()

    @property
    def role(self) -> Sequencer:
        return self.me, self.rn.get(self.me, 0)

    @property
    def steady(self) -> bool:
        """New messages may leave."""
        return self.state is ACTIVE or self.state is PASSIVE

    def _closest(self) -> Sequencer:
        """My sequencer: myself, or the closest active process."""
        if self.state is ACTIVE:
            return self.role
        distance = self.distance
        others = [(distance.get(q, inf), q) for q in self.actives if q != self.me]
        pid = min(others)[1] if others else self.me
        return pid, self.rn.get(pid, 0)

    # ------------------------------------------------------------------------------------------------------- sending

    def send(self, frame: Any) -> list[Action]:
        """An own message leaves."""
        assert self.steady, self.state
        if self.state is PASSIVE:
            self.c += 1
            return [self.say(Sent(self.c, self.S, frame))]
        out = self.null() if len(self.LT) >= self.riding_max else []
        self.c += 1
        self._issue(self.me, self.c)
        out.append(self.say(Sent(self.c, self.S, frame, self._all_tickets(), self.promised)))
        return out

    def null(self) -> list[Action]:
        """Tickets that wait, and a promise, without a message; of an active process only."""
        assert self.state is ACTIVE, self.state
        out: list[Action] = []
        while len(self.LT) > self.together_max:
            some, self.LT = tuple(self.LT[: self.together_max]), self.LT[self.together_max :]
            self.promised = self.LT[0][0] - 1
            out.append(self.say(Null(some, self.promised)))
        self.numbers.tick(self.now)
        out.append(Note("null", {"tickets": len(self.LT)}))
        out.append(self.say(Null(self._all_tickets(), self.promised)))
        return out

    def _issue(self, sender: MemberId, c: int) -> None:
        number = self.numbers.tick(self.now)
        self.LT.append((number, sender, c))
        self.own.append(number)

    def _issue_all(self) -> None:
        """Tickets for every message that is assigned to me in my present role and has none (H2)."""
        rn = self.rn[self.me]
        for mid in sorted(mid for mid, meant in self.mine.items() if meant == rn):
            del self.mine[mid]
            self._issue(*mid)

    def _all_tickets(self) -> tuple[Ticket, ...]:
        """All that wait leave, and the promise is what was issued last."""
        tickets, self.LT, self.promised = tuple(self.LT), [], self.numbers.t
        return tickets

    # ----------------------------------------------------------------------------------------------------- receiving

    def receive(self, j: MemberId, body: Any) -> list[Action]:
        """A multicast of j; own ones come back, too."""
        kind = type(body)
        if kind is Sent:
            self._hold(j, body.c, body.frame, body.sequencer)
        elif kind is Role:
            self._hold(j, body.c, body, body.sequencer)
        elif kind is Reassign:
            self._reassigned(j, body)
        if kind is not Reassign:
            if body.tickets:
                self._take(j, body.tickets)
            promise = body.promise
            if promise:
                if promise > self.hi[j]:
                    self.hi[j] = promise
                if j != self.me:
                    self.numbers.hear(self.now, promise, j)
        out: list[Action] = []
        if self.UT:
            self._drain(out)
        if self.mine and self.state is ACTIVE:
            self._issue_all()
        return out

    def _hold(self, sender: MemberId, c: int, item: Held, sequencer: Sequencer) -> None:
        self.Q[sender, c] = item
        if self.early and (sender, c) in self.early:
            self.early.discard((sender, c))
        elif sequencer[0] == self.me and sender != self.me:
            self.mine[sender, c] = sequencer[1]

    def _reassigned(self, j: MemberId, body: Reassign) -> None:
        pid, rn = body.sequencer
        ticketed = {(sender, c) for _, _, sender, c in self.UT} | {(sender, c) for _, sender, c in self.LT}
        for c in range(max(body.first, self.done[j] + 1), body.last + 1):
            self.mine.pop((j, c), None)
            if pid == self.me and (j, c) in self.Q and (j, c) not in ticketed:
                self.mine[j, c] = rn

    def _take(self, issuer: MemberId, tickets: Iterable[Ticket]) -> None:
        done, pending, mine, here = self.done, self.UT, self.mine, self.rn
        number = 0
        for number, sender, c in tickets:
            if c <= done.get(sender, -1):  # H3
                continue
            if sender not in here and all((sender, c) != ticket[2:] for ticket in pending):  # H9: it left, unknown
                continue
            heappush(pending, (number, issuer, sender, c))
            if mine:
                mine.pop((sender, c), None)
            if (sender, c) not in self.Q:
                self.early.add((sender, c))
        if number > self.seen:
            self.seen = number
        if number > self.hi[issuer]:
            self.hi[issuer] = number
        if issuer == self.me:
            own = self.own
            while own and own[0] <= number:
                own.popleft()
        else:
            self.numbers.hear(self.now, number, issuer)

    # -------------------------------------------------------------------------------------------------------- the order

    def _floor(self) -> float:
        """No other active process gives a ticket of this number or less any more."""
        hi, me, floor = self.hi, self.me, inf
        for q in self.actives:
            if q != me and hi[q] < floor:
                floor = hi[q]
        return floor

    def _drain(self, out: list[Action]) -> None:
        """Deliver by smallest ticket while its message is here and nobody, not I either (H4), gives a smaller one."""
        pending, queue, done, own = self.UT, self.Q, self.done, self.own
        floor = self._floor()
        while pending:
            number, issuer, sender, c = pending[0]
            if c <= done.get(sender, -1):
                heappop(pending)
                continue
            if number > floor or (own and own[0] <= number) or (sender, c) not in queue:
                return
            heappop(pending)
            if self._deliver(sender, c, issuer, number, out):
                floor = self._floor()  # H1

    def _deliver(self, sender: MemberId, c: int, issuer: MemberId, number: int, out: list[Action]) -> bool:
        """The next message of the order; true if it changed a role."""
        item = self.Q.pop((sender, c))
        self.done[sender] = c
        if self.mine:
            self.mine.pop((sender, c), None)
        if sender == self.me:
            self.l = c
        if type(item) is not Role:
            out.append(Up(Ordered(item, issuer, number)))  # type: ignore[arg-type]
            if self.state is CHGSEQ and sender == self.me and self.l == self.c:
                self._chosen(out)
            return False
        if sender not in self.rn:  # it left
            return False
        if item.active:
            self._now_active(sender, out)
        else:
            self._now_passive(sender, out)
        return True

    # ------------------------------------------------------------------------------------------------------------ roles

    def _now_active(self, j: MemberId, out: list[Action]) -> None:
        if j not in self.actives:  # H8
            self.actives |= {j}
            self.rn[j] += 1
        if j == self.me and self.state is TOACTIVE:
            self._be_active(out)
            if self.null_at_once and not self.quiet:
                out += self.null()
            out += self.resume()

    def _be_active(self, out: list[Action]) -> None:
        self.state = ACTIVE
        self.S = self.role
        out.append(self.mode())
        self._issue_all()

    def _now_passive(self, j: MemberId, out: list[Action]) -> None:
        """Unless nobody else is active: then all stays as it was."""
        if self.actives == {j}:
            out.append(Note("role kept", {"member": j}))
            if j == self.me:
                self._be_active(out)
                out += self.resume()
            return
        self.actives -= {j}
        self.rn[j] += 1
        if j == self.me:
            self.state = PASSIVE
            self.S = self._closest()
            out.append(self.mode())
            out += self.resume()
        elif self.S[0] == j and self.state in LEANS:  # H5
            self.reassign(out)

    def reassign(self, out: list[Action]) -> None:
        """Another sequencer for all that is outstanding."""
        self.S = self._closest()
        if self.l < self.c and not self.quiet:
            out.append(Note("reassign", {"to": self.S[0], "messages": self.c - self.l}))
            out.append(self.say(Reassign(self.l + 1, self.c, self.S)))

    def mode(self) -> Note:
        return Note("mode", {"role": self.state, "number": self.rn[self.me]})

    def go_passive(self) -> list[Action]:
        assert self.state is ACTIVE, self.state
        self.state = TOPASSIVE
        self.c += 1
        self._issue(self.me, self.c)
        return [self.say(Role(self.c, self.S, False, self._all_tickets(), self.promised))]

    def go_active(self) -> list[Action]:
        assert self.state is PASSIVE, self.state
        self.state = TOACTIVE
        self.c += 1
        return [self.say(Role(self.c, self.S, True))]

    def change_sequencer(self) -> list[Action]:
        """To the closest; what is outstanding is ordered by the old one first."""
        assert self.state is PASSIVE, self.state
        self.state = CHGSEQ
        out: list[Action] = []
        if self.l == self.c:  # H6
            self._chosen(out)
        return out

    def _chosen(self, out: list[Action]) -> None:
        self.state = PASSIVE
        self.S = self._closest()
        out.append(Note("sequencer", {"member": self.S[0]}))
        out += self.resume()

    # ------------------------------------------------------------------------------------------------------- view's end

    def close(self, gone: Iterable[MemberId]) -> list[Action]:
        """Drain: tickets in their order, then what has none, by sender, of those who come along; roles take effect."""
        self.quiet = True
        out: list[Action] = []
        for number, issuer, sender, c in sorted(self.UT):
            if (sender, c) in self.Q:
                self._deliver(sender, c, issuer, number, out)
        if self.Q or self.LT:
            out.append(Note("drain", {"unticketed": len(self.Q), "unsent": len(self.LT)}))
        for sender, c in sorted(mid for mid in self.Q if mid[0] not in gone):
            self._deliver(sender, c, 0, self.numbers.tick(self.now), out)
        return out
