"""What notes tell of replicated states, as arrays: one entry per note, codes for places, calls and views.

A place is (n, digest); the step that led to it gives it one place before it, so places are trees, numbered here depth
first: one is in the past of another if its interval holds the other's number.  A merged state is the root of a tree of
its own, with the places it was made of as its *tips*; the past of whatever grows on it goes on there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ordercast.trace.schema import CELLS, Kind
from ordercast.verify.columns.model import Array, Run, ViewKey

APPLIED, ANSWERED, LOST, VIEW, DECIDED, FOUND, COMPLETE, OTHER = range(8)
_NAMES = {"applied": APPLIED, "answered": ANSWERED, "lost": LOST, "state": OTHER}
_WHATS = {"view": VIEW, "decided": DECIDED, "found": FOUND, "complete": COMPLETE}
_NUMBER_BITS = 42  # of a call's number, in its key


class Notes:
    """Of one run: the life, the kind, the place (-1: it says none) of each note, and the place of its life before."""

    def __init__(self, run: Run) -> None:
        self.run = run
        detail = run.columns.sparse["detail"]
        told = [(row, detail.get(row) or {}) for row in run.of(Kind.NOTE).tolist()]
        told = [(row, fields) for row, fields in told if fields.get("name") in _NAMES]
        self.fields: list[dict[str, Any]] = [fields for _, fields in told]
        self.row = np.array([row for row, _ in told], np.int64)
        self.life = np.searchsorted(run.life_start, self.row, "right") - 1
        self.time = run.columns["time_ns"][self.row]
        self.kind = np.array([_kind(fields) for fields in self.fields], np.int64)
        self._code_places()
        self._code_views()
        self._grow()
        self._name_calls()

    def of(self, *kinds: int) -> Array:
        """The notes of these kinds, by number."""
        return np.flatnonzero(np.isin(self.kind, kinds))

    def flag(self, name: str, which: Array, default: bool = False) -> Array:
        return np.array([bool(self.fields[k].get(name, default)) for k in which.tolist()], bool)

    def member(self, which: Array) -> Array:
        return np.array(self.run.life_member, np.int64)[self.life[which]]

    # ---------------------------------------------------------------------------------------------------------- codes

    def _code_places(self) -> None:
        codes: dict[tuple[int, str], int] = {}
        place = [codes.setdefault((f["n"], f["h"]), len(codes)) if "h" in f else -1 for f in self.fields]
        self.place = np.array(place, np.int64)
        self._parts = {
            int(self.place[k]): [codes.setdefault((part[0], part[1]), len(codes)) for part in self.fields[k]["parts"]]
            for k in self.of(DECIDED).tolist()
            if self.fields[k].get("parts")
        }
        self.n = np.array([n for n, _ in codes], np.int64)
        self.before = np.full(len(self.row), -1, np.int64)
        placed = np.flatnonzero(self.place >= 0)
        same = self.life[placed[1:]] == self.life[placed[:-1]]
        self.before[placed[1:][same]] = self.place[placed[:-1][same]]

    def _code_views(self) -> None:
        """Epochs of decisions, and the views lives stand in; codes ascend with ids, -1: none."""
        columns = self.run.columns
        seqs, reps = columns["view_seq"][self.row], columns["view_rep"][self.row].tolist()
        none = (seqs == CELLS["view_seq"].null).tolist()
        here = [(-1, -1) if n else (seq, rep) for n, seq, rep in zip(none, seqs.tolist(), reps, strict=True)]
        keys: list[ViewKey | None] = []
        for kind, fields in zip(self.kind.tolist(), self.fields, strict=True):
            seq, _, rep = fields["epoch"].partition(".") if kind == DECIDED else ("", "", "")
            keys.append((int(seq), int(rep)) if seq else None)
        self.views = sorted({*here, *(key for key in keys if key is not None)})
        code = {key: k for k, key in enumerate(self.views)}
        self.epoch = np.array([code.get(key, -1) if key else -1 for key in keys], np.int64)
        own = np.array([code[key] for key in here], np.int64)
        last = self.since(self.kind == VIEW)
        self.stands = np.where(last >= 0, own[last], own)

    def since(self, begins: Array) -> Array:
        """For each note the last of its life, up to itself, that begins something; -1: none did."""
        last = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), -1))
        return np.where((last >= 0) & (self.life[last] == self.life), last, -1)

    # --------------------------------------------------------------------------------------------------------- the past

    def _grow(self) -> None:
        size = len(self.n)
        parent = np.full(size, -1, np.int64)
        steps = self.of(APPLIED)[::-1]  # the first that leads somewhere counts
        steps = steps[self.before[steps] >= 0]
        steps = steps[self.n[self.before[steps]] < self.n[self.place[steps]]]
        parent[self.place[steps]] = self.before[steps]
        parent[list(self._parts)] = -1
        order = np.argsort(self.n, kind="stable").tolist()  # whoever comes before has fewer calls
        above, span = parent.tolist(), [1] * size
        for place in reversed(order):
            if above[place] >= 0:
                span[above[place]] += span[place]
        number, root, free = [0] * size, list(range(size)), [0] * size
        next_tree = 0
        for place in order:
            if above[place] < 0:
                number[place], next_tree = next_tree, next_tree + span[place]
            else:
                number[place], root[place] = free[above[place]], root[above[place]]
                free[above[place]] += span[place]
            free[place] = number[place] + 1
        self._number, self._end = np.array(number, np.int64), np.array(number, np.int64) + np.array(span, np.int64)
        self._root = np.array(root, np.int64)
        self._tips = {place: self._reached(place) for place in self._parts}

    def _reached(self, merged: int) -> list[int]:
        """All tips that the past of a merged state goes through."""
        seen: dict[int, None] = {}
        todo = [merged]
        while todo:
            for tip in self._parts.get(int(self._root[todo.pop()]), ()):
                if tip not in seen:
                    seen[tip] = None
                    todo.append(tip)
        return list(seen)

    def past(self, of: Array | int, places: Array) -> Array:
        """Whether each place is `of` (one, or one for each), or before it."""
        of = np.broadcast_to(np.asarray(of, np.int64), places.shape)
        begin, end = self._number[places], self._end[places]
        out: Array = (begin <= self._number[of]) & (self._number[of] < end)
        root = self._root[of]
        for merged in set(np.unique(root).tolist()) & set(self._tips):
            on = root == merged
            for tip in self._tips[merged]:
                out |= on & (begin <= self._number[tip]) & (self._number[tip] < end)
        return out

    # ------------------------------------------------------------------------------------------------------------ calls

    def _name_calls(self) -> None:
        """The calls of the step that led to each place, by key; steps that are nobody's have none."""
        self._owners: dict[tuple[int, int], int] = {}
        last = {int(self.place[k]): k for k in self.of(APPLIED).tolist()}
        steps = [(place, self.fields[k]) for place, k in last.items() if self.fields[k]["caller"]]
        count = np.array([fields["count"] for _, fields in steps], np.int64)
        owner = [self.owner(fields["caller"], fields["life"]) for _, fields in steps]
        self.led_call = keys(owner, [fields["first"] for _, fields in steps], count)
        self.led_place = np.repeat(np.array([place for place, _ in steps], np.int64), count)

    def owner(self, member: int, life: int) -> int:
        return self._owners.setdefault((member, life), len(self._owners))

    def calls(self, place: int) -> Array:
        """Keys of all that were applied on the way there."""
        return np.unique(self.led_call[self.past(place, self.led_place)])

    def named(self, key: int) -> str:
        member = next(who[0] for who, k in self._owners.items() if k == key >> _NUMBER_BITS)
        return f"call {member}:{key & (1 << _NUMBER_BITS) - 1}"


def keys(owner: Iterable[int], first: Iterable[int], count: Array) -> Array:
    """Keys of the calls first .. first + count - 1 of each owner."""
    step = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    base = np.array([who << _NUMBER_BITS | number for who, number in zip(owner, first, strict=True)], np.int64)
    out: Array = np.repeat(base, count) + step
    return out


def _kind(fields: dict[str, Any]) -> int:
    return _WHATS.get(fields.get("what", ""), OTHER) if fields["name"] == "state" else _NAMES[fields["name"]]


def notes(run: Run) -> Notes:
    """Made once for a run."""
    if "_notes" not in run.__dict__:
        run.__dict__["_notes"] = Notes(run)
    made: Notes = run.__dict__["_notes"]
    return made
