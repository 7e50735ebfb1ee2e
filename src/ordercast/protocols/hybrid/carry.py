"""A view change as the paper has it (5.3.1): tickets live on.  For golden vectors and experiments; the product drains.

Here messages are delivered in a later view than they were sent in, so the promises of views do not hold; and nobody can
join.  Differs from figure 4: H7 who lost its sequencer reassigns after the promotion; H9 messages without a ticket of
members that failed are discarded, with tickets for them that were not sent; H10 a ticket whose message is nowhere goes;
H11 a promoted process gives tickets to its own old messages first.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.contract import Action
from ordercast.protocols.hybrid.process import ACTIVE, LEANS, Process
from ordercast.types import MemberId


def carry(process: Process, members: Iterable[MemberId]) -> list[Action]:
    """A view of these: some of the old one failed."""
    out: list[Action] = []
    here = frozenset(members)
    _forget(process, here)
    promoted = not process.actives
    if promoted:
        highest = max(here)
        process.actives = frozenset((highest,))
        process.rn[highest] += 1
        if process.me == highest:
            process.state = ACTIVE
            process.S = process.role
    process._drain(out)
    if promoted and process.state is ACTIVE:
        _own_first(process, out)
    elif process.state in LEANS and process.S[0] not in process.actives:
        process.reassign(out)  # H7
    if process.state is ACTIVE:
        process._issue_all()
    return out


def _forget(process: Process, here: frozenset[MemberId]) -> None:
    """The failed, and what nobody can order any more."""
    process.actives &= here
    process.rn = {member: number for member, number in process.rn.items() if member in here}
    process.hi = {member: number for member, number in process.hi.items() if member in here}
    ticketed = {ticket[2:] for ticket in process.UT}
    process.Q = {mid: item for mid, item in process.Q.items() if mid[0] in here or mid in ticketed}
    process.mine = {mid: rn for mid, rn in process.mine.items() if mid in process.Q}
    dropped = {ticket[0] for ticket in process.LT if ticket[1] not in here and ticket[1:] not in ticketed}  # H9
    process.LT = [ticket for ticket in process.LT if ticket[0] not in dropped]
    for number in dropped:
        process.own.remove(number)
    process.UT = sorted(t for t in process.UT if t[2] in here or t[2:] in process.Q)  # H10
    process.early &= {ticket[2:] for ticket in process.UT}


def _own_first(process: Process, out: list[Action]) -> None:
    """H11: the promoted one's own messages without a ticket, in a null, then what waited."""
    me, ticketed = process.me, {ticket[2:] for ticket in process.UT}
    for c in range(process.l + 1, process.c + 1):
        if (me, c) not in ticketed:
            process._issue(me, c)
    out += process.null()
    out += process.resume()
