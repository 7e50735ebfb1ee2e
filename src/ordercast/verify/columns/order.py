"""S15 FIFO, S16 causal order, S17 and S18 one order, S19 no holes, S21 across groups, over arrays.

One order is shown by the cheapest test that suffices: logs that are prefixes of the longest one; else levels that rise
along every log (longest paths, raised until nothing changes); else, and for every "no", the graph of consecutive
deliveries with its chains drawn together.  All three are exact, none has a limit on rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ordercast.trace.schema import Row
from ordercast.verify.columns.graph import cycle
from ordercast.verify.columns.groups import addressed, has_groups
from ordercast.verify.columns.model import Array, Run, Stay, first_places
from ordercast.verify.verdict import Finding, broken, holds

_ROUNDS = 24  # of raising levels, before the graph is built

# ------------------------------------------------------------------------------------------------------ FIFO, causal


def s15(run: Run) -> Finding:
    """Each unit must find its predecessors delivered: the last before it of its owner in that view, per group."""
    if _surely_fifo(run):
        return holds(run.delivered)
    later, earlier = _predecessors(run)
    single = not has_groups(run)
    before = np.full(len(run.units.owner), -1, np.int64)
    if single:
        before[later] = earlier
    for life in range(run.lives):
        log, place = run.log(life), run.positions(life)
        if single:
            needed, at = before[log], np.arange(len(log))
            missing = (needed >= 0) & ((place[needed] < 0) | (place[needed] >= at))
            bad = [(int(log[k]), int(needed[k])) for k in np.flatnonzero(missing)[:1]]
        else:
            here = place[later]
            missing = (here >= 0) & ((place[earlier] < 0) | (place[earlier] > here))
            bad = [(int(later[k]), int(earlier[k])) for k in np.flatnonzero(missing)]
        for unit, lost in bad:
            if not _excused(run, life, lost):
                return _lost(run, life, unit, lost, run.delivered)
    return holds(run.delivered)


def _surely_fifo(run: Run) -> bool:
    """All logs are prefixes of one, and each unit in it stands behind the one before it of its owner, in any view."""
    if run.leader < 0 or not run.units.exact or has_groups(run):
        return False
    log, place, owner = run.log(run.leader), run.positions(run.leader), run.units.owner
    follows = np.append(False, owner[1:] == owner[:-1])[log]
    before = place[log - 1]
    return not (follows & ((before < 0) | (before > place[log]))).any()


def _predecessors(run: Run) -> tuple[Array, Array]:
    """Pairs (unit, the unit before it of the same owner, view of origination and group)."""
    units = np.flatnonzero(run.units.origin >= 0)
    view, owner = run.origin_view[units], run.units.owner[units]
    if not has_groups(run):
        key = owner * (len(run.view_code) + 1) + view
        if (np.diff(key) < 0).any():
            order = np.argsort(key, kind="stable")
            units, key = units[order], key[order]
        same = key[1:] == key[:-1]
        return units[1:][same], units[:-1][same]
    codes = run.columns["groups"][run.units.origin[units]]
    lists = [
        (None,) if code < 0 else run.columns.tables["groups"][code] for code in range(-1, codes.max(initial=-1) + 1)
    ]
    names = {name: k for k, name in enumerate(dict.fromkeys(name for of in lists for name in of))}
    sizes = np.array([len(of) for of in lists])[codes + 1]
    flat = [np.array([names[name] for name in of], np.int64) for of in lists]
    group = np.concatenate([flat[code + 1] for code in codes.tolist()]) if len(codes) else np.empty(0, np.int64)
    unit, key = np.repeat(units, sizes), np.repeat(owner * (len(run.view_code) + 1) + view, sizes)
    order = np.lexsort((unit, group, key))
    unit, key, group = unit[order], key[order], group[order]
    same = (key[1:] == key[:-1]) & (group[1:] == group[:-1])
    return unit[1:][same], unit[:-1][same]


def _excused(run: Run, life: int, unit: int) -> bool:
    """Whether a life need not have a unit: it went to groups the member was not in."""
    row = int(run.units.origin[unit])
    if row < 0:
        return addressed(run).code[unit] >= 0 and run.life_member[life] not in addressed(run).members(unit)
    if run.columns["groups"][row] < 0:
        return False
    return run.life_member[life] not in addressed(run).members(unit)


def _lost(run: Run, life: int, unit: int, lost: int, judged: int) -> Finding:
    place, start, rows = run.positions(life), run.event_cuts[life], run.units.event_row
    late = int(rows[start + place[lost]]) if place[lost] >= 0 else -1
    what = f"member {run.life_member[life]} delivered {run.named(unit)} but not {run.named(lost)} before it"
    origin = run.units.origin
    return broken(what, run.rows(origin[lost], origin[unit], rows[start + place[unit]], late), judged)


def s16(run: Run) -> Finding:
    """Of each sender, the last unit (of one view) that the originator had delivered must come before."""
    units = run.units
    origin_stay = np.where(units.origin >= 0, run.stay_of(units.origin), -1)
    known = np.searchsorted(units.event_row, units.origin)  # events anywhere before the origination
    starts = np.array([stay.first for stay in run.stays], np.int64)
    delivered_then = np.where(origin_stay >= 0, known - starts[origin_stay], 0)
    for code, stays in run.by_view.items():
        mine = np.flatnonzero(run.origin_view == code)
        if not len(mine) or _surely_causal(run, stays, mine, delivered_then):
            continue
        found = _causes(run, code, stays, origin_stay, delivered_then)
        if found:
            return found
    return holds(run.delivered)


def _surely_causal(run: Run, stays: list[Stay], mine: Array, delivered_then: Array) -> bool:
    """All logs of the view are prefixes of one, and each unit stands behind all its originator had delivered."""
    longest = run.one_log(stays)
    if longest is None:
        return False
    rank = np.full(len(run.units.owner), np.iinfo(np.int64).max)
    rank[longest] = np.arange(len(longest))
    return bool((rank[mine] >= delivered_then[mine]).all())


def _causes(run: Run, code: int, stays: list[Stay], origin_stay: Array, delivered_then: Array) -> Finding | None:
    """Exactly, sender by sender."""
    units, index = run.units, {id(stay): k for k, stay in enumerate(run.stays)}
    owners = np.unique(np.concatenate([units.owner[units.events[stay.first : stay.last]] for stay in stays]))
    own = units.owner
    for owner in owners.tolist():
        cause = np.full(len(own), -1, np.int64)
        for stay in stays:
            log = units.events[stay.first : stay.last]
            of = (own[log] == owner) & (run.origin_view[log] == code)
            latest = np.maximum.accumulate(np.where(of, log, -1))
            made = np.flatnonzero((origin_stay == index[id(stay)]) & (delivered_then > 0))
            cause[made] = latest[delivered_then[made] - 1]
        for stay in stays:
            log, place = units.events[stay.first : stay.last], run.positions(stay.life)
            at = np.arange(stay.first, stay.last) - run.event_cuts[stay.life]
            needed = np.where(run.origin_view[log] == code, cause[log], -1)
            missing = (needed >= 0) & ((place[needed] < 0) | (place[needed] >= at))
            for k in np.flatnonzero(missing).tolist():
                unit, lost = int(log[k]), int(needed[k])
                if not _excused(run, stay.life, lost):
                    what = f"member {run.life_member[stay.life]} delivered {run.named(unit)} without "
                    what += f"{run.named(lost)}, which its sender had delivered when it originated it"
                    sender = int(np.searchsorted(run.life_start, units.origin[unit], "right")) - 1
                    seen = units.event_row[run.event_cuts[sender] + run.positions(sender)[lost]]
                    rows = run.rows(seen, units.origin[unit], units.event_row[stay.first + k])
                    return broken(what, rows, run.delivered)
    return None


# --------------------------------------------------------------------------------------------------------- one order


class Log:
    """What one life delivered in one view (or in all): a slice of events, perhaps of one group only."""

    __slots__ = ("events", "life", "middle", "stay", "units")

    def __init__(self, run: Run, stay: Stay | None, life: int, first: int, last: int, keep: Array | None) -> None:
        self.life, self.stay = life, stay
        self.events: Array | None = None  # None: first .. last, all of them
        self.units = run.units.events[first:last]
        middle = stay.middle if stay is not None else last
        if keep is not None:
            self.events = first + np.flatnonzero(keep[first:last])
            self.units = run.units.events[self.events]
            self.middle = int(np.searchsorted(self.events, middle))
        else:
            self.events = np.arange(first, last)
            self.middle = middle - first

    def row(self, run: Run, place: int) -> int:
        assert self.events is not None
        return int(run.units.event_row[self.events[place]])


def s17(run: Run) -> Finding:
    return _per_group(run, _orders_in_views)


def s18(run: Run) -> Finding:
    return _per_group(run, _order_over_all)


def s19(run: Run) -> Finding:
    return _per_group(run, _no_holes)


def s21(run: Run) -> Finding:
    if not (run.columns["groups"][run.delivers] >= 0).any():
        return holds(0)  # what S17, S18 and S19 say already
    found = _orders_in_views(run, None)
    if found is None and "S18" in run.header.promises:
        found = _order_over_all(run, None)
    found = found or _no_holes(run, None)
    return found or holds(run.delivered)


def _per_group(run: Run, check: object) -> Finding:
    """Messages without groups together, then the messages of each group: S21 judges across."""
    for keep in _kept(run):
        found = check(run, keep)  # type: ignore[operator]
        if found is not None:
            return found  # type: ignore[no-any-return]
    return holds(run.delivered)


def _kept(run: Run) -> Iterable[Array | None]:
    if not has_groups(run):
        return [None]
    codes = run.columns["groups"][run.units.event_row]
    table = run.columns.tables["groups"]
    names = sorted({name for code in np.unique(codes).tolist() if code >= 0 for name in table[code]})
    member = [np.array([name in of for of in table] + [False])[codes] for name in names]
    return [codes < 0, *member]


def _logs(run: Run, stays: Sequence[Stay], keep: Array | None) -> list[Log]:
    return [Log(run, stay, stay.life, stay.first, stay.last, keep) for stay in stays]


def _orders_in_views(run: Run, keep: Array | None, among: Iterable[list[Stay]] = ()) -> Finding | None:
    if keep is None and run.leader >= 0:
        return None
    for stays in among or run.together:
        if keep is None and run.one_log(stays) is not None:
            continue
        found = _one_order(run, _logs(run, stays, keep))
        if found:
            return found
    return None


def _order_over_all(run: Run, keep: Array | None) -> Finding | None:
    if keep is None and run.leader >= 0:
        return None
    if len(run.view_code) > 1 and _views_suffice(run) and _orders_in_views(run, keep, run.by_view.values()) is None:
        return None
    cuts = run.event_cuts
    return _one_order(run, [Log(run, None, k, cuts[k], cuts[k + 1], keep) for k in range(run.lives)])


def _views_suffice(run: Run) -> bool:
    """Every unit is delivered in one view only and every life's views ascend: then views and orders in them do."""
    codes, events = run.event_view, run.units.events
    of = np.empty(len(run.units.owner), np.int64)
    of[events] = codes
    ascend = all(a.life != b.life or a.code < b.code for a, b in zip(run.stays, run.stays[1:], strict=False))
    return ascend and bool((of[events] == codes).all())


