"""A trace taken apart for the plain checkers: lives, messages one by one, views.  Plain loops, nothing clever."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ordercast.trace.schema import Header, Kind, Row
from ordercast.trace.trace import Trace
from ordercast.types import ViewKind
from ordercast.verify.lost import LifeKey, lost

MessageId = tuple[int, int, int]  # (sender, incarnation, counter)
ViewKey = tuple[int, int]  # (seq, rep)


class Delivery(NamedTuple):
    """One message delivered in one life: in which regular view, and in which transitional view after it, if any."""

    message: MessageId
    row: Row
    view: ViewKey | None
    transitional: Row | None


class Stay(NamedTuple):
    """A life's time in one regular view, with the transitional view that closed it and the view that came next."""

    view: Row | None  # None: before the first view, or in a protocol without views
    transitional: Row | None
    next: Row | None
    deliveries: list[Delivery]

    @property
    def key(self) -> ViewKey | None:
        return view_key(self.view)


class Life:
    """One incarnation of a member."""

    def __init__(self, member: int, incarnation: int, rows: list[Row]) -> None:
        self.member, self.incarnation, self.rows = member, incarnation, rows
        self.key: LifeKey = (member, incarnation)
        self.crash: Row | None = None  # written by itself or by member 0
        self.stays: list[Stay] = []
        self._walk()

    def _walk(self) -> None:
        view: Row | None = None
        transitional: Row | None = None
        deliveries: list[Delivery] = []
        for row in self.rows:
            if row.kind == Kind.VIEW and row.view_kind == ViewKind.TRANSITIONAL:
                transitional = transitional or row
            elif row.kind == Kind.VIEW:
                self.stays.append(Stay(view, transitional, row, deliveries))
                view, transitional, deliveries = row, None, []
            elif row.kind == Kind.DELIVER:
                key = view_key(view)
                deliveries += [Delivery(message, row, key, transitional) for message in messages(row)]
            elif row.kind == Kind.CRASH:
                self.crash = row
        self.stays.append(Stay(view, transitional, None, deliveries))

    @property
    def ended(self) -> bool:
        """Whether its last words are there, or somebody saw it crash."""
        return self.crash is not None or any(self.of(Kind.END, Kind.LEAVE))

    def of(self, *kinds: Kind) -> Iterator[Row]:
        return (row for row in self.rows if row.kind in kinds)

    def deliveries(self) -> Iterator[Delivery]:
        return (delivery for stay in self.stays for delivery in stay.deliveries)

    def __str__(self) -> str:
        return f"member {self.member}"


