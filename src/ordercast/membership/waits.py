"""Short waits before a proposal is made, or a working view is left because of the table.

*unknown link*: somebody new (or heard again) is not linked with me yet; it stops a merge from taking in half a ring.
*rest*: my choice leaves out somebody linked with one of its members while rows still move; it stops the moment in which
one member has noticed a crash and its neighbour has not from splitting the rest.
In an ordinary crash, split, merge, restart or leave neither costs anything.

Beyond the rule of the five sentences:
  W1  A member whose row nobody's row names (dead, its row still relayed) is no unknown link: a restart beside a dead
      member would wait for it.
  W2  *beginning*: a member that has no view yet, and sees only such, waits T_settle for the rest of the configured
      members; a group started together then begins with one view instead of n + 1.
  W3  *rest* looks at the links of all I choose, not at mine alone, and at changes of views as well: around an install
      some rows still show the old view, a cell then looks smaller than it is, and an outsider would break it.
  W4  *rest* ends after T, whatever moves: links that flap elsewhere hold nobody up for ever.
"""

from __future__ import annotations

from ordercast.contract import Note
from ordercast.membership.choose import NO_VIEW, Rows, linked
from ordercast.membership.evidence import Evidence
from ordercast.membership.sight import Sight
from ordercast.membership.step import Step
from ordercast.membership.timers import POLL, Times
from ordercast.types import MemberId, Nanoseconds


def unknown_link(
    now: Nanoseconds, me: MemberId, rows: Rows, evidence: Evidence, times: Times, direct: bool
) -> MemberId | None:
    """Somebody whose link with me is not settled yet."""
    heard: set[MemberId] = set()
    for row in rows.values():
        if row.hears:
            heard |= row.hears - {row.id}
    for q in sorted(heard):
        if q == me or (q in rows and (not rows[q].hears or linked(rows[me], rows[q], direct))):
            continue  # a heard one without a row has just begun a new life
        if evidence.fresh(now, q, times.settle) and not evidence.on_probation(now, q):
            return q
    return None


def left_out(
    now: Nanoseconds, rows: Rows, chosen: tuple[MemberId, ...], moved: Nanoseconds, times: Times, direct: bool
) -> MemberId | None:
    """Somebody linked with a member of my choice whom my choice leaves out while rows still move."""
    if now - moved >= times.quiet:
        return None
    for r in sorted(rows):
        if r not in chosen and any(linked(rows[q], rows[r], direct) for q in chosen):
            return r
    return None


def beginning(
    now: Nanoseconds,
    rows: Rows,
    chosen: tuple[MemberId, ...],
    configured: frozenset[MemberId],
    started: Nanoseconds,
    times: Times,
) -> bool:
    """Just started, none of those I see has a view yet, and somebody configured is missing."""
    if now - started >= times.settle or len(chosen) == len(configured):
        return False
    return all(rows[q].view == NO_VIEW for q in chosen)


class Patience:
    """Decides whether it is too early for a choice; remembers which wait runs, and since when rows may rest."""

    __slots__ = ("_direct", "_resting", "_sight", "_started", "_step", "words")

    def __init__(self, step: Step, sight: Sight, direct: bool) -> None:
        self._step, self._sight, self._direct = step, sight, direct
        self._started: Nanoseconds = 0
        self._resting: Nanoseconds | None = None
        self.words = ""  # of the wait that runs

    def start(self, now: Nanoseconds) -> None:
        self._started = now

    def over(self) -> None:
        """The choice is what it should be: no wait runs."""
        self.words, self._resting = "", None
        self._step.deadlines.clear(POLL)

    def rest(self, until: Nanoseconds | None) -> None:
        """A new choice cannot be made yet."""
        assert until is not None
        self.words = "for a large table to be looked at again"
        self._step.set(POLL, until)

    def too_early(self, now: Nanoseconds, rows: Rows, chosen: tuple[MemberId, ...]) -> bool:
        """Then the choice is looked at again after T_gap."""
        before, self.words = self.words, self._reason(now, rows, chosen)
        if not self.words:
            self._resting = None
            return False
        if self.words != before:
            self._step.say(Note("waited", {"words": self.words}))
        self._step.set(POLL, now + self._step.times.gap)
        return True

    def _reason(self, now: Nanoseconds, rows: Rows, chosen: tuple[MemberId, ...]) -> str:
        sight, times = self._sight, self._step.times
        q = unknown_link(now, sight.me, rows, sight.evidence, times, self._direct)
        if q is not None:
            return f"for the link with member {q} to settle"
        if beginning(now, rows, chosen, sight.configured, self._started, times):
            return "for the others to start"
        q = left_out(now, rows, chosen, max(sight.table.moved, sight.table.shown), times, self._direct)
        if q is None:
            return ""
        self._resting = now if self._resting is None else self._resting
        if now - self._resting > times.timeout:
            return ""
        return f"for rows to rest before member {q} is left out"