def _prefixes(logs: Sequence[Array], longest: Array) -> bool:
    return all(log is longest or np.array_equal(log, longest[: len(log)]) for log in logs)


def _one_order(run: Run, logs: list[Log]) -> Finding | None:
    arrays = [log.units for log in logs]
    doubled = any(run.doubled[log.life] for log in logs)
    if not doubled and (_prefixes(arrays, max(arrays, key=len)) or _levels_settle(run, arrays)):
        return None
    steps = _opposite(run, logs) or _around(run, logs)
    if not steps:
        return None
    story = ", ".join(
        f"member {run.life_member[log.life]} delivered {run.named(int(log.units[a]))} before "
        f"{run.named(int(log.units[b]))}" for log, a, b in steps
    )  # fmt: skip
    rows: list[Row] = []
    for log, a, b in steps:
        rows += [row for row in run.rows(log.row(run, a), log.row(run, b)) if row not in rows]
    return broken(f"no order explains what was delivered: {story}", rows, sum(map(len, arrays)))


def _levels_settle(run: Run, logs: list[Array]) -> bool:
    """Raise each unit's level above the one before it in every log; true when that comes to an end soon."""
    level = np.zeros(len(run.units.owner), np.int64)
    steps = [np.arange(len(log)) for log in logs]
    for log, step in zip(logs, steps, strict=True):
        level[log] = np.maximum(level[log], step)
    for _ in range(_ROUNDS):
        changed = False
        for log, step in zip(logs, steps, strict=True):
            now = level[log] - step
            raised = np.maximum.accumulate(now)
            if not np.array_equal(now, raised):
                level[log] = raised + step
                changed = True
        if not changed:
            return True
    return False


