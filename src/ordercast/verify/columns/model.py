"""A run as arrays, taken apart once for all checkers.

Events are deliveries of units (what was ordered, see units.py), sorted by (life, local index); a stay is a life's time
in one regular view, a slice of its events.  Codes of views ascend with their ids; code 0 stands for "no view".
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ordercast.trace.columns import Columns, sorted_columns
from ordercast.trace.schema import Header, Kind, Row
from ordercast.types import ViewKind
from ordercast.verify.columns.units import Units, frames, messages
from ordercast.verify.lost import Lost, lost

Array = np.ndarray[Any, Any]
ViewKey = tuple[int, int]
_TRANSITIONAL = int(ViewKind.TRANSITIONAL)
_END, _LEAVE, _CRASH = map(int, (Kind.END, Kind.LEAVE, Kind.CRASH))
_TABLE_MAX = 1 << 20  # member ids up to this are looked up in a table


class ViewRow(NamedTuple):
    row: int
    life: int
    key: ViewKey
    regular: bool
    members: frozenset[int]


class Stay(NamedTuple):
    """A life in one regular view: the views' rows; its events first .. middle (regular) .. last (transitional)."""

    life: int
    code: int  # of the view
    view: int  # row, or -1
    transitional: int  # row of the transitional view that closed it, or -1
    next: int  # row of the next regular view, or -1
    first: int
    middle: int
    last: int


