"""L3 delivery and L4 termination over arrays; what few rows tell (views, ends, notes) is left to the plain checkers."""

from __future__ import annotations

import numpy as np

from ordercast.trace.schema import Kind
from ordercast.verify.bounds import Stability, delivery_ns
from ordercast.verify.columns.groups import addressed, has_groups
from ordercast.verify.columns.lifecycle import delegated, lifecycle
from ordercast.verify.columns.model import Array, Run
from ordercast.verify.plain import liveness, settling
from ordercast.verify.plain import model as plain
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds

l1, l2, l8 = map(delegated, (settling.l1, settling.l2, settling.l8))
l5, l6, l7, l10 = map(delegated, (liveness.l5, liveness.l6, liveness.l7, liveness.l10))
l12 = delegated(liveness.l12)


def l3(run: Run) -> Finding:
    quiet = lifecycle(run)
    stable = settling.stable_of(quiet)
    if stable is None:
        return settling.DISTURBED
    if stopped := settling.halted(quiet, stable):
        return stopped
    lives, view, why = settling.common_view(quiet, stable, stable.until_ns)
    if why:
        return cannot_judge(f"{why} (see L1)")
    bound, units, time = delivery_ns(run.header, stable), run.units, run.columns["time_ns"]
    installed = [
        r.time_ns for life in lives.values() for r in settling.regular_views(life) if plain.view_key(r) == view
    ]
    start = max([stable.since_ns, *installed])
    number = {key: k for k, key in enumerate(zip(run.life_member, run.life_incarnation, strict=True))}
    stay = [number[life.key] for life in lives.values()]
    due = np.flatnonzero(run.origin_view == run.view_code.get(view, -2))
    due = due[np.isin(np.searchsorted(run.life_start, units.origin[due], "right") - 1, stay)]
    deadline = np.maximum(time[units.origin[due]], start) + (bound or 0)
    ended = set(np.searchsorted(run.life_start, run.of(Kind.END), "right") - 1)
    judged, pending = 0, ""
    for life in stay:
        mine = _meant_for(run, run.life_member[life], due)
        late = _late(run, life, due, deadline, bound) & mine
        judged += int(_sizes(run, due[mine & ~late]).sum())
        open_ = late & (deadline > stable.until_ns) if bound is not None or life in ended else late
        if open_.any() and not pending:
            unit = int(due[np.flatnonzero(open_)[0]])
            pending = f"member {run.life_member[life]} had still time to deliver {run.named(unit)}"
        late &= ~open_
        if late.any():
            unit = int(due[np.flatnonzero(late)[0]])
            what = f"member {run.life_member[life]} did not deliver {run.named(unit)} in time"
            place = run.positions(life)[unit]
            got = units.event_row[run.event_cuts[life] + place] if place >= 0 else run.life_end[life] - 1
            return broken(what, run.rows(units.origin[unit], got), judged)
        stuck = _stuck(run, life, stable, start, bound)
        if stuck >= 0:
            what = f"member {run.life_member[life]} accepted messages and originated nothing for the whole bound"
            return broken(what, run.rows(stuck, run.life_end[life] - 1), judged)
    return cannot_judge(f"when the run ended, {pending}") if pending else holds(judged)


def _meant_for(run: Run, member: int, units: Array) -> Array:
    if not has_groups(run):
        return np.ones(len(units), bool)
    grouped = run.columns["groups"][run.units.origin[units]] >= 0
    return np.array(
        [not g or member in addressed(run).members(int(u)) for u, g in zip(units, grouped, strict=True)], bool
    )


def _late(run: Run, life: int, due: Array, deadline: Array, bound: int | None) -> Array:
    """What a life did not deliver by then; without a bound: not at all."""
    place = run.positions(life)[due]
    missing = place < 0
    if bound is None:
        return missing
    rows = run.units.event_row
    at = np.minimum(run.event_cuts[life] + place, max(len(rows) - 1, 0))
    when = run.columns["time_ns"][rows[at]] if len(rows) else np.zeros(len(due), np.int64)
    return missing | (when > deadline)


