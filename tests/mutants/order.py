"""Variants of the token-site order: the literal readings of its paper, and plain blunders."""

from __future__ import annotations

from heapq import heappop, heappush

from tests.mutants.parts import token_site
from tests.mutants.registry import mutant

from ordercast.contract import Action, Event, Ordered, Originate, Received, Setup, Up, Window
from ordercast.protocols.hybrid import Null, Sent, Ticket, TokenSite
from ordercast.sender import Sender
from ordercast.stack import Stack
from ordercast.types import Frame, MemberId, Nanoseconds, NetId, View

AREA = "hybrid"


@mutant("own_at_multicast", "token_site", AREA, "a sender delivers its own frame when it multicasts it")
def own_at_multicast(setup: Setup) -> Stack:
    class Early(TokenSite):
        def _carry(self, frame: Frame) -> list[Action]:
            return [*super()._carry(frame), Up(Ordered(frame))]

        def _drain(self, out: list[Action]) -> None:
            told: list[Action] = []
            super()._drain(told)
            out += [a for a in told if not (isinstance(a, Up) and a.event.frame.sender == self.me)]  # type: ignore[attr-defined]

    return token_site(setup, order=Early)


class Reissue(TokenSite):
    """H2: on every reception a ticket for each frame that has none waiting to be sent, received ones not looked at."""

    def _receive(self, now: Nanoseconds, event: Received) -> list[Action]:
        out = super()._receive(now, event)
        if self.is_active:
            waiting = {(sender, c) for _, sender, c in self.LT}
            for sender, c in sorted(self.Q):
                if sender != self.me and (sender, c) not in waiting:
                    self._issue(sender, c)
        return out


class NoDedupe(TokenSite):
    """H3: a ticket of a delivered frame is kept and waits for its frame for ever."""

    def _take_tickets(self, issuer: MemberId, tickets: tuple[Ticket, ...]) -> None:
        super()._take_tickets(issuer, tickets)
        for number, sender, c in tickets:
            if c <= self.done.get(sender, c - 1):
                heappush(self.UT, (number, issuer, sender, c))

    def _drain(self, out: list[Action]) -> None:
        pending, queue, done, own = self.UT, self.Q, self.done, self.own
        while pending:
            number, issuer, sender, c = pending[0]
            frame = queue.get((sender, c))
            if frame is None or (own and own[0] <= number):
                return
            heappop(pending)
            del queue[sender, c]
            done[sender] = c
            out.append(Up(Ordered(frame, issuer, number)))


@mutant("h2_reissue", "token_site", AREA, "H2: frames are ticketed again while their ticket is on its way")
def h2_reissue(setup: Setup) -> Stack:
    return token_site(setup, order=Reissue)


@mutant("h3_no_dedupe", "token_site", AREA, "H3: a second ticket of a delivered frame blocks the head")
def h3_no_dedupe(setup: Setup) -> Stack:
    return token_site(setup, order=NoDedupe)


class TwoTickets(TokenSite):
    """Every frame of another member is ticketed twice."""

    def _issue(self, sender: MemberId, c: int) -> None:
        super()._issue(sender, c)
        if sender != self.me:
            super()._issue(sender, c)


@mutant("two_tickets_no_dedupe", "token_site", AREA, "two tickets for one frame, and the second blocks the head (H3)")
def two_tickets_no_dedupe(setup: Setup) -> Stack:
    class Both(NoDedupe, TwoTickets):
        pass

    return token_site(setup, order=Both)


@mutant("h4_self_skip", "token_site", AREA, "H4: the sequencer delivers past own tickets it has not received back")
def h4_self_skip(setup: Setup) -> Stack:
    class Skip(TokenSite):
        def _drain(self, out: list[Action]) -> None:
            own, self.own = self.own, []
            super()._drain(out)
            self.own = own

    return token_site(setup, order=Skip)


@mutant("h13_done_stands", "token_site", AREA, "H13: the count of delivered frames never moves")
def h13_done_stands(setup: Setup) -> Stack:
    class Stands(TokenSite):
        def _drain(self, out: list[Action]) -> None:
            super()._drain(out)
            self.done = dict.fromkeys(self.done, 0)

    return token_site(setup, order=Stands)


