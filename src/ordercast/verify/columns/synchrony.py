"""S9, S10 the view of a message, S11, S13 equal sets, S14 own messages, S20 safe ones, over arrays."""

from __future__ import annotations

import numpy as np

from ordercast.trace.schema import NULL_U32, Kind, Level
from ordercast.types import Service, ViewKind
from ordercast.verify.columns.groups import addressed, for_itself, has_groups
from ordercast.verify.columns.model import Array, Run, Stay
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds

_DELIVER, _REGULAR, _TRANSITIONAL = int(Kind.DELIVER), int(ViewKind.REGULAR), int(ViewKind.TRANSITIONAL)


def s9(run: Run) -> Finding:
    astray = _astray(run)
    if astray >= 0:
        at = max((view.row for view in run.views if view.row < astray), default=-1)
        what = f"member {run.member_of(astray)} delivered for another view than it was in"
        return broken(what, run.rows(at, astray))
    events, rows, view = run.units.events, run.units.event_row, run.event_view
    if len(run.views_used) < 2:
        return holds(run.delivered)
    first = np.empty(len(run.units.owner), np.int64)
    first[events[::-1]] = np.arange(len(events) - 1, -1, -1)
    other = first[events]
    differs = np.flatnonzero(view[other] != view)
    if len(differs):
        k = int(differs[0])
        what = f"{run.named(int(events[k]))} was delivered in two views"
        return broken(what, run.rows(rows[other[k]], rows[k]), run.delivered)
    return holds(run.delivered)


def _astray(run: Run) -> int:
    """The first deliver row that names another view than the last one its life installed, or -1."""
    c = run.columns
    bounds = {0: (-1, NULL_U32, 0), **dict.fromkeys(run.life_start.tolist(), (-1, NULL_U32, 0))}
    bounds |= {view.row: (*view.key, _REGULAR if view.regular else _TRANSITIONAL) for view in run.views}
    starts = sorted(bounds)
    lengths = np.diff([*starts, len(c)])
    suspects: set[int] = set()
    for k, name in enumerate(("view_seq", "view_rep", "view_kind")):
        known = np.array([bounds[row][k] for row in starts], c[name].dtype)
        odd = np.flatnonzero(c[name] != np.repeat(known, lengths))  # few: most rows of any kind name their view
        named = (run.kind[odd] == _DELIVER) & (c["view_seq"][odd] >= 0) & (c["view_rep"][odd] != NULL_U32)
        suspects.update(odd[named & (c[name][odd] != 0) if name == "view_kind" else named][:1].tolist())
    return min(suspects, default=-1)


def s10(run: Run) -> Finding:
    c, rows = run.columns, run.originates
    if len(rows):
        stay = run.stay_of(rows)
        keys = [key or (-1, -1) for key in run.view_code]
        codes = run.stay_codes[stay]
        told = c["view_seq"][rows] >= 0
        wrong = told & ((c["view_seq"][rows] != np.array([k[0] for k in keys])[codes])
                        | (c["view_rep"][rows] != np.array([k[1] for k in keys])[codes]))  # fmt: skip
        closing = np.array([s.transitional if s.transitional >= 0 else len(c) for s in run.stays])[stay]
        bad = np.flatnonzero(wrong | (rows > closing))
        if len(bad):
            row, at = int(rows[bad[0]]), run.stays[int(stay[bad[0]])]
            what = f"member {run.member_of(row)} originated outside the regular view it names"
            return broken(what, run.rows(at.view, at.transitional if at.transitional < row else -1, row))
    events, event_rows = run.units.events, run.units.event_row
    origin = run.origin_view[events]
    differs = np.flatnonzero((origin >= 0) & (origin != run.event_view))
    if len(differs):
        k = int(differs[0])
        what = f"{run.named(int(events[k]))} was delivered in another view than it was originated in"
        return broken(what, run.rows(run.units.origin[events[k]], event_rows[k]), run.delivered)
    return holds(int(c["count"][rows].sum()) + run.delivered)


def s11(run: Run) -> Finding:
    ways: dict[tuple[int, object], list[Stay]] = {}
    for stay in run.stays:
        if stay.view >= 0 and stay.next >= 0:
            ways.setdefault((stay.code, run.view_at[stay.next].key), []).append(stay)
    judged = sum(map(len, ways.values()))
    for stays in ways.values():
        found = _differ(run, [(stay.life, stay.first, stay.last) for stay in stays])
        if found:
            event, who = found
            what = f"member {run.life_member[stays[who].life]} went the same way as others without "
            what += run.named(int(run.units.events[event]))
            return broken(what, run.rows(run.units.event_row[event], stays[who].next), judged)
    return holds(judged)