Step = tuple[Log, int, int]  # in this log, the unit at the first place comes before the one at the second


def _opposite(run: Run, logs: list[Log]) -> list[Step]:
    """Two logs that disagree about two units, or one that repeats one."""
    for log in logs:
        again = np.flatnonzero(first_places(log.units, len(run.units.owner))[log.units] != np.arange(len(log.units)))
        if len(again):
            k = int(again[0])
            return [(log, int(first_places(log.units, len(run.units.owner))[log.units[k]]), k)]
    for i, one in enumerate(logs):
        place = first_places(one.units, len(run.units.owner))
        for two in logs[i + 1 :]:
            common = np.flatnonzero(place[two.units] >= 0)
            there = place[two.units[common]]
            down = np.flatnonzero(there[1:] < there[:-1])
            if len(down):
                a, b = int(common[down[0]]), int(common[down[0] + 1])
                return [(one, int(place[two.units[b]]), int(place[two.units[a]])), (two, a, b)]
    return []


def _around(run: Run, logs: list[Log]) -> list[Step]:
    """A cycle through three logs or more, no two of which disagree; empty: there is none."""
    steps: list[Step] = []
    for which, a, b in cycle([log.units for log in logs], len(run.units.owner)):
        if steps and steps[-1][0] is logs[which] and steps[-1][2] == a:
            steps[-1] = (logs[which], steps[-1][1], b)
        else:
            steps.append((logs[which], a, b))
    return steps


