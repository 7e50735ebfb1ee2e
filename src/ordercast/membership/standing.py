"""Where a member stands: its state, the view it has installed, and the ring that is being formed.

One object that all parts are given.  `happens` alone changes `state`, as the automaton's table says.
"""

from __future__ import annotations

from typing import Any

from ordercast.contract import Note
from ordercast.membership import cause as causes
from ordercast.membership.automaton import TABLE, Happening, State
from ordercast.membership.choose import NO_VIEW, Row, Rows
from ordercast.membership.packets import Entry, Got
from ordercast.types import Cause, Incarnation, MemberId, Nanoseconds, ViewId


class Roster:
    """A ring and who is on it."""

    __slots__ = ("entry", "id", "incarnations", "members")

    def __init__(self, id: ViewId, members: tuple[MemberId, ...]) -> None:
        self.id, self.members = id, members
        self.entry: Entry | None = None  # mine, as it stands on the commit token
        self.incarnations: dict[MemberId, Incarnation] = {}  # from the commit entries


class Standing:
    """`parts` has those that act, by the names which the table uses."""

    def __init__(self, parts: object) -> None:
        self._parts = parts
        self.state = State.GATHER
        self.installed = Roster(NO_VIEW, ())
        self.forming: Roster | None = None  # from my entry on its commit token until installed or given up
        self.frozen = False  # entry written since the last install
        self.young = False  # installed here, perhaps not yet everywhere: no choice moves us before the next token
        self.left: Nanoseconds = 0  # when the last view stopped to work, or this life began
        self.cause = causes.START  # why the installed view was left, or is being left
        self.got: Got | None = None  # last token accepted
        self.visited: Nanoseconds | None = None  # when the last regular token of this ring came
        self.beyond: dict[MemberId, tuple[Cause, Note]] = {}  # who went on to a newer view while one is being formed

    def happens(self, now: Nanoseconds, happening: Happening, *what: Any) -> bool:
        """Act as the rule for the present state says; False if there is none."""
        rule = TABLE.get((self.state, happening))
        if rule is None:
            return False
        if self.works and rule.to is not State.OPERATIONAL:
            self.left = now
        self.state = rule.to
        rule.act.by(self._parts)(now, *what)
        return True

    @property
    def present(self) -> Roster:
        """The ring whose tokens count: the one being formed, else the installed one."""
        return self.forming or self.installed

    @property
    def works(self) -> bool:
        return self.state is State.OPERATIONAL

    @property
    def gathers(self) -> bool:
        return self.state is State.GATHER

    def gather(self) -> None:
        """What was formed, and what is known of its tokens, is void."""
        self.forming, self.visited, self.young = None, None, False
        self.beyond.clear()

    def form(self, ring_id: ViewId, members: tuple[MemberId, ...]) -> None:
        """My entry is written: from here on the owner is frozen, also if this attempt fails."""
        self.forming, self.frozen = Roster(ring_id, members), True

    def install(self) -> None:
        assert self.forming is not None
        self.installed, self.forming, self.frozen = self.forming, None, False

    def taught(self, table: Rows) -> dict[MemberId, Row]:
        """The table as a member of my view sees it: the commit token told more than rows that show an older view.

        While the view works, they count as working in it; afterwards only as having come from it."""
        rows, mine = dict(table), self.installed
        for q in mine.members:
            row = rows.get(q)
            if row is not None and row.view < mine.id and row.incarnation == mine.incarnations[q]:
                rows[q] = Row(q, row.incarnation, row.version, mine.id, self.works, row.hears)
        return rows
