"""Variants of the token-site family: the literal readings of its paper, and plain blunders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf
from typing import Any

from tests.mutants.parts import token_site
from tests.mutants.registry import Maker, mutant

from ordercast.contract import Action, Body, Event, Ordered, Originate, Setup, Up, Window
from ordercast.protocols.hybrid import Process, Tickets
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.packets import Sent, Ticket
from ordercast.protocols.hybrid.plausible import Plausible
from ordercast.protocols.hybrid.process import LEANS
from ordercast.sender import Sender
from ordercast.stack import Stack
from ordercast.types import Frame, MemberId, Nanoseconds, NetId, View

AREA = "hybrid"


def variant(name: str, protocol: str, breaks: str, **more: Any) -> Callable[[type[Any]], type[Any]]:
    """Enter a class, of the process or of the layer around it, that stands for the shipped one."""

    def enter(kind: type[Any]) -> type[Any]:
        part = "process" if issubclass(kind, Process) else "order"

        def make(setup: Setup) -> Stack:
            return token_site(setup, protocol=protocol, **{part: kind})  # type: ignore[arg-type]

        maker: Maker = make
        mutant(name, protocol, AREA, breaks, **more)(maker)
        return kind

    return enter


# ----------------------------------------------------------------------------------------------------------- token_site


@variant("own_at_multicast", "token_site", "a sender delivers its own frame when it multicasts it")
class Early(Process):
    def send(self, frame: Frame) -> list[Action]:
        return [*super().send(frame), Up(Ordered(frame))]

    def _drain(self, out: list[Action]) -> None:
        told: list[Action] = []
        super()._drain(told)
        out += [a for a in told if not (isinstance(a, Up) and a.event.frame.sender == self.me)]  # type: ignore[attr-defined]


@variant("h2_reissue", "token_site", "H2: frames are ticketed again while their ticket is on its way")
class Reissue(Process):
    """On every reception a ticket for each frame that has none waiting to be sent, received ones not looked at."""

    def receive(self, j: MemberId, body: Body) -> list[Action]:
        out = super().receive(j, body)
        if self.state == "active":
            waiting = {(sender, c) for _, sender, c in self.LT}
            for sender, c in sorted(self.Q):
                if sender != self.me and (sender, c) not in waiting:
                    self._issue(sender, c)
        return out


@variant("h3_no_dedupe", "token_site", "H3: a second ticket of a delivered frame blocks the head")
class NoDedupe(Process):
    """A ticket of a delivered frame is kept and waits for its frame for ever."""

    def _take(self, issuer: MemberId, tickets: Iterable[Ticket]) -> None:
        super()._take(issuer, tickets)
        for number, sender, c in tickets:
            if c <= self.done.get(sender, c - 1):
                heappush(self.UT, (number, issuer, sender, c))

    def _drain(self, out: list[Action]) -> None:
        floor = self._floor()
        while self.UT:
            number, issuer, sender, c = self.UT[0]
            if number > floor or (self.own and self.own[0] <= number) or (sender, c) not in self.Q:
                return
            heappop(self.UT)
            if self._deliver(sender, c, issuer, number, out):
                floor = self._floor()


class Trusts(Tickets):
    """No ticket is doubted."""

    def _enter(self, now: Nanoseconds, view: View) -> list[Action]:
        out = super()._enter(now, view)
        self.plausible.__class__ = Trusting
        return out


class Trusting(Plausible):
    def _follow(self, j: MemberId, tickets: tuple[Ticket, ...], promise: int, c: int) -> bool:
        return True


@mutant("two_tickets_no_dedupe", "token_site", AREA, "two tickets for one frame, and the second blocks the head (H3)")
def two_tickets_no_dedupe(setup: Setup) -> Stack:
    class Both(NoDedupe):
        def _issue(self, sender: MemberId, c: int) -> None:
            super()._issue(sender, c)
            if sender != self.me:
                super()._issue(sender, c)

    return token_site(setup, process=Both, order=Trusts)


@variant("h13_last_own_stands", "hybrid", "H13: the count of own delivered messages never moves", scenario="roles")
class Stands(Process):
    def _deliver(self, sender: MemberId, c: int, issuer: MemberId, number: int, out: list[Action]) -> bool:
        changed = super()._deliver(sender, c, issuer, number, out)
        self.l = 0
        return changed


@variant("h14_no_nulls", "token_site", "H14: tickets leave only with the sequencer's next frame")
class Lazy(Tickets):
    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        return self.sender.settle(now)


@variant("null_timer_lost", "token_site", "without tickets_at_once the timer that sends them is never set")
class NoTimer(Tickets):
    def _set_null(self, due: Nanoseconds) -> list[Action]:
        return []


class SkipMissing(Process):
    """A ticket whose frame is not here yet is dropped; on a causal layer a frame always comes first."""

    def _drain(self, out: list[Action]) -> None:
        while self.UT:
            number, issuer, sender, c = heappop(self.UT)
            if (sender, c) in self.Q:
                self._deliver(sender, c, issuer, number, out)


@variant("order_of_reception", "token_site", "frames are delivered as they come, tickets are not looked at")
class AsTheyCome(Process):
    def receive(self, j: MemberId, body: Body) -> list[Action]:
        out = super().receive(j, body)
        return out + [Up(Ordered(self.Q.pop(key))) for key in list(self.Q)]  # type: ignore[arg-type]


@variant("tickets_cut_off", "token_site", "only the first of several waiting tickets is sent")
class CutOff(Process):
    def _all_tickets(self) -> tuple[Ticket, ...]:
        return super()._all_tickets()[:1]


class Believes(Tickets):
    """Nothing is doubted, and whoever is taken for the sequencer, all who are give tickets."""

    def _enter(self, now: Nanoseconds, view: View) -> list[Action]:
        out = super()._enter(now, view)
        self.plausible.__class__ = Gullible
        self.process.__class__ = ForAll
        return out


class Gullible(Plausible):
    def doubt(self, j: MemberId, body: Body) -> str:
        return ""


class ForAll(Process):
    def _hold(self, sender: MemberId, c: int, item: Any, sequencer: tuple[int, int]) -> None:
        super()._hold(sender, c, item, (self.me, self.rn[self.me]))


def two_highest(order: type[Tickets]) -> type[Tickets]:
    class Two(order):  # type: ignore[misc, valid-type]
        def _roles(self, view: View) -> tuple[dict[MemberId, int], Iterable[MemberId]]:
            rn, _ = super()._roles(view)
            highest = view.members[-2:]
            return rn, (self.me if self.me in highest else highest[self.me % len(highest)],)

    return Two


@mutant("two_sequencers", "token_site", AREA, "the two highest members both issue tickets, from clocks of their own")
def two_sequencers(setup: Setup) -> Stack:
    return token_site(setup, order=two_highest(Tickets))


@mutant("two_sequencers_believed", "token_site", AREA,
        "the two highest members both issue tickets for all frames, and nobody doubts them")  # fmt: skip
def two_sequencers_believed(setup: Setup) -> Stack:
    return token_site(setup, order=two_highest(Believes))


@mutant("window_forgotten", "token_site", AREA, "what waited when the window was shut is not pulled when it opens")
def window_forgotten(setup: Setup) -> Stack:
    class Forgets(Sender):
        def up(self, now: Nanoseconds, event: Event) -> list[Action]:
            if type(event) is Window:
                self.window = event.frames
                return []
            return super().up(now, event)

    return token_site(setup, sender=Forgets)


@variant("originates_late", "token_site", "a frame is noted as originated only after it was multicast")
class Late(Tickets):
    held: list[Action]

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
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


# ------------------------------------------------------------------------------------------------------ several actives


@variant("h4_self_skip", "hybrid", "H4: an active one delivers past own tickets it has not received back",
         scenario="two_actives")  # fmt: skip
class Skip(Process):
    def _drain(self, out: list[Action]) -> None:
        own, self.own = self.own, self.own.copy()
        self.own.clear()
        super()._drain(out)
        self.own = own


@mutant("h12_no_maximum", "symmetric", AREA, "H12: a number that is heard does not push the clock")
def h12_no_maximum(setup: Setup) -> Stack:
    made = token_site(setup, protocol="symmetric", order=Deaf)
    return made


class Deaf(Tickets):
    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self.process.numbers = self.numbers = Counted()


class Counted(Lamport):
    def hear(self, now: Nanoseconds, number: int, source: MemberId) -> None:
        pass


@variant("f9_null_only_for_own", "symmetric", "a null is sent only while something is undelivered here (F9)")
class Selfish(Tickets):
    def _owes(self) -> bool:
        return self.process.state == "active" and bool(self.process.LT or self.process.Q)


@variant("symmetric_no_nulls", "symmetric", "H14: who has nothing to send promises nothing")
class Silent(Tickets):
    def _owes(self) -> bool:
        return False


@variant("one_promise_is_enough", "symmetric", "a frame is delivered when one other member has promised more")
class OneIsEnough(Process):
    def _floor(self) -> float:
        return max([self.hi[q] for q in self.actives if q != self.me], default=inf)


@variant("promise_of_the_clock", "hybrid", "a process promises what it has heard, though smaller tickets of it wait",
         scenario="two_actives")  # fmt: skip
class PromisesAhead(Process):
    def null(self) -> list[Action]:
        if len(self.LT) < 2:
            return super().null()
        kept, self.LT = self.LT[1:], self.LT[:1]
        out = super().null()
        self.LT = kept
        return out


# -------------------------------------------------------------------------------------------------- roles that change


@variant("h1_eager", "hybrid", "H1: a role change counts only from the next reception on", scenario="roles")
class Eager(Process):
    def _deliver(self, sender: MemberId, c: int, issuer: MemberId, number: int, out: list[Action]) -> bool:
        super()._deliver(sender, c, issuer, number, out)
        return False


@variant("h5_reassigns_always", "hybrid", "H5: everybody without a role of its own reassigns when anybody leaves",
         scenario="roles")  # fmt: skip
class ReassignsAlways(Process):
    def _now_passive(self, j: MemberId, out: list[Action]) -> None:
        super()._now_passive(j, out)
        if self.state in LEANS and j != self.me:
            self.reassign(out)


@variant("h5_and_h3", "hybrid", "H5 and H3: a second ticket, given after a needless reassignment, blocks the head",
         scenario="roles")  # fmt: skip
class Both(ReassignsAlways, NoDedupe):
    pass


@variant("h5_nobody_reassigns", "hybrid", "who loses its sequencer chooses another and leaves the rest to the old one",
         scenario="roles")  # fmt: skip
class NobodyReassigns(Process):
    def reassign(self, out: list[Action]) -> None:
        self.S = self._closest()


@variant("h6_waits_for_nothing", "hybrid", "H6: a change of sequencer ends only with the delivery of an own message",
         scenario="closer_sequencer")  # fmt: skip
class WaitsForNothing(Process):
    def change_sequencer(self) -> list[Action]:
        self.state = "chgseq"
        return []


@variant("h7_nobody_promoted", "hybrid", "H7: when no active process is left, none becomes one")
class NobodyPromoted(Tickets):
    def _roles(self, view: View) -> tuple[dict[MemberId, int], Iterable[MemberId]]:
        rn, actives = super()._roles(view)
        return rn, self.process.actives & set(actives) if len(view.components) == 1 else actives


@variant("h15_last_one_leaves", "hybrid", "the last active process becomes passive", scenario="roles")
class LastOneLeaves(Process):
    def _now_passive(self, j: MemberId, out: list[Action]) -> None:
        if self.actives == {j}:
            self.actives = frozenset((j, -1))
        super()._now_passive(j, out)
        self.actives -= {-1}


@variant("roles_of_their_own", "hybrid", "who merges keeps the roles it knew (F7)")
class RolesOfTheirOwn(Tickets):
    def _roles(self, view: View) -> tuple[dict[MemberId, int], Iterable[MemberId]]:
        old = self.process.actives & set(view.members)
        rn, actives = super()._roles(view)
        return rn, old or actives


@variant("backlog_forgotten", "hybrid", "what waited for a role change is not sent after it", scenario="roles")
class BacklogForgotten(Process):
    def _now_active(self, j: MemberId, out: list[Action]) -> None:
        resume, self.resume = self.resume, list
        super()._now_active(j, out)
        self.resume = resume


@variant(
    "role_at_once", "hybrid", "a process acts in its new role before the place of its announcement", scenario="roles"
)
class RoleAtOnce(Process):
    def go_active(self) -> list[Action]:
        out = super().go_active()
        self.actives |= {self.me}
        self._be_active(out)
        return out


@variant("leaves_and_goes_on", "hybrid", "who becomes passive goes on giving tickets until that is delivered",
         scenario="roles")  # fmt: skip
class GoesOn(Process):
    def receive(self, j: MemberId, body: Body) -> list[Action]:
        if self.state == "topassive" and type(body) is Sent and body.sequencer == self.role:
            self._issue(j, body.c)
        return super().receive(j, body)


@variant("drain_ignores_roles", "hybrid", "role changes that the end of a view delivers count at some only",
         scenario="roles_crash")  # fmt: skip
class DrainIgnoresRoles(Process):
    def close(self, gone: Iterable[MemberId]) -> list[Action]:
        actives = self.actives
        out = super().close(gone)
        if self.me % 2:
            self.actives = actives
        return out