# ---------------------------------------------------------------------------------------------------------- no holes


def _no_holes(run: Run, keep: Array | None) -> Finding | None:
    """For every two lives of a component: what one delivered before a common unit, the other did too."""
    for stays in run.together:
        if len(stays) == 1 or (keep is None and run.one_log(stays) is not None):
            continue
        logs = _logs(run, stays, keep)
        longest = max(logs, key=lambda log: len(log.units))
        plain = [np.array_equal(log.units, longest.units[: len(log.units)]) for log in logs]
        odd = [log for log, prefix in zip(logs, plain, strict=True) if not prefix]
        if not odd and not run.doubled[longest.life]:
            continue
        everywhere = any(run.doubled[log.life] for log in logs)
        for p in logs if everywhere else [longest, *odd]:
            for q in logs if everywhere or p is not longest else odd:
                found = _hole(run, p, q) if p is not q else None
                if found:
                    return found
    return None


def _hole(run: Run, theirs: Log, mine: Log) -> Finding | None:
    place = first_places(mine.units, len(run.units.owner))
    here = place[theirs.units]
    absent = here < 0
    again = first_places(theirs.units, len(run.units.owner))[theirs.units] != np.arange(len(theirs.units))
    spot = np.where(absent, len(mine.units), here)
    if has_groups(run):
        grouped = run.columns["groups"][run.units.event_row[theirs.events]] >= 0
        for k in np.flatnonzero(absent & grouped).tolist():
            if run.life_member[mine.life] not in addressed(run).members(int(theirs.units[k])):
                spot[k] = -1
    spot[again] = -1  # what is delivered twice counts once
    absent |= again
    worst = np.concatenate(([-1], np.maximum.accumulate(spot)[:-1])) if len(spot) else spot
    bad = ~absent & (here < mine.middle) & (here < worst)
    if mine.middle < len(mine.units) and mine.stay is not None:
        along = list(run.view_at[mine.stay.transitional].members)
        narrow = np.where(np.isin(run.units.sender[theirs.units], along), spot, -1)
        worst_along = np.concatenate(([-1], np.maximum.accumulate(narrow)[:-1]))
        bad |= ~absent & (here >= mine.middle) & (here < worst_along)
    found = np.flatnonzero(bad)
    if not len(found):
        return None
    k = int(found[0])
    if here[k] >= mine.middle:
        worst, spot = worst_along, narrow
    j = int(np.flatnonzero(spot[:k] == worst[k])[0])
    what = f"member {run.life_member[mine.life]} delivered {run.named(int(theirs.units[k]))} but not "
    what += f"{run.named(int(theirs.units[j]))} before it, as member {run.life_member[theirs.life]} did"
    rows = run.rows(theirs.row(run, j), theirs.row(run, k), mine.row(run, int(here[k])))
    return broken(what, rows, run.delivered)