def _stuck(run: Run, life: int, stable: Stability, start: int, bound: int | None) -> int:
    """A submission that waits while its member originates nothing for the whole bound before the end, or -1."""
    if bound is None or stable.until_ns - bound < start:
        return -1
    c, horizon = run.columns, stable.until_ns - bound
    time = c["time_ns"]
    own = run.originates[(run.originates >= run.life_start[life]) & (run.originates < run.life_end[life])]
    if ((time[own] > horizon) & (time[own] <= stable.until_ns)).any():
        return -1
    submits = run.of(Kind.SUBMIT)
    submits = submits[(submits >= run.life_start[life]) & (submits < run.life_end[life]) & (time[submits] <= horizon)]
    if not len(submits):
        return -1
    owners = run.owners(submits)
    for owner in np.unique(owners).tolist():
        mine = submits[owners == owner]
        a = c["counter"][mine]
        b = a + c["count"][mine].astype(np.int64)
        waiting = np.flatnonzero(_originated_below(run, owner, b) - _originated_below(run, owner, a) < b - a)
        if len(waiting):
            return int(mine[waiting[0]])
    return -1


def _originated_below(run: Run, owner: int, numbers: Array) -> Array:
    """How many originated messages of an owner have smaller numbers than these."""
    units = run.units
    known = np.flatnonzero((units.owner == owner) & (units.origin >= 0))
    if not len(known):
        return np.zeros(len(numbers), np.int64)
    first, size = units.counter[known], _sizes(run, known)
    total = np.concatenate(([0], np.cumsum(size)))
    k = np.searchsorted(first, numbers)  # frames that begin below
    inside = np.where(k > 0, np.minimum(size[k - 1], numbers - first[k - 1]), 0)
    return total[np.maximum(k - 1, 0)] + inside


def _sizes(run: Run, units: Array) -> Array:
    """How many messages each of these originated units is."""
    if not run.units.exact:
        return np.ones(len(units), np.int64)
    return run.columns["count"][run.units.origin[units]].astype(np.int64)


def l4(run: Run) -> Finding:
    """Judged where a life's trace goes on long enough after the origination."""
    timeout = run.header.timeout_ns
    if not timeout:
        return cannot_judge("the header names no timeout to measure in")
    quiet, units, time = lifecycle(run), run.units, run.columns["time_ns"]
    stable = Stability(frozenset(run.header.members), 0, quiet.end_ns, timeout, False)
    bound, judged = settling.bound_of(quiet, stable) + (delivery_ns(run.header, stable) or 0), 0
    cuts = run.cuts(units.originate_row)
    last = {stay.life: stay for stay in run.stays}
    for life, stay in last.items():
        if stay.view < 0:
            continue
        mine, rows = units.of_originate[cuts[life] : cuts[life + 1]], units.originate_row[cuts[life] : cuts[life + 1]]
        here = run.origin_view[mine] == stay.code
        judged += int(_sizes(run, mine[~here]).sum())  # of views it left
        keep = (time[rows] <= time[run.life_end[life] - 1] - bound) & here
        mine, rows = mine[keep], rows[keep]
        if not len(mine):
            continue
        for member in sorted(run.view_at[stay.view].members):
            if run.lost.some(member):
                continue
            got = np.zeros(len(units.owner), bool)
            for other in run.by_view[stay.code]:
                if run.life_member[other.life] == member:
                    got[units.events[other.first : other.last]] = True
            meant = _meant_for(run, member, mine)
            judged += int(_sizes(run, mine[meant]).sum())
            for k in np.flatnonzero(meant & ~got[mine])[:1].tolist():
                what = f"member {run.life_member[life]} stayed in its view although member {member} did not deliver "
                found = run.rows(stay.view, rows[k], run.life_end[life] - 1)
                return broken(f"{what}{run.named(int(mine[k]))}", found, judged)
    return holds(judged)
