"""Many runs at once: one pass over a whole row group finds the runs that surely keep a promise.

Sure are runs of the common shape: every member has one life and one view, deliver rows repeat originate rows, all logs
are prefixes of the longest one.  Every other (run, promise) is judged by itself, exactly.  So a promise is never called
broken here, and the work per run is a few array elements instead of a few hundred array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ordercast.trace.columns import Columns
from ordercast.trace.schema import Header, Kind
from ordercast.types import ViewKind
from ordercast.verify.columns.model import Array, find_frames

_MEMBERS_MAX = 1 << 16
_LOGS = ("S2", "S17", "S18")
_VIEWS = ("S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13")


class Batch:
    """Several runs, one after the other in `columns`: run k has rows cuts[k] .. cuts[k + 1]."""

    def __init__(self, columns: Columns, cuts: Sequence[int], headers: Sequence[Header]) -> None:
        self.c, self.headers = columns, headers
        self.cuts = np.asarray(cuts, np.int64)
        self.runs = len(headers)
        self.odd = np.zeros(self.runs, bool)  # not of the common shape
        member, incarnation = columns["member"], columns["incarnation"]
        change = (member[1:] != member[:-1]) | (incarnation[1:] != incarnation[:-1])
        inner = self.cuts[(self.cuts > 0) & (self.cuts < len(columns))]
        change[inner - 1] = True
        starts = np.concatenate(([0], np.flatnonzero(change) + 1))
        ends = np.append(starts[1:], len(columns))
        own = member[starts] > 0
        self._index(starts, ends)
        self.start, self.end = starts[own], ends[own]
        self.member, self.incarnation = member[self.start].astype(np.int64), incarnation[self.start]
        self.run = np.searchsorted(self.cuts, self.start, "right") - 1
        self.kind = columns["kind"]
        self.lives = len(self.start)

    def _index(self, starts: Array, ends: Array) -> None:
        """Local indexes count 1, 2, 3, ...; members and incarnations ascend."""
        index = self.c["index"]
        wrong = np.flatnonzero(index - (np.arange(1, len(index) + 1) - np.repeat(starts, ends - starts)))
        self._mark(wrong)
        a, b = starts[:-1], starts[1:]
        member, incarnation = self.c["member"], self.c["incarnation"]
        back = (member[a] > member[b]) | ((member[a] == member[b]) & (incarnation[a] > incarnation[b]))
        back &= np.searchsorted(self.cuts, a, "right") == np.searchsorted(self.cuts, b, "right")
        self._mark(b[back])

    def _mark(self, rows: Array) -> None:
        self.odd[np.searchsorted(self.cuts, rows, "right") - 1] = True

    def _of(self, kind: Kind) -> tuple[Array, Array]:
        """Rows of a kind and where each life's begin among them."""
        rows = np.flatnonzero(self.kind == kind)
        if (self.c["member"][rows] == 0).any():
            self._mark(rows[self.c["member"][rows] == 0])
        return rows, np.searchsorted(rows, np.append(self.start, len(self.c)))

    def prepare(self) -> bool:
        """Take the runs apart; false: not even that can be done at once."""
        c = self.c
        if not self.lives or int(self.member.max()) > _MEMBERS_MAX:
            return False
        self._one_life_each()
        if c.tables["groups"]:
            self._mark(np.flatnonzero(c["groups"] >= 0))
        self.delivers, self.deliver_cuts = self._of(Kind.DELIVER)
        self.originates, cuts = self._of(Kind.ORIGINATE)
        if not len(self.delivers) or not len(self.originates):
            return False
        life = np.repeat(np.arange(self.lives), np.diff(cuts))
        first, size = c["counter"][self.originates], c["count"][self.originates].astype(np.int64)
        own = (c["sender"][self.originates] == self.member[life]) & (size > 0)
        own &= c["sender_incarnation"][self.originates] == self.incarnation[life]
        own[1:] &= (life[1:] != life[:-1]) | (first[1:] >= first[:-1] + size[:-1])
        self._mark(self.originates[~own])
        self.owner = life
        return self._units(life, first, size, cuts)

    def _one_life_each(self) -> None:
        again = (self.run[1:] == self.run[:-1]) & (self.member[1:] == self.member[:-1])
        self.odd[self.run[1:][again]] = True
        self.odd[np.setdiff1d(np.arange(self.runs), self.run)] = True  # no life at all

    def _units(self, life: Array, first: Array, size: Array, cuts: Array) -> bool:
        """The frame of each delivery, and each life's log against the longest of its run."""
        c, rows = self.c, self.delivers
        width = int(self.member.max()) + 2
        table = np.full(self.runs * width, self.lives, np.int64)
        table[self.run * width + self.member] = np.arange(self.lives)
        counts = np.diff(self.deliver_cuts)
        run_of = np.repeat(self.run, counts)
        if len(run_of) != len(rows):
            return False  # deliver rows of nobody
        sender = np.minimum(c["sender"][rows], width - 1)
        of = table[run_of * width + sender]
        known = np.append(self.incarnation, -2)[of] == c["sender_incarnation"][rows]
        self.odd[run_of[~known]] = True
        of[~known] = 0
        unit, match = find_frames(life, first, size, cuts, of, c["counter"][rows], c["count"][rows])
        self.odd[run_of[~match]] = True
        self.units = unit
        longest = np.zeros(self.runs, np.int64)
        order = np.argsort(counts, kind="stable")
        longest[self.run[order]] = order
        begin = self.deliver_cuts[:-1]
        place = np.arange(len(rows)) - np.repeat(begin, counts)
        model = np.repeat(begin[longest[self.run]], counts) + place
        self.odd[run_of[unit[model] != unit]] = True
        chosen_lives = longest[np.unique(self.run)]
        model_events = np.concatenate([np.arange(begin[k], begin[k] + counts[k]) for k in chosen_lives.tolist()])
        self.rank = np.full(len(first), -1, np.int64)
        self.rank[unit[model_events]] = place[model_events]
        self.odd[run_of[model_events[self.rank[unit[model_events]] != place[model_events]]]] = True  # twice
        self.model_events, self.place, self.run_of = model_events, place, run_of
        return True

    # ------------------------------------------------------------------------------------ what surely holds, by run

    def fifo(self) -> Array:
        events = self.model_events
        unit = self.units[events]
        same = np.zeros(len(unit), bool)
        later = np.flatnonzero(unit > 0)
        same[later] = self.owner[unit[later] - 1] == self.owner[unit[later]]
        before = self.rank[unit - 1]
        bad = same & ((before < 0) | (before >= self.place[events]))
        return self._except(self.run_of[events[bad]])

    def causal(self) -> Array:
        known = np.searchsorted(self.delivers, self.originates) - self.deliver_cuts[:-1][self.owner]
        bad = (self.rank >= 0) & (self.rank < known)
        return self._except(self.run[self.owner[bad]])

    def _except(self, runs: Array) -> Array:
        sure = ~self.odd
        sure[runs] = False
        return sure

    def viewed(self) -> Array:
        """Every life has one view, the same in its run, before all it does; originations name it."""
        c = self.c
        rows, cuts = self._of(Kind.VIEW)
        sure = ~self.odd
        sure[self.run[np.diff(cuts) != 1]] = False
        if not sure.any():
            return sure
        lives = np.flatnonzero(sure[self.run])
        view = np.full(self.lives, -1, np.int64)
        view[lives] = rows[cuts[:-1][lives]]
        submits, submit_cuts = self._of(Kind.SUBMIT)
        for other, begin in (
            (self.delivers, self.deliver_cuts),
            (self.originates, np.searchsorted(self.originates, np.append(self.start, len(c)))),
            (submits, submit_cuts),
        ):
            first = np.append(other, len(c))[begin[:-1]]
            early = (begin[1:] > begin[:-1]) & (first < view)
            sure[self.run[early]] = False
        seq, rep = c["view_seq"], c["view_rep"]
        mine = view[self.owner]
        told = (mine >= 0) & (seq[self.originates] >= 0)
        wrong = told & ((seq[self.originates] != seq[mine]) | (rep[self.originates] != rep[mine]))
        sure[self.run[self.owner[wrong]]] = False
        self._same_views(view, lives, sure)
        return sure

    def _same_views(self, view: Array, lives: Array, sure: Array) -> None:
        c = self.c
        members, detail = c.sparse["members"], c.sparse["detail"]
        known: dict[int, tuple[Any, ...]] = {}
        for life in lives.tolist():
            run, row = int(self.run[life]), int(view[life])
            of = members.get(row) or ()
            more = detail.get(row) or {}
            what = (int(c["view_seq"][row]), int(c["view_rep"][row]), frozenset(of), str(more.get("components")))
            usual = c["view_kind"][row] != ViewKind.TRANSITIONAL and more.get("primary", True) is not False
            if known.setdefault(run, what) != what or int(self.member[life]) not in of or not usual:
                sure[run] = False

    def unviewed(self) -> Array:
        """No life has a view."""
        _, cuts = self._of(Kind.VIEW)
        return self._except(self.run[np.diff(cuts) > 0])

    def in_order(self) -> Array:
        """S14: originated without leaving any out."""
        first = self.c["counter"][self.originates]
        size = self.c["count"][self.originates].astype(np.int64)
        left = (self.owner[1:] == self.owner[:-1]) & (first[1:] > first[:-1] + size[:-1])
        return self._except(self.run[self.owner[1:][left]])

    def submitted(self) -> Array:
        """S3: submissions count 1, 2, 3, ... without a gap."""
        rows, cuts = self._of(Kind.SUBMIT)
        life = np.repeat(np.arange(self.lives), np.diff(cuts))
        first, size = self.c["counter"][rows], self.c["count"][rows].astype(np.int64)
        expected = np.ones(len(rows), np.int64)
        follows = np.concatenate(([False], life[1:] == life[:-1])) if len(rows) else np.empty(0, bool)
        expected[follows] = (first + size)[:-1][follows[1:]]
        self.submits, self.submit_cuts = rows, cuts
        return self._except(self.run[life[first != expected]])

    def integrity(self) -> Array:
        """S1, where submissions are in order, own, of one service, and details are few."""
        c, rows = self.c, self.delivers
        sure = self.submitted()
        origin = self.originates[self.units]
        same = c["digest"][origin] == c["digest"][rows]
        same &= (c["service"][origin] == c["service"][rows]) & (c["time_ns"][origin] <= c["time_ns"][rows])
        sure[self.run_of[~same]] = False
        submits, cuts = self.submits, self.submit_cuts
        life = np.repeat(np.arange(self.lives), np.diff(cuts))
        own = (c["sender"][submits] == self.member[life]) & (c["sender_incarnation"][submits] == self.incarnation[life])
        own[1:] &= (life[1:] != life[:-1]) | (c["service"][submits[1:]] == c["service"][submits[:-1]])
        sure[self.run[life[~own]]] = False
        # numbers have no gap, so the last message of a frame lies in the last submission before it or nowhere
        total = np.concatenate(([0], np.cumsum(c["count"][submits].astype(np.int64))))
        done = np.searchsorted(submits, self.originates)
        accepted = total[done] - total[cuts[:-1][self.owner]]
        last = c["counter"][self.originates] + c["count"][self.originates].astype(np.int64) - 1
        good = (last <= accepted) & (c["counter"][self.originates] >= 1)
        good &= c["service"][self.originates] == np.append(c["service"][submits], 0)[np.maximum(done - 1, 0)]
        sure[self.run[self.owner[~good]]] = False
        noted = c.sparse["detail"].rows
        if len(noted):
            busy = noted[np.isin(self.kind[noted], (Kind.DELIVER, Kind.ORIGINATE))]
            sure[np.searchsorted(self.cuts, busy, "right") - 1] = False
        return sure


def surely(columns: Columns, cuts: Sequence[int], headers: Sequence[Header], promises: set[str]) -> dict[str, Array]:
    """For each promise which runs surely keep it; a promise that is not there has no such test."""
    batch = Batch(columns, cuts, headers)
    if not promises or not batch.prepare():
        return {}
    tests: list[tuple[tuple[str, ...], Callable[[], Array]]] = [
        (_LOGS, lambda: ~batch.odd),
        (("S15",), batch.fifo),
        (("S16",), batch.causal),
        (_VIEWS, batch.viewed),
        (("S19",), lambda: batch.unviewed() | batch.viewed()),  # view by view: who delivers early has a hole later
        (("S14",), lambda: batch.viewed() & batch.in_order()),
        (("S3",), batch.submitted),
        (("S1",), batch.integrity),
    ]
    out: dict[str, Array] = {}
    for ids, test in tests:
        if promises & set(ids):
            out |= dict.fromkeys(ids, test())
    return out