@mutant("h14_no_nulls", "token_site", AREA, "H14: tickets leave only with the sequencer's next frame")
def h14_no_nulls(setup: Setup) -> Stack:
    class Lazy(TokenSite):
        def _null(self) -> list[Action]:
            return []

    return token_site(setup, order=Lazy)


@mutant("null_timer_lost", "token_site", AREA, "without tickets_at_once the timer that sends them is never set")
def null_timer_lost(setup: Setup) -> Stack:
    class NoTimer(TokenSite):
        def _enter(self, view: View) -> list[Action]:
            super()._enter(view)
            self.null_set = True
            return []

    return token_site(setup, order=NoTimer)


class SkipMissing(TokenSite):
    """A ticket whose frame is not here yet is dropped; on a causal layer a frame always comes first."""

    def _drain(self, out: list[Action]) -> None:
        while self.UT:
            number, issuer, sender, c = heappop(self.UT)
            frame = self.Q.pop((sender, c), None)
            if frame is not None:
                self.done[sender] = c
                out.append(Up(Ordered(frame, issuer, number)))


@mutant("order_of_reception", "token_site", AREA, "frames are delivered as they come, tickets are not looked at")
def order_of_reception(setup: Setup) -> Stack:
    class AsTheyCome(TokenSite):
        def _drain(self, out: list[Action]) -> None:
            for key in list(self.Q):
                out.append(Up(Ordered(self.Q.pop(key))))

    return token_site(setup, order=AsTheyCome)


@mutant("tickets_cut_off", "token_site", AREA, "only the first of several waiting tickets is sent")
def tickets_cut_off(setup: Setup) -> Stack:
    class CutOff(TokenSite):
        def _outgoing(self) -> tuple[Ticket, ...]:
            tickets = super()._outgoing()
            return tickets[:1]

    return token_site(setup, order=CutOff)


class Believes(TokenSite):
    """Whoever it takes for the sequencer, it sends to all who are, and drops no frame of another's."""

    def _enter(self, view: View) -> list[Action]:
        out = super()._enter(view)
        self.sequencer = (0, 0)
        return out

    def _doubt(self, sender: MemberId, body: Sent | Null) -> str:
        return ""


@mutant("two_sequencers", "token_site", AREA, "the two highest members both issue tickets, from clocks of their own")
def two_sequencers(setup: Setup) -> Stack:
    class Two(TokenSite):
        def _enter(self, view: View) -> list[Action]:
            out = super()._enter(view)
            highest = view.members[-2:]
            self.active = self.me if self.me in highest else highest[self.me % len(highest)]
            self.sequencer = (self.active, 0)
            return out

    return token_site(setup, order=Two)


@mutant("two_sequencers_believed", "token_site", AREA,
        "the two highest members both issue tickets for all frames, and nobody doubts them")  # fmt: skip
def two_sequencers_believed(setup: Setup) -> Stack:
    class Two(Believes):
        def _enter(self, view: View) -> list[Action]:
            out = super()._enter(view)
            highest = view.members[-2:]
            self.active = self.me if self.me in highest else highest[self.me % len(highest)]
            return out

    return token_site(setup, order=Two)


@mutant("window_forgotten", "token_site", AREA, "what waited when the window was shut is not pulled when it opens")
def window_forgotten(setup: Setup) -> Stack:
    class Forgets(Sender):
        def up(self, now: Nanoseconds, event: Event) -> list[Action]:
            if type(event) is Window:
                self.window = event.frames
                return []
            return super().up(now, event)

    return token_site(setup, sender=Forgets)


@mutant("originates_late", "token_site", AREA, "a frame is noted as originated only after it was multicast")
def originates_late(setup: Setup) -> Stack:
    class Late(TokenSite):
        held: list[Action]

        def __init__(self, setup: Setup) -> None:
            super().__init__(setup)
            self.held = []

        def _hold(self, out: list[Action]) -> list[Action]:
            self.held += [a for a in out if isinstance(a, Originate)]
            return [a for a in out if not isinstance(a, Originate)]

        def down(self, now: Nanoseconds, event: Event) -> list[Action]:
            return self._hold(super().down(now, event))

        def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
            return self._hold(super().up(now, event, child))

        def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
            held, self.held = self.held, []
            return held + super().drained(now, net)

    return token_site(setup, order=Late)
