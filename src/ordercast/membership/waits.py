"""Short waits before a proposal is made, or a working view is left because of the table.

*unknown link*: somebody new (or heard again) is not linked with me yet; it stops a merge from taking in half a ring.
*rest*: my choice leaves out a member I am linked with while rows still move; it stops the moment in which one member
has noticed a crash and its neighbour has not from splitting the rest.
In an ordinary crash, split, merge, restart or leave neither costs anything.

Beyond the rule of the five sentences:
  W1  A member whose row nobody's row names (dead, its row still relayed) is no unknown link: a restart beside a dead
      member would wait for it.
  W2  *alone*: a member that has no view yet and sees nobody waits T_settle for others before it forms a view of one,
      unless it is configured alone; a group started together then begins with one view instead of n + 1.
"""

from __future__ import annotations

from ordercast.membership.choose import NO_VIEW, Rows, linked
from ordercast.membership.evidence import Evidence
from ordercast.membership.timers import Times
from ordercast.types import MemberId, Nanoseconds, ViewId


def unknown_link(
    now: Nanoseconds, me: MemberId, rows: Rows, evidence: Evidence, times: Times, direct: bool
) -> MemberId | None:
    """Somebody whose link with me is not settled yet."""
    heard: set[MemberId] = set()
    for row in rows.values():
        if row.hears:
            heard |= row.hears - {row.id}
    for q in sorted(heard & rows.keys()):
        if q == me or not rows[q].hears or linked(rows[me], rows[q], direct):
            continue
        if evidence.fresh(now, q, times.settle) and not evidence.on_probation(now, q):
            return q
    return None


def left_out(
    now: Nanoseconds,
    me: MemberId,
    rows: Rows,
    chosen: tuple[MemberId, ...],
    moved: Nanoseconds,
    times: Times,
    direct: bool,
) -> MemberId | None:
    """Somebody linked with me whom my choice leaves out while rows still move."""
    if now - moved >= times.quiet:
        return None
    for q in sorted(rows):
        if q != me and q not in chosen and linked(rows[me], rows[q], direct):
            return q
    return None


def alone(
    now: Nanoseconds,
    view: ViewId,
    chosen: tuple[MemberId, ...],
    configured: frozenset[MemberId],
    started: Nanoseconds,
    times: Times,
) -> bool:
    """Just started, and nobody answered yet."""
    return view == NO_VIEW and len(chosen) == 1 and len(configured) > 1 and now - started < times.settle