class Run:
    """One run."""

    def __init__(self, columns: Columns, header: Header) -> None:
        self.header = header
        self.columns, self.gap = columns, ""
        starts, ends = self._bounds_of_lives()
        if self.gap or not self._ascend(starts):
            self.columns, self.gap = sorted_columns(columns), ""
            starts, ends = self._bounds_of_lives()
        own = self.columns["member"][starts] > 0
        self.life_start, self.life_end = starts[own], ends[own]
        self._bounds = np.append(self.life_start, len(columns))
        self._member, self._incarnation = (self.columns[name][self.life_start] for name in ("member", "incarnation"))
        self.life_member: list[int] = self._member.tolist()
        self.life_incarnation: list[int] = self._incarnation.tolist()
        self.lives = len(self.life_member)
        self.world_end = int(self._bounds[0])  # rows of member 0 come first
        self.kind = self.columns["kind"]
        self.strangers: dict[tuple[int, int], int] = {}  # senders without a life, numbered
        self._of: dict[Kind, Array] = {}
        self._delivers: Array | None = None

    def _bounds_of_lives(self) -> tuple[Array, Array]:
        """Where lives begin and end; `gap` says where the local index of one does not count 1, 2, 3, ..."""
        member, incarnation, index = (self.columns[name] for name in ("member", "incarnation", "index"))
        change = np.flatnonzero((member[1:] != member[:-1]) | (incarnation[1:] != incarnation[:-1])) + 1
        starts = np.concatenate(([0], change))[: len(member)]
        ends = np.append(starts[1:], len(member))[: len(member)]
        expected = np.arange(1, len(index) + 1) - np.repeat(starts, ends - starts)
        for k in np.flatnonzero(index != expected)[:1].tolist():
            self.gap = f"member {int(member[k])} has row {int(index[k])} where {int(expected[k])} was expected"
        return starts, ends

    def _ascend(self, starts: Array) -> bool:
        lives = list(zip(*(self.columns[name][starts].tolist() for name in ("member", "incarnation")), strict=True))
        return all(one < two for one, two in pairwise(lives))

    def rows(self, *which: int) -> list[Row]:
        return [self.columns.row(int(k)) for k in which if k >= 0]

    def of(self, kind: Kind) -> Array:
        """Rows of a kind, of all lives."""
        if kind not in self._of:
            self._of[kind] = np.flatnonzero(self.kind[self.world_end :] == int(kind)) + self.world_end
        return self._of[kind]

    @property
    def delivers(self) -> Array:
        """Deliveries of something; a dummy is none."""
        if self._delivers is None:
            rows = self.of(Kind.DELIVER)
            self._delivers = rows[self.columns["count"][rows] > 0]
        return self._delivers

    @property
    def originates(self) -> Array:
        return self.of(Kind.ORIGINATE)

    def life_of(self, rows: Array) -> Array:
        """The life that wrote each row (ascending)."""
        return np.repeat(np.arange(self.lives), np.diff(self.cuts(rows)))

    @cached_property
    def delivered(self) -> int:
        """How many messages were delivered, over all lives."""
        return int(self.columns["count"][self.delivers].sum())

    def cuts(self, rows: Array) -> Array:
        """Where the rows of each life begin and end among `rows` (ascending): life k has cuts[k] .. cuts[k + 1]."""
        return rows.searchsorted(self._bounds)

    @cached_property
    def ended(self) -> list[bool]:
        """Whether a life's last words are there, or somebody saw it crash."""
        return self._over(_END, _LEAVE, _CRASH)

    def _over(self, *kinds: int) -> list[bool]:
        """Whether a row of these kinds ends a life, its own or one of member 0."""
        c, kind = self.columns, self.kind
        rows = np.flatnonzero(np.isin(kind, kinds))
        own = c["member"][rows] > 0
        who = np.where(own, c["member"][rows], c["sender"][rows]).tolist()
        which = np.where(own, c["incarnation"][rows], c["sender_incarnation"][rows]).tolist()
        known = set(zip(who, which, strict=True))  # of any incarnation: -1
        lives = zip(self.life_member, self.life_incarnation, strict=True)
        return [(member, incarnation) in known or (member, -1) in known for member, incarnation in lives]

    @cached_property
    def lost(self) -> Lost:
        """Lives whose rows are not there."""
        lives = list(zip(self.life_member, self.life_incarnation, strict=True))
        starts = np.flatnonzero(self.kind[: self.world_end] == int(Kind.START))
        crashed = self.columns["sender"][: self.world_end][self.kind[: self.world_end] == _CRASH].tolist()
        whom = (self.columns[name][starts].tolist() for name in ("sender", "sender_incarnation"))
        started = [(who, life) for who, life in zip(*whom, strict=True) if life >= 0]
        viewed = {member for view in self.views for member in view.members}
        assert self.units  # whoever was heard and has no life is a stranger now
        heard: set[tuple[int, int]] = set()
        if self.strangers:
            rows = self.delivers[self.owners(self.delivers) >= self.lives]
            heard = set(zip(*(self.columns[n][rows].tolist() for n in ("sender", "sender_incarnation")), strict=True))
        return lost(self.header, lives, started, crashed, viewed, heard)

    # -------------------------------------------------------------------------------------------------------- senders

    def owners(self, rows: Array) -> Array:
        """The life that each row's `sender` and `sender_incarnation` name; strangers get numbers above."""
        sender, incarnation = self.columns["sender"][rows], self.columns["sender_incarnation"][rows]
        owner = self._first_life(sender)
        members, incarnations = np.append(self.life_member, -1), np.append(self._incarnation, -2)
        wrong = np.flatnonzero((incarnations.take(owner) != incarnation) | (owner == self.lives))
        if not len(wrong):
            return owner
        while len(wrong):  # restarted members: try the next life
            step = np.minimum(owner[wrong] + 1, self.lives)
            same = members[step] == sender[wrong]
            owner[wrong] = np.where(same, step, self.lives)
            wrong = wrong[same]
            wrong = wrong[incarnations[owner[wrong]] != incarnation[wrong]]
        for k in np.flatnonzero(owner == self.lives).tolist():
            who = (int(sender[k]), int(incarnation[k]))
            owner[k] = self.lives + self.strangers.setdefault(who, len(self.strangers))
        return owner

    def own(self, rows: Array, life: Array) -> Array:
        """Whether each row's `sender` and `sender_incarnation` name the life that wrote it."""
        sender, incarnation = self.columns["sender"][rows], self.columns["sender_incarnation"][rows]
        out: Array = (sender == self._member[life]) & (incarnation == self._incarnation[life])
        return out

    def _first_life(self, sender: Array) -> Array:
        """The first life of each member named; self.lives: it has none."""
        if self._life_table is not None:
            found: Array = self._life_table.take(sender, mode="clip")
            return found
        first = {member: life for life, member in reversed(list(enumerate(self.life_member)))}
        distinct, which = np.unique(sender, return_inverse=True)
        return np.array([first.get(int(member), self.lives) for member in distinct], np.int64)[which]

    @cached_property
    def _life_table(self) -> Array | None:
        """The first life of each member by its id, and one entry more for all others."""
        largest = max(self.life_member)
        if largest > _TABLE_MAX:
            return None
        table = np.full(largest + 2, self.lives, np.int64)
        table[self.life_member[::-1]] = np.arange(self.lives - 1, -1, -1)
        return table

    # ---------------------------------------------------------------------------------------------------------- views

    @cached_property
    def views(self) -> list[ViewRow]:
        rows = self.of(Kind.VIEW)
        life = np.searchsorted(self.life_start, rows, "right") - 1
        seq, rep = self.columns["view_seq"][rows].tolist(), self.columns["view_rep"][rows].tolist()
        regular = (self.columns["view_kind"][rows] != _TRANSITIONAL).tolist()
        sets: dict[tuple[int, ...], frozenset[int]] = {}  # the same few again and again
        members = [sets.setdefault(of, frozenset(of)) for of in self.columns.sparse["members"].tuples(rows)]
        keys = zip(seq, rep, strict=True)
        return list(map(ViewRow, rows.tolist(), life.tolist(), keys, regular, members))

    def previous(self, row: int) -> tuple[int, int] | None:
        """The view that the one in this row follows."""
        seq, rep = (self.columns.sparse[name].get(row) for name in ("previous_seq", "previous_rep"))
        return None if seq is None else (seq, rep)

    @cached_property
    def view_at(self) -> dict[int, ViewRow]:
        return {view.row: view for view in self.views}

    @cached_property
    def view_code(self) -> dict[ViewKey | None, int]:
        keys = sorted({view.key for view in self.views if view.regular})
        codes: dict[ViewKey | None, int] = {None: 0}
        codes.update((key, code) for code, key in enumerate(keys, 1))
        return codes

    @cached_property
    def stays(self) -> list[Stay]:
        """In the order of rows; every life has at least one."""
        by_life: list[list[ViewRow]] = [[] for _ in range(self.lives)]
        for view in self.views:
            by_life[view.life].append(view)
        raw: list[tuple[int, int, int, int, int]] = []
        bounds: list[int] = []
        for life, views in enumerate(by_life):
            current, transitional, code, start = -1, -1, 0, int(self.life_start[life])
            for view in views:
                if not view.regular:
                    transitional = view.row if transitional < 0 else transitional
                    continue
                raw.append((life, code, current, transitional, view.row))
                bounds += [start, transitional if transitional >= 0 else view.row, view.row]
                current, transitional, code, start = view.row, -1, self.view_code[view.key], view.row
            end = int(self.life_end[life])
            raw.append((life, code, current, transitional, -1))
            bounds += [start, transitional if transitional >= 0 else end, end]
        cut = np.searchsorted(self.units.event_row, bounds).tolist()
        return [Stay(*fields, *cut[3 * k : 3 * k + 3]) for k, fields in enumerate(raw)]

    @cached_property
    def stay_starts(self) -> Array:
        """The first row of each stay: its view, or the life's first row."""
        return np.array([int(self.life_start[s.life]) if s.view < 0 else s.view for s in self.stays], np.int64)

    def stay_of(self, rows: Array) -> Array:
        return np.searchsorted(self.stay_starts, rows, "right") - 1

    @cached_property
    def stay_codes(self) -> Array:
        return np.array([stay.code for stay in self.stays], np.int64)

    @cached_property
    def by_view(self) -> dict[int, list[Stay]]:
        out: dict[int, list[Stay]] = {}
        for stay in self.stays:
            out.setdefault(stay.code, []).append(stay)
        return out

    @cached_property
    def together(self) -> list[list[Stay]]:
        """Whose orders are compared: where S18 is promised, all lives of a view; elsewhere those that go on from it to
        the same view, and those that are in it at the end of the run."""
        if "S18" in self.header.promises:
            return list(self.by_view.values())
        gone = self._over(_LEAVE, _CRASH)
        later = [one == two for one, two in zip(self.life_member, [*self.life_member[1:], 0], strict=True)]
        out: dict[tuple[int, int], list[Stay]] = {}
        for stay in self.stays:
            end = -1 - stay.life if gone[stay.life] or later[stay.life] else 0
            onward = end if stay.next < 0 else self.view_code[self.view_at[stay.next].key]
            out.setdefault((stay.code, onward), []).append(stay)
        return list(out.values())

    @cached_property
    def event_view(self) -> Array:
        """The code of the view of each event."""
        return np.repeat(self.stay_codes, [stay.last - stay.first for stay in self.stays])

    @cached_property
    def views_used(self) -> list[int]:
        """The codes of the views in which something was delivered."""
        return sorted({stay.code for stay in self.stays if stay.last > stay.first})

    @cached_property
    def origin_view(self) -> Array:
        """The code of the view each unit was originated in; -1: it never was."""
        origin = self.units.origin
        if len(self.view_code) == 1:
            return np.where(origin >= 0, 0, -1)
        return np.where(origin >= 0, self.stay_codes[self.stay_of(origin)], -1)

    # ---------------------------------------------------------------------------------------------------------- units

    @cached_property
    def units(self) -> Units:
        return frames(self) or messages(self)

    @cached_property
    def event_cuts(self) -> list[int]:
        """Events of life k: event_cuts[k] .. event_cuts[k + 1]."""
        out: list[int] = self.cuts(self.units.event_row).tolist()
        return out

    def log(self, life: int) -> Array:
        """The units a life delivered, in order."""
        return self.units.events[self.event_cuts[life] : self.event_cuts[life + 1]]

    def positions(self, life: int) -> Array:
        """Where in a life's log each unit is first delivered; -1: nowhere."""
        if life not in self._positions:
            if (len(self._positions) + 1) * len(self.units.owner) > 2**26:
                self._positions.clear()
            self._positions[life] = first_places(self.log(life), len(self.units.owner))
        return self._positions[life]

    @cached_property
    def _positions(self) -> dict[int, Array]:
        return {}

    @cached_property
    def leader(self) -> int:
        """A life that delivered nothing twice and of whose log all others are beginnings; -1: there is none."""
        logs = [self.log(life) for life in range(self.lives)]
        longest = max(logs, key=len)
        if not all((log == longest[: len(log)]).all() for log in logs if log is not longest):
            return -1
        life = next(life for life, log in enumerate(logs) if log is longest)
        return life if (self.positions(life)[longest] == np.arange(len(longest))).all() else -1

    def one_log(self, stays: list[Stay]) -> Array | None:
        """What was delivered in these stays, if all logs are beginnings of one with nothing twice; else None."""
        longest = max(stays, key=lambda stay: stay.last - stay.first)
        log = self.units.events[longest.first : longest.last]
        if self.leader >= 0 and len({stay.first - self.event_cuts[stay.life] for stay in stays}) == 1:
            return log
        if any(self.doubled[stay.life] for stay in stays):
            return None
        alike = (np.array_equal(self.units.events[s.first : s.last], log[: s.last - s.first]) for s in stays)
        return log if all(alike) else None

    @cached_property
    def doubled(self) -> list[bool]:
        """Whether a life delivered some unit twice."""
        if self.leader >= 0:
            return [False] * self.lives
        out = []
        for life in range(self.lives):
            log = self.log(life)
            out.append(bool((self.positions(life)[log] != np.arange(len(log))).any()))
        return out

    def named(self, unit: int) -> str:
        return f"{int(self.units.sender[unit])}:{int(self.units.counter[unit])}"

    def member_of(self, row: int) -> int:
        return int(self.columns["member"][row])


def first_places(log: Array, units: int) -> Array:
    place = np.full(units, -1, np.int64)
    place[log[::-1]] = np.arange(len(log) - 1, -1, -1)
    return place
