"""L13 over arrays: who leaves has sent what it accepted, or says what it did not send."""

from __future__ import annotations

import numpy as np

from ordercast.trace.schema import Kind
from ordercast.verify.columns.groups import addressed, for_itself, has_groups, stayed_in
from ordercast.verify.columns.model import Array, Run, Stay
from ordercast.verify.plain.leaving import unsent
from ordercast.verify.verdict import Finding, broken, holds


def l13(run: Run) -> Finding:
    leaves = run.of(Kind.LEAVE)
    cuts, last, judged = run.cuts(leaves), {stay.life: stay for stay in run.stays}, 0
    for life in np.flatnonzero(np.diff(cuts)).tolist():
        leave = int(leaves[cuts[life]])
        owed = _owed(run, life, leave)
        judged += 1 + len(owed)
        units = _units(run, life, owed)
        for k in np.flatnonzero(units < 0)[:1].tolist():
            what = f"member {run.life_member[life]} left without having sent {run.life_member[life]}:{owed[k]}"
            return broken(f"{what}, and does not name it", run.rows(leave), judged)
        found = _went_without(run, last[life], np.unique(units), leave)
        if found is not None:
            return found
    return holds(judged)


def _owed(run: Run, life: int, leave: int) -> Array:
    """Numbers of what a life had accepted when it left, and does not name."""
    rows = run.of(Kind.SUBMIT)
    rows = rows[(rows >= run.life_start[life]) & (rows < leave)]
    rows = rows[run.own(rows, np.full(len(rows), life))]
    count = run.columns["count"][rows].astype(np.int64)
    step = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    numbers = np.unique(np.repeat(run.columns["counter"][rows], count) + step)
    excused = unsent(run.columns.row(leave))
    return numbers[(numbers < excused.start) | (numbers >= excused.stop)]


def _units(run: Run, life: int, numbers: Array) -> Array:
    """What a life originated each of its numbers in; -1: it never did."""
    units = run.units
    known = np.flatnonzero((units.owner == life) & (units.origin >= 0))
    if not len(known):
        return np.full(len(numbers), -1, np.int64)
    first = units.counter[known]
    size = run.columns["count"][units.origin[known]].astype(np.int64) if units.exact else np.ones(len(known), np.int64)
    place = np.searchsorted(first, numbers, "right") - 1
    inside = (place >= 0) & (numbers < first[place] + size[place])
    return np.where(inside, known[place], -1)


def _went_without(run: Run, stay: Stay, units: Array, leave: int) -> Finding | None:
    """Somebody of the leaver's last view who goes on from there without what was sent in it."""
    units = units[run.origin_view[units] == stay.code] if stay.view >= 0 else units[:0]
    if not len(units):
        return None
    grouped = run.columns["groups"][run.units.origin[units]] >= 0 if has_groups(run) else np.zeros(len(units), bool)
    for other in run.by_view[stay.code]:
        if other.next < 0:
            continue
        member = run.life_member[other.life]
        lacking = ~np.isin(units, run.units.events[other.first : other.last])
        for k in np.flatnonzero(lacking).tolist():
            if not grouped[k] or _meant(run, stay.life, leave, other, int(units[k])):
                what = (
                    f"member {member} went on without {run.named(int(units[k]))}, which was sent when its sender left"
                )
                return broken(what, run.rows(run.units.origin[units[k]], leave, other.next))
    return None


def _meant(run: Run, leaver: int, leave: int, stay: Stay, unit: int) -> bool:
    """Whether a message of groups was for a member; if nobody delivered it, for those who were in them all along."""
    member = run.life_member[stay.life]
    if addressed(run).code[unit] >= 0:
        return member in addressed(run).members(unit)
    made = int(run.units.origin[unit])
    groups = run.columns.tables["groups"][run.columns["groups"][made]]
    told = stay.view >= 0 and for_itself(run, leaver, made, leave)
    told = told and stayed_in(run, leaver, member, groups, made, leave)
    return told and stayed_in(run, stay.life, member, groups, stay.view, stay.next, untold=True)