def s13(run: Run) -> Finding:
    same: dict[tuple[object, ...], list[Stay]] = {}
    for stay in run.stays:
        if stay.view >= 0 and stay.transitional >= 0:
            view = run.view_at[stay.transitional]
            same.setdefault((stay.code, view.key, view.members), []).append(stay)
    judged = sum(map(len, same.values()))
    for stays in same.values():
        going = [stay for stay in stays if stay.next >= 0]
        before = [(stay.life, stay.first, stay.middle) for stay in stays]
        during = [(stay.life, stay.middle, stay.last) for stay in going]
        for of, parts in ((stays, before), (going, during)):
            found = _differ(run, parts)
            if found:
                event, who = found
                what = f"member {run.life_member[of[who].life]} lacks {run.named(int(run.units.events[event]))}, which "
                what += "another delivered around the same transitional view"
                return broken(what, run.rows(run.units.event_row[event], of[who].transitional), judged)
    return holds(judged)


def _differ(run: Run, parts: list[tuple[int, int, int]]) -> tuple[int, int] | None:
    """Of slices (life, first, last) of events: an event whose unit another life, for which it was too, has not; which.

    Without groups each is compared with the first; with groups a unit delivered by some is looked for in all others.
    """
    events = run.units.events
    logs = [events[first:last] for _, first, last in parts]
    if all(np.array_equal(log, logs[0]) for log in logs[1:]):
        return None
    if has_groups(run):
        return _somebody_lacks(run, parts)
    for k in range(1, len(logs)):
        for one, two in ((0, k), (k, 0)):
            lacking = np.flatnonzero(~np.isin(logs[one], logs[two]))
            if len(lacking):
                return parts[one][1] + int(lacking[0]), two
    return None


def _somebody_lacks(run: Run, parts: list[tuple[int, int, int]]) -> tuple[int, int] | None:
    events = run.units.events
    told = np.concatenate([np.arange(first, last) for _, first, last in parts])
    units = np.unique(events[told])
    mine = [np.isin(units, events[first:last]) for _, first, last in parts]
    disputed = told[np.isin(events[told], units[~np.logical_and.reduce(mine)])]  # few
    for who, (life, _, _) in enumerate(parts):
        lacking = disputed[np.isin(events[disputed], units[~mine[who]])]
        lacking = lacking[_meant(run, lacking, life)]
        if len(lacking):
            return int(lacking[0]), who
    return None


def _meant(run: Run, events: Array, life: int) -> Array:
    """Which of these events' units the life must have, too."""
    out = np.ones(len(events), bool)
    if has_groups(run):
        member, codes = run.life_member[life], run.columns["groups"][run.units.event_row[events]]
        for k in np.flatnonzero(codes >= 0).tolist():
            out[k] = member in addressed(run).members(int(run.units.events[events[k]]))
    return out


def s14(run: Run) -> Finding:
    c, rows, units = run.columns, run.originates, run.units
    counter, end = c["counter"][rows], c["counter"][rows] + c["count"][rows].astype(np.int64)
    unit_cuts, life = run.cuts(units.originate_row), run.life_of(rows)
    carry = "carry" in run.header.options.values()  # tickets live on: then a later view will do
    judged = int(c["count"][rows].sum())
    for k in np.flatnonzero((counter[1:] > end[:-1]) & (life[1:] == life[:-1]))[:1].tolist():
        what = f"member {run.member_of(rows[k])} left out a message it had accepted"
        return broken(what, run.rows(rows[k], rows[k + 1]), judged)
    last = {(stay.life, stay.code): stay for stay in run.stays if stay.next >= 0}
    for stay in last.values():
        a, b = unit_cuts[stay.life], unit_cuts[stay.life + 1]
        mine = units.of_originate[a:b]
        keep = (units.owner[mine] == stay.life) & (run.origin_view[mine] == stay.code)
        delivered = run.positions(stay.life) >= 0 if carry else _delivered(run, [stay])
        member, made = run.life_member[stay.life], units.originate_row[a:b]
        for k in np.flatnonzero(keep & ~delivered[mine]).tolist():
            meant = c["groups"][made[k]] < 0 or member in addressed(run).members(int(mine[k]))
            nobody = addressed(run).code[mine[k]] < 0
            if meant or (nobody and for_itself(run, stay.life, int(made[k]), stay.next)):
                what = f"member {member} went on without delivering its own {run.named(int(mine[k]))}"
                return broken(what, run.rows(made[k], stay.next), judged)
    return holds(judged)


def _delivered(run: Run, stays: list[Stay]) -> Array:
    """Which units are delivered in these stays."""
    out = np.zeros(len(run.units.owner), bool)
    for stay in stays:
        out[run.units.events[stay.first : stay.last]] = True
    return out


