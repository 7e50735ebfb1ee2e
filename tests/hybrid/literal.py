"""The literal readings of figure 4, each a few lines beside the corrected process (numbers of the errata)."""

from __future__ import annotations

from collections.abc import Iterable
from unittest.mock import patch

from ordercast.contract import Action
from ordercast.protocols.hybrid import carry as views
from ordercast.protocols.hybrid.carry import carry
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.packets import Ticket
from ordercast.protocols.hybrid.process import ACTIVE, Process
from ordercast.types import MemberId, Nanoseconds

# ----------------------------------------------------------------------------------------------------------- processes


class H1(Process):
    """The configuration of the moment counts for everything that is drained."""

    def _deliver(self, sender: MemberId, c: int, issuer: MemberId, number: int, out: list[Action]) -> bool:
        super()._deliver(sender, c, issuer, number, out)
        return False


class H2H3(Process):
    """A message without a ticket waiting to be sent is ticketed again; a second ticket waits for its message."""

    def receive(self, j: MemberId, body: object) -> list[Action]:
        out = super().receive(j, body)
        if self.state is ACTIVE:
            waiting = {(sender, c) for _, sender, c in self.LT}
            for mid in sorted(self.Q.keys() - waiting):
                if mid[0] != self.me and mid[0] not in self.actives:
                    self._issue(*mid)
        return out

    def _drain(self, out: list[Action]) -> None:
        done, self.done = self.done, dict.fromkeys(self.done, 0)
        super()._drain(out)
        self.done = done | {p: c for p, c in self.done.items() if c}


class H4(Process):
    """Own tickets that are not sent hold nothing up."""

    def _drain(self, out: list[Action]) -> None:
        own = self.own.copy()
        self.own.clear()
        super()._drain(out)
        self.own.extend(own)


class H5(Process):
    """Whoever is not active reassigns on any goingToPassive."""

    def _now_passive(self, j: MemberId, out: list[Action]) -> None:
        mine, kept = self.S[0] == j, self.actives == {j}
        super()._now_passive(j, out)
        if not mine and not kept and j != self.me and self.state is not ACTIVE:
            self.reassign(out)


class H6(Process):
    """A change of sequencer ends with the delivery of an own message only."""

    def change_sequencer(self) -> list[Action]:
        self.state = "chgseq"
        return []


class H8(Process):
    """goingToActive raises the role number of one that was promoted meanwhile, too."""

    def _now_active(self, j: MemberId, out: list[Action]) -> None:
        again = j in self.actives
        super()._now_active(j, out)
        if again:
            self.rn[j] += 1
            if j == self.me:
                self.S = self.role


class H15(Process):
    """The last active process leaves like any other."""

    def _now_passive(self, j: MemberId, out: list[Action]) -> None:
        if self.actives == {j}:
            self.actives = frozenset((j, 0))
            super()._now_passive(j, out)
            self.actives = frozenset()
        else:
            super()._now_passive(j, out)


# --------------------------------------------------------------------------------------------------------------- views


def h7(process: Process, members: Iterable[MemberId]) -> list[Action]:
    """No active process left: only the promoted one acts."""

    class Alone(type(process)):  # type: ignore[misc]
        def reassign(self, out: list[Action]) -> None:
            pass

    kind = type(process)
    if not process.actives & set(members):
        process.__class__ = Alone
    out = carry(process, members)
    process.__class__ = kind
    return out


class H9(Process):
    """Tickets of messages that were discarded are believed."""

    def _take(self, issuer: MemberId, tickets: Iterable[Ticket]) -> None:
        rn, self.rn = self.rn, self.rn | {sender: 0 for _, sender, _ in tickets}
        super()._take(issuer, tickets)
        self.rn = rn


def h9(process: Process, members: Iterable[MemberId]) -> list[Action]:
    """... and sent."""
    here = set(members)
    kept = [ticket for ticket in process.LT if ticket[1] not in here]
    out = carry(process, members)
    process.LT = sorted({*process.LT, *kept})
    return out


def h10(process: Process, members: Iterable[MemberId]) -> list[Action]:
    """A ticket whose message is nowhere stays."""
    lost = [t for t in process.UT if t[2] not in set(members) and t[2:] not in process.Q]
    out = carry(process, members)
    process.UT = sorted(process.UT + lost)
    return out


def h11(process: Process, members: Iterable[MemberId]) -> list[Action]:
    """A promoted process sends what waited before it sees to its old messages."""

    def new_first(process: Process, out: list[Action]) -> None:
        out += process.resume()
        for c in range(process.l + 1, process.c):
            process._issue(process.me, c)
        out += process.null()

    with patch.object(views, "_own_first", new_first):
        return carry(process, members)


# -------------------------------------------------------------------------------------------------------------- numbers


class H12(Lamport):
    """What is heard does not push the clock."""

    def hear(self, now: Nanoseconds, number: int, source: MemberId) -> None:
        pass
