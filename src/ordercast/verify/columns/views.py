"""S4 self inclusion, S5 agreement, S6 monotonicity, S7 first view, S8 primary, S12 transition, over the view rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ordercast.trace.schema import Kind
from ordercast.verify.columns.model import Run, Stay, ViewKey, ViewRow
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def s4(run: Run) -> Finding:
    for view in run.views:
        if run.life_member[view.life] not in view.members:
            what = f"member {run.life_member[view.life]} installed view {_id(view.key)} without being in it"
            return broken(what, run.rows(view.row))
    return holds(len(run.views))


def s5(run: Run) -> Finding:
    first: dict[tuple[Any, ...], tuple[int, frozenset[int], frozenset[Any] | None]] = {}
    for view in run.views:
        closes = None if view.regular else run.previous(view.row)
        mine = (view.row, view.members, _components(run, view) if view.regular else None)
        other = first.setdefault((view.key, view.regular, closes), mine)
        if other[1:] != mine[1:]:
            same = other[1] == mine[1]
            what = f"view {_id(view.key)} {'comes from different views' if same else 'has different members'}"
            return broken(what, run.rows(other[0], view.row))
    return holds(len(run.views))


def _components(run: Run, view: ViewRow) -> frozenset[Any] | None:
    parts = (run.columns.sparse["detail"].get(view.row) or {}).get("components")
    if parts is None:
        return None
    return frozenset((tuple(old or ()), frozenset(members)) for old, members in parts)


def s6(run: Run) -> Finding:
    judged, time = 0, run.columns["time_ns"]
    installed: dict[int, list[ViewRow]] = {}  # by each member, life after life
    for view in run.views:
        if not view.regular:
            continue
        member, began = run.life_member[view.life], time[run.life_start[view.life]]
        before = installed.setdefault(member, [])
        last = before[-1] if before else None
        if last is not None and last.life != view.life and not run.header.live:
            # of two processes with one id, which only the simulator starts on purpose, neither follows the other
            last = next((other for other in reversed(before) if time[other.row] <= began), None)
        before.append(view)
        judged += 1
        if last is None:
            continue
        if last.key >= view.key:
            what = f"member {member} installed {_id(view.key)} after {_id(last.key)}"
            return broken(what, run.rows(last.row, view.row))
    return holds(judged)


def s7(run: Run) -> Finding:
    first: dict[int, int] = {}
    for view in run.views:
        first.setdefault(view.life, view.row)
    judged = 0
    for rows in (run.of(Kind.SUBMIT), run.delivers):
        cuts = run.cuts(rows)
        judged += len(rows)
        for life in range(run.lives):
            if cuts[life] < cuts[life + 1] and rows[cuts[life]] < first.get(life, len(run.columns)):
                what = f"member {run.life_member[life]} took or delivered a message before its first view"
                return broken(what, run.rows(rows[cuts[life]]))
    return holds(judged)


def s8(run: Run) -> Finding:
    detail = run.columns.sparse["detail"]
    primaries: dict[ViewKey, ViewRow] = {}
    for stay in run.stays:
        if stay.view < 0:
            continue
        if (detail.get(stay.view) or {}).get("primary", True) is not False:
            primaries.setdefault(run.view_at[stay.view].key, run.view_at[stay.view])
        elif stay.last > stay.first:
            what = f"member {run.life_member[stay.life]} delivered in a view that is not primary"
            return broken(what, run.rows(stay.view, run.units.event_row[stay.first]))
    for (_, one), (_, two) in pairwise(sorted(primaries.items())):
        if not one.members & two.members:
            if run.lost:
                return cannot_judge(f"{run.lost.words()}, and with it perhaps a primary view")
            return broken(
                f"primary views {_id(one.key)} and {_id(two.key)} share no member", run.rows(one.row, two.row)
            )
    return holds(sum(stay.view >= 0 for stay in run.stays))


def s12(run: Run) -> Finding:
    for one, two in pairwise(run.views):
        if one.life == two.life and not one.regular and not two.regular:
            what = f"member {run.life_member[one.life]} has two transitional views in a row"
            return broken(what, run.rows(one.row, two.row))
    ways: dict[int, dict[int, set[ViewKey | None]]] = {}  # view -> member -> where it went next
    came: set[tuple[int, ViewKey | None]] = set()  # (member, view it came to from a view)
    for stay in run.stays:
        then = run.view_at[stay.next].key if stay.next >= 0 else None
        ways.setdefault(stay.code, {}).setdefault(run.life_member[stay.life], set()).add(then)
        came.add((run.life_member[stay.life], then))
    judged = 0
    for stay in run.stays:
        if stay.transitional < 0 and (stay.view < 0 or stay.next < 0):
            continue
        judged += 1
        what = _shape(run, stay) or _come_along(run, stay, ways[stay.code], came)
        if what:
            who = f"member {run.life_member[stay.life]}"
            return broken(f"{who} {what}", run.rows(stay.view, stay.transitional, stay.next))
    return holds(judged)


def _shape(run: Run, stay: Stay) -> str:
    if stay.transitional < 0:
        return "went to another view without a transitional view"
    if stay.view < 0:
        return "has a transitional view before any regular one"
    view, between = run.view_at[stay.view], run.view_at[stay.transitional]
    if run.previous(stay.transitional) != view.key:
        return "has a transitional view that does not close its regular one"
    if run.life_member[stay.life] not in between.members:
        return "is not in its own transitional view"
    if not between.members <= view.members:
        return "has a transitional view with members that were not in the old one"
    if stay.next >= 0:
        then = run.view_at[stay.next]
        trans = run.columns.sparse["trans"].get(stay.next)
        if then.key != between.key:
            return "announced another view than it installed"
        if not between.members <= then.members:
            return "has a transitional view with members that are not in the new one"
        if trans is not None and frozenset(trans) != between.members:
            return "has two different transitional sets"
    return ""


def _come_along(
    run: Run, stay: Stay, ways: dict[int, set[ViewKey | None]], came: set[tuple[int, ViewKey | None]]
) -> str:
    if stay.next < 0:
        return ""
    come, then = run.view_at[stay.transitional].members, run.view_at[stay.next].key
    for member, nexts in sorted(ways.items()):
        if then in nexts and member not in come:
            return f"leaves member {member}, which went the same way, out of the transitional set"
        if run.lost.some(member):
            continue
        if member in come and then not in nexts and (member, then) in came:  # who was cut off goes elsewhere
            return f"has member {member}, which came from another view, in the transitional set"
    times = run.columns["time_ns"]
    if times[stay.view] == times[stay.transitional]:
        come &= {member for member, key in came if key == then}  # a view between two: see the plain form
    for member in sorted(come & set(run.life_member)):
        if member not in ways and not run.lost.some(member):
            return f"has member {member}, which never was in that view, in the transitional set"
    return ""


def _id(key: ViewKey) -> str:
    return f"{key[0]}.{key[1]}"