class Run:
    """All lives of a run, and what member 0 wrote about it."""

    def __init__(self, trace: Trace) -> None:
        self.header: Header = trace.header
        rows: dict[LifeKey, list[Row]] = defaultdict(list)
        self.world: list[Row] = []  # member 0
        for row in trace.rows:
            if row.member == 0:
                self.world.append(row)
            else:
                rows[row.member, row.incarnation].append(row)
        self.lives = [Life(member, incarnation, of) for (member, incarnation), of in sorted(rows.items())]
        self.life = {life.key: life for life in self.lives}
        self.gap = find_gap(trace.rows)
        for row in self.world:
            if row.kind == Kind.CRASH and row.sender is not None:
                for life in self.lives:
                    if life.member == row.sender and row.sender_incarnation in (None, life.incarnation):
                        life.crash = row
        self.originated: dict[MessageId, Row] = {}  # the first originate row of each message
        self.origin_view: dict[MessageId, ViewKey | None] = {}  # the regular view its sender was in
        for life in self.lives:
            view: ViewKey | None = None
            for row in life.rows:
                if row.kind == Kind.VIEW and row.view_kind != ViewKind.TRANSITIONAL:
                    view = view_key(row)
                elif row.kind == Kind.ORIGINATE:
                    for message in messages(row):
                        if message not in self.originated:
                            self.originated[message] = row
                            self.origin_view[message] = view
        self.lost = lost(trace.header, self.life, *self._told())
        self.end_ns = max((row.time_ns for row in trace.rows), default=0)
        self.delivered = sum(row.count or 0 for life in self.lives for row in life.of(Kind.DELIVER))
        self.groups = sorted({g for life in self.lives for row in life.of(Kind.DELIVER) for g in row.groups or ()})

    def _told(self) -> tuple[list[tuple[int | None, int | None]], set[int | None], set[int], set[LifeKey]]:
        """Lives that member 0 saw start, whom it saw crash, members of views, lives of whom something was delivered."""
        crashed = {row.sender for row in self.world if row.kind == Kind.CRASH}
        started = [(row.sender, row.sender_incarnation) for row in self.world if row.kind == Kind.START]
        viewed = {member for life in self.lives for row in life.of(Kind.VIEW) for member in row.members or ()}
        rows = (row for life in self.lives for row in life.of(Kind.DELIVER))
        return started, crashed, viewed, {(row.sender or 0, row.sender_incarnation or 0) for row in rows}

    @cached_property
    def together(self) -> list[list[tuple[Life, Stay]]]:
        """Whose orders are compared: where S18 is promised, all lives of a view; elsewhere those that go on from it to
        the same view, and those that are in it at the end of the run."""
        whole, newest = "S18" in self.header.promises, {life.member: life for life in self.lives}
        out: dict[tuple[object, ...], list[tuple[Life, Stay]]] = defaultdict(list)
        for life in self.lives:
            gone = life.crash is not None or any(life.of(Kind.LEAVE)) or newest[life.member] is not life
            for stay in life.stays:
                onward = ("gone", *life.key) if stay.next is None and gone else ("to", view_key(stay.next))
                out[stay.key, () if whole else onward].append((life, stay))
        return list(out.values())

    def meant_for(self, member: int, message: MessageId) -> bool:
        """Whether a member must have the message: to no group, or to one it was in when others delivered it."""
        row = self.originated.get(message)
        if (row is not None and row.groups is None) or (row is None and message not in self.addressed):
            return True
        return member in self.addressed.get(message, ())

    @cached_property
    def addressed(self) -> dict[MessageId, frozenset[int]]:
        """Who a message of groups is for: the members of these groups, as the first to deliver it saw them there."""
        out: dict[MessageId, frozenset[int]] = {}
        for life in self.lives:
            group: dict[str, tuple[int, ...]] = {}
            for row in life.rows:
                if row.kind == Kind.GROUP_VIEW:
                    for name in row.groups or ():
                        group[name] = row.members or ()
                elif row.kind == Kind.DELIVER and row.groups:
                    known = [name for name in row.groups if name in group]
                    members = frozenset(m for name in known for m in group[name])
                    for message in messages(row):
                        if known and message not in out:
                            out[message] = members
        return out


def find_gap(rows: list[Row]) -> str:
    """Where the local index of a life does not count 1, 2, 3, ..., or nothing."""
    last: dict[LifeKey, int] = defaultdict(int)
    for row in rows:
        key = (row.member, row.incarnation)
        if row.index != last[key] + 1:
            what = "twice" if row.index == last[key] else f"after {last[key]}"
            return f"member {row.member} has row {row.index} {what}: rows are missing or doubled"
        last[key] = row.index
    return ""


def messages(row: Row) -> list[MessageId]:
    """The messages of a submit, originate, receive or deliver row."""
    first = row.counter or 0
    return [(row.sender or 0, row.sender_incarnation or 0, c) for c in range(first, first + (row.count or 0))]


def view_key(row: Row | None) -> ViewKey | None:
    if row is None or row.view_seq is None or row.view_rep is None:
        return None
    return row.view_seq, row.view_rep


def named(message: MessageId) -> str:
    return f"{message[0]}:{message[2]}"
