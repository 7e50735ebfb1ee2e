"""What a neighbour said, before it is believed: of one view.

A member of the view may have a fault, or be a liar with the key.  On a causal layer what an honest one says is never
ahead of what was received here: whoever gives tickets is active here, too, messages come before their tickets, and
numbers are above what their issuer has promised.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.contract import Body
from ordercast.protocols.hybrid.packets import NUMBER_MAX, Null, Reassign, Role, Sent, Sequencer, Ticket
from ordercast.protocols.hybrid.process import Process
from ordercast.types import MemberId

OWN_MAX = 1_024  # messages of one member that are not delivered; it waits itself before it comes to more


class Plausible:
    """What was heard of each member in this view."""

    def __init__(self, process: Process, members: Iterable[MemberId], roles_change: bool) -> None:
        self.process, self.roles_change = process, roles_change
        self.heard: dict[MemberId, int] = dict.fromkeys(members, 0)  # last c
        self.ticketed: dict[MemberId, dict[MemberId, int]] = {}  # by issuer: last c that it ticketed, of each
        self.role: dict[MemberId, int] = {}  # c of the last role change that it announced

    def doubt(self, j: MemberId, body: Body) -> str:
        """Why what j is said to have sent cannot be true, or must not be kept; empty: it may be, and counts."""
        kind = type(body)
        if kind is Reassign:
            return self._reassigns(j, body)  # type: ignore[arg-type]
        c: int = 0 if kind is Null else body.c  # type: ignore[attr-defined]
        tickets: tuple[Ticket, ...] = body.tickets  # type: ignore[attr-defined]
        if j != self.process.me:
            promise: int = body.promise  # type: ignore[attr-defined]
            if (tickets or promise) and not self._follow(j, tickets, promise, c):
                return "tickets"
            why = self._message(j, c, body) if c else ""  # type: ignore[arg-type]
            if why:
                return why
        if c:
            self.heard[j] = c
            if kind is Role:
                self.role[j] = c
        if tickets:
            ticketed = self.ticketed.setdefault(j, {})
            for _, sender, number in tickets:
                ticketed[sender] = number
        return ""

    def _message(self, j: MemberId, c: int, body: Sent | Role) -> str:
        process = self.process
        if c != self.heard[j] + 1:
            return "counter"
        if type(body) is Sent and body.frame.sender != j:
            return "origin"
        if not self._known(body.sequencer):
            return "sequencer"
        if c - process.done[j] > OWN_MAX:
            return "unordered"
        if self.role and self.role.get(j, 0) > process.done[j]:  # who changes its role says nothing
            return "role"
        if type(body) is Role and (not self.roles_change or body.active == (j in process.actives)):
            return "role"
        return ""

    def _known(self, sequencer: Sequencer) -> bool:
        """A role that there is, or was."""
        return sequencer[1] <= self.process.rn.get(sequencer[0], -1)

    def _follow(self, j: MemberId, tickets: tuple[Ticket, ...], promise: int, c: int) -> bool:
        """Numbers ascend above what was promised; each message gets one ticket, in its sender's order, once it came."""
        process, heard, before = self.process, self.heard, self.ticketed.get(j, {})
        if j not in process.actives:
            return False
        last = process.hi[j]
        now: dict[MemberId, int] = {}
        for number, sender, of in tickets:
            come = heard.get(sender, -2) + (sender == j and c > 0)
            if number <= last or not now.get(sender, before.get(sender, 0)) < of <= come:
                return False
            last = number
            now[sender] = of
        return last <= promise <= NUMBER_MAX

    def _reassigns(self, j: MemberId, body: Reassign) -> str:
        if not self.roles_change or j in self.process.actives:
            return "role"
        if body.last > self.heard[j] or body.last - body.first >= OWN_MAX:
            return "range"
        return "" if self._known(body.sequencer) else "sequencer"