def s20(run: Run) -> Finding:
    service = run.columns["service"][run.units.event_row]
    recorded = Level[run.header.level.upper()] >= Level.FULL
    judged, absent = 0, set()
    for code, stays in run.by_view.items():
        if code == 0:
            continue
        for members, first, middle in _parts(run, stays):
            safe = np.flatnonzero(service[first:middle] == Service.SAFE) + first
            if not len(safe):
                continue
            judged += int(run.columns["count"][run.units.event_row[safe]].sum()) if run.units.exact else len(safe)
            for member in sorted(members):
                if run.lost.some(member):
                    continue
                if member not in run.life_member:
                    absent.add(member)
                    continue
                found = _went_without(run, stays, member, safe) or (_received(run, member, safe) if recorded else None)
                if found:
                    return found
    if absent:
        return cannot_judge(f"the trace of member {min(absent)} is not there")
    if judged and not recorded and not run.header.live:
        return cannot_judge("what was received was not recorded; deliveries and views are as promised")
    return holds(judged)


def _parts(run: Run, stays: list[Stay]) -> list[tuple[frozenset[int], int, int]]:
    """(who must have it, slice of events) for the regular and the transitional part of each stay."""
    out = []
    for stay in stays:
        out.append((run.view_at[stay.view].members, stay.first, stay.middle))
        if stay.transitional >= 0:
            out.append((run.view_at[stay.transitional].members, stay.middle, stay.last))
    return out


def _went_without(run: Run, stays: list[Stay], member: int, safe: Array) -> Finding | None:
    """A member of the view that never installed it, or that went on without a safe message."""
    events, rows = run.units.events, run.units.event_row
    theirs = [stay for stay in stays if run.life_member[stay.life] == member]
    if not theirs:
        what = f"{run.named(int(events[safe[0]]))} was delivered as safe but member {member} never installed the view"
        return broken(what, run.rows(rows[safe[0]]))
    for stay in theirs:
        if stay.next < 0:
            continue
        lacking = safe[~_delivered(run, [stay])[events[safe]]]
        lacking = lacking[_meant(run, lacking, stay.life)]
        if len(lacking):
            what = f"{run.named(int(events[lacking[0]]))} was delivered as safe but member {member} went on without it"
            return broken(what, run.rows(stay.view, rows[lacking[0]], stay.next))
    return None


def _received(run: Run, member: int, safe: Array) -> Finding | None:
    """Whether a member had received each safe message when it was delivered."""
    events, rows, time = run.units.events, run.units.event_row, run.columns["time_ns"]
    when = _receptions(run, member)[events[safe]]
    late = when == np.iinfo(np.int64).max
    if not run.header.live:
        late |= when > time[rows[safe]]
    bad = np.flatnonzero(late)
    if len(bad) and "S23" in run.header.promises:  # several rings: one without anybody it is for never sees it
        lives = [life for life, whose in enumerate(run.life_member) if whose == member]
        bad = bad[np.any([_meant(run, safe[bad], life) for life in lives], axis=0)]
    if not len(bad):
        return None
    row = int(rows[safe[bad[0]]])
    what = f"member {run.member_of(row)} delivered {run.named(int(events[safe[bad[0]]]))} as safe before member "
    return broken(f"{what}{member} had received it", run.rows(row))


def _receptions(run: Run, member: int) -> Array:
    """The time at which a member first received each unit; the largest number: never."""
    cache: dict[int, Array] = run.__dict__.setdefault("_reception_times", {})
    if member not in cache:
        c, units = run.columns, run.units
        rows = np.concatenate((run.of(Kind.RECEIVE), run.originates))  # who sends it has it, whatever happens next
        rows = rows[c["member"][rows] == member]
        owner = run.owners(rows)
        count = c["count"][rows].astype(np.int64)
        out = np.full(len(units.owner), np.iinfo(np.int64).max)
        first = c["counter"][rows]
        time = c["time_ns"][rows]
        if not units.exact:
            step = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            owner, first, time = np.repeat(owner, count), np.repeat(first, count) + step, np.repeat(time, count)
        unit = _unit_of(run, owner, first)
        known = unit >= 0
        np.minimum.at(out, unit[known], time[known])
        cache[member] = out
    return cache[member]


def _unit_of(run: Run, owner: Array, counter: Array) -> Array:
    """The unit with that owner and counter; -1: none.  Units are sorted by both."""
    units = run.units
    if not len(units.owner) or not len(owner):
        return np.full(len(owner), -1, np.int64)
    largest = int(max(units.counter.max(), counter.max())) + 1
    if largest > 2**62 // (int(max(units.owner.max(), owner.max())) + 2):
        known = {pair: k for k, pair in enumerate(zip(units.owner.tolist(), units.counter.tolist(), strict=True))}
        return np.array([known.get(pair, -1) for pair in zip(owner.tolist(), counter.tolist(), strict=True)], np.int64)
    keys, wanted = units.owner * largest + units.counter, owner * largest + counter
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)
