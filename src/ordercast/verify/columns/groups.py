"""S22 addressing, S23 once per gateway path; and who a message of groups was for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ordercast.trace.schema import Kind
from ordercast.verify.columns.lifecycle import lifecycle
from ordercast.verify.columns.model import Array, Run
from ordercast.verify.plain.groups import disagreement
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def has_groups(run: Run) -> bool:
    if not hasattr(run, "_has_groups"):
        run._has_groups = bool((run.columns["groups"] >= 0).any()) if run.columns.tables["groups"] else False  # type: ignore[attr-defined]
    return run._has_groups  # type: ignore[attr-defined,no-any-return]


class Addressed:
    """For each unit the members of its groups, as the first life to deliver it knew them there."""

    def __init__(self, run: Run) -> None:
        self.sets: list[frozenset[int]] = []
        self.code: Array = np.full(len(run.units.owner), -1, np.int64)
        rows = run.units.event_row
        codes = run.columns["groups"][rows]
        of_event = np.full(len(rows), -1, np.int64)
        for start, end, known in _intervals(run):
            for code in np.unique(codes[start:end]).tolist():
                names = run.columns.tables["groups"][code] if code >= 0 else ()
                names = [name for name in names if name in known]
                if names:
                    of_event[start:end][codes[start:end] == code] = len(self.sets)
                    self.sets.append(frozenset(m for name in names for m in known[name][1]))
        told = np.flatnonzero(of_event >= 0)[::-1]
        self.code[run.units.events[told]] = of_event[told]  # the first event comes last and stays

    def members(self, unit: int) -> frozenset[int]:
        code = int(self.code[unit])
        return self.sets[code] if code >= 0 else frozenset()


def addressed(run: Run) -> Addressed:
    if not hasattr(run, "_addressed"):
        run._addressed = Addressed(run)  # type: ignore[attr-defined]
    return run._addressed  # type: ignore[attr-defined,no-any-return]


def for_itself(run: Run, life: int, made: int, until: int) -> bool:
    """Of a message of groups that nobody delivered: its sender was in one of them, and stayed in it in that view."""
    groups = run.columns.tables["groups"][run.columns["groups"][made]]
    return stayed_in(run, life, run.life_member[life], groups, made, until)


def stayed_in(
    run: Run, life: int, member: int, groups: Iterable[str], since: int, until: int, untold: bool = False
) -> bool:
    """Whether a life was told a member in one of these groups before its row `since`, and never after that it is out.

    untold: where it was told nothing of a group.
    """
    changes, members, codes = run.of(Kind.GROUP_VIEW), run.columns.sparse["members"], run.columns["groups"]
    cuts, table = run.cuts(changes), run.columns.tables["groups"]
    inside: dict[str, bool] = {}
    for row in changes[cuts[life] : cuts[life + 1]].tolist():
        if row > until:
            break
        for name in table[codes[row]] if codes[row] >= 0 else ():
            here = member in (members.get(row) or ())
            inside[name] = here and (row < since or inside.get(name, untold))
    return any(inside.get(name, untold) for name in groups)


def _intervals(run: Run) -> list[tuple[int, int, dict[str, tuple[int, tuple[int, ...]]]]]:
    """Slices of events between changes of groups at one life: (first, last, group -> (row, members))."""
    changes = run.of(Kind.GROUP_VIEW)
    cuts = run.cuts(changes)
    places = np.searchsorted(run.units.event_row, changes).tolist()
    members, table, codes = run.columns.sparse["members"], run.columns.tables["groups"], run.columns["groups"]
    out: list[tuple[int, int, dict[str, tuple[int, tuple[int, ...]]]]] = []
    for life in range(run.lives):
        known: dict[str, tuple[int, tuple[int, ...]]] = {}
        at = run.event_cuts[life]
        for k in range(cuts[life], cuts[life + 1]):
            if places[k] > at:
                out.append((at, places[k], dict(known)))
                at = places[k]
            row = int(changes[k])
            for name in table[codes[row]] if codes[row] >= 0 else ():
                known[name] = (row, tuple(members.get(row) or ()))
        out.append((at, run.event_cuts[life + 1], dict(known)))
    return out


def s22(run: Run) -> Finding:
    rows = run.units.event_row
    codes = run.columns["groups"][rows]
    if (codes >= 0).any() and not len(run.of(Kind.GROUP_VIEW)):
        return cannot_judge("messages name groups but no member was told a group's members")
    for member in run.header.options.get("gateways") or ():
        passing = np.flatnonzero(run.columns["member"][rows] == member)
        if len(passing):
            return broken(f"member {member} only passes messages on, but delivered", run.rows(rows[passing[0]]))
    for start, end, known in _intervals(run):
        for code in np.unique(codes[start:end]).tolist():
            if code < 0:
                continue
            who = run.member_of(int(rows[start]))
            views = [known[name] for name in run.columns.tables["groups"][code] if name in known]
            if not any(who in members for _, members in views):
                k = start + int(np.flatnonzero(codes[start:end] == code)[0])
                what = f"member {who} delivered {run.named(int(run.units.events[k]))} without being in its groups"
                return broken(what, run.rows(*(row for row, _ in views), rows[k]))
    judged = len(run.of(Kind.GROUP_VIEW)) + int((run.columns["groups"][run.delivers] >= 0).sum())
    if run.header.options.get("gateways"):
        judged = len(run.of(Kind.GROUP_VIEW)) + len(run.delivers)
    return disagreement(lifecycle(run)) or holds(judged)


def s23(run: Run) -> Finding:
    units, rows, c = run.units, run.units.event_row, run.columns
    ring = c["ring"][rows]
    for which in np.unique(ring).tolist():
        on = np.flatnonzero(ring == which)
        first = np.empty(len(units.owner), np.int64)
        first[units.events[on[::-1]]] = on[::-1]
        other = rows[first[units.events[on]]]
        differs = (c["order_epoch"][other] != c["order_epoch"][rows[on]]) | (
            c["order_seq"][other] != c["order_seq"][rows[on]]
        )
        for k in np.flatnonzero(differs)[:1].tolist():
            what = f"{run.named(int(units.events[on[k]]))} has two numbers on ring {which}"
            return broken(what, run.rows(other[k], rows[on[k]]))
    detail = c.sparse["detail"]
    stamped = set(detail.rows[run.kind[detail.rows] == int(Kind.DELIVER)].tolist())
    stamps: dict[int, tuple[object, int]] = {}
    for unit, row in zip(units.events.tolist(), rows.tolist(), strict=True) if stamped else ():
        stamp = (detail.get(row) or {}).get("stamp") if row in stamped else None
        other_stamp, at = stamps.setdefault(unit, (stamp, row))
        if other_stamp != stamp:
            return broken(f"{run.named(unit)} changed its timestamp on the way", run.rows(at, row))
    for unit in units.events.tolist():
        if stamps.get(unit, (None, 0))[0] is None:
            return cannot_judge(f"no delivery of {run.named(unit)} says its timestamp")
    return holds(run.delivered)
