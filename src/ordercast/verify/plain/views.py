"""Views by themselves: S4 self inclusion, S5 agreement, S6 monotonicity, S7 first view, S8 primary, S12 transition."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ordercast.trace.schema import Kind, Row
from ordercast.types import ViewKind
from ordercast.verify.plain.model import Life, Run, Stay, ViewKey, view_key
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def s4(run: Run) -> Finding:
    judged = 0
    for life in run.lives:
        for row in life.of(Kind.VIEW):
            judged += 1
            if life.member not in (row.members or ()):
                return broken(f"member {life.member} installed view {_id(row)} without being in it", [row], judged)
    return holds(judged)


def s5(run: Run) -> Finding:
    """A transitional view is told apart by the view it closes, too."""
    first: dict[tuple[object, ...], Row] = {}
    judged = 0
    for life in run.lives:
        for row in life.of(Kind.VIEW):
            judged += 1
            transitional = row.view_kind == ViewKind.TRANSITIONAL
            previous = (row.previous_seq, row.previous_rep) if transitional else None
            other = first.setdefault((view_key(row), transitional, previous), row)
            if set(other.members or ()) != set(row.members or ()):
                return broken(f"view {_id(row)} has different members", [other, row], judged)
            if not transitional and _components(other) != _components(row):
                return broken(f"view {_id(row)} comes from different views", [other, row], judged)
    return holds(judged)


def _components(row: Row) -> Any:
    """The old views behind a view and who came from each; without a list, nothing to compare."""
    parts = (row.detail or {}).get("components")
    if parts is None:
        return None
    return sorted((tuple(old) if old else (), tuple(sorted(members))) for old, members in parts)


def s6(run: Run) -> Finding:
    judged = 0
    for k, life in enumerate(run.lives):  # incarnations ascend
        earlier = [row for other in run.lives[:k] if other.member == life.member for row in other.of(Kind.VIEW)]
        before = ([None, *(row for row in earlier if _over(run, life, row))])[-1]
        for row in life.of(Kind.VIEW):
            if row.view_kind == ViewKind.TRANSITIONAL:
                continue
            judged += 1
            if before is not None and (view_key(before) or ()) >= (view_key(row) or ()):
                return broken(f"member {life.member} installed {_id(row)} after {_id(before)}", [before, row], judged)
            before = row
    return holds(judged)


def _over(run: Run, life: Life, row: Row) -> bool:
    """A regular view of an earlier life, installed before this one began: of two processes with one id, which only the
    simulator starts on purpose, neither follows the other."""
    before = run.header.live or row.time_ns <= life.rows[0].time_ns
    return row.view_kind != ViewKind.TRANSITIONAL and before


def s7(run: Run) -> Finding:
    judged = 0
    for life in run.lives:
        viewed = False
        for row in life.of(Kind.VIEW, Kind.SUBMIT, Kind.DELIVER):
            if row.kind == Kind.VIEW:
                viewed = True
                continue
            judged += 1
            if not viewed:
                what = "accepted a message" if row.kind == Kind.SUBMIT else "delivered"
                return broken(f"member {life.member} {what} before its first view", [row], judged)
    return holds(judged)


def s8(run: Run) -> Finding:
    primaries: dict[ViewKey, Row] = {}
    judged = 0
    for life in run.lives:
        for stay in life.stays:
            if stay.view is None:
                continue
            judged += 1
            if _primary(stay.view):
                primaries.setdefault(stay.key or (0, 0), stay.view)
            elif stay.deliveries:
                return broken(
                    f"member {life.member} delivered in view {_id(stay.view)}, which is not primary",
                    [stay.view, stay.deliveries[0].row], judged,
                )  # fmt: skip
    for (_, one), (_, two) in pairwise(sorted(primaries.items())):
        if not set(one.members or ()) & set(two.members or ()):
            if run.lost:
                return cannot_judge(f"{run.lost.words()}, and with it perhaps a primary view")
            return broken(f"primary views {_id(one)} and {_id(two)} share no member", [one, two], judged)
    return holds(judged)


def _primary(view: Row) -> bool:
    return (view.detail or {}).get("primary", True) is not False


def s12(run: Run) -> Finding:
    judged = 0
    for life in run.lives:
        for one, two in pairwise([row for row in life.of(Kind.VIEW)]):
            if {one.view_kind, two.view_kind} == {ViewKind.TRANSITIONAL}:
                return broken(f"member {life.member} has two transitional views in a row", [one, two], judged)
        for stay in life.stays:
            if stay.transitional is None and (stay.view is None or stay.next is None):
                continue
            judged += 1
            found = _shape(life, stay) or _come_along(run, life, stay)
            if found:
                return broken(*found, judged)
    return holds(judged)


def _shape(life: Life, stay: Stay) -> tuple[str, list[Row | None]] | None:
    """From a regular view through the transitional view of both to the next one, never otherwise."""
    view, transitional, then = stay.view, stay.transitional, stay.next
    rows = [view, transitional, then]
    if transitional is None:
        return f"member {life.member} went from {_id(view)} to {_id(then)} without a transitional view", rows
    if view is None:
        return f"member {life.member} has a transitional view before any regular one", rows
    if (transitional.previous_seq, transitional.previous_rep) != view_key(view):
        return f"the transitional view of member {life.member} does not close {_id(view)}", rows
    come = set(transitional.members or ())
    if life.member not in come:
        return f"member {life.member} is not in its own transitional view", rows
    if not come <= set(view.members or ()):
        return f"the transitional view of member {life.member} has members that were not in {_id(view)}", rows
    if then is not None:
        if view_key(transitional) != view_key(then):
            return f"member {life.member} announced {_id(transitional)} and installed {_id(then)}", rows
        if not come <= set(then.members or ()):
            return f"the transitional view of member {life.member} has members that are not in {_id(then)}", rows
        if then.trans is not None and set(then.trans) != come:
            return f"member {life.member} has two different transitional sets for {_id(then)}", rows
    return None


def _come_along(run: Run, life: Life, stay: Stay) -> tuple[str, list[Row | None]] | None:
    assert stay.view is not None and stay.transitional is not None
    if stay.next is None:
        return None
    come = set(stay.transitional.members or ())
    way = (stay.key, view_key(stay.next))
    for other in run.lives:
        for their in other.stays:
            goes = (their.key, view_key(their.next))
            if goes == way and other.member not in come:
                return (
                    f"member {other.member} went from {_id(stay.view)} to {_id(stay.next)} too, but is not in the "
                    f"transitional set of member {life.member}",
                    [stay.transitional, stay.next, their.next],
                )
            if goes != way and goes[1] == way[1] and other.member in come:  # who was cut off on the way goes elsewhere
                if run.lost.some(other.member):
                    continue
                if any(s.key == stay.key and view_key(s.next) == way[1] for s in _stays(run, other.member)):
                    continue
                return (
                    f"member {other.member} is in the transitional set of member {life.member} but came to "
                    f"{_id(stay.next)} from another view than {_id(stay.view)}",
                    [stay.transitional, stay.next, their.next],
                )
    if stay.view.time_ns == stay.transitional.time_ns:
        return None  # a view between two, left in the step of its install: who fails before that step never was in it
    for member in sorted(come):
        if run.lost.some(member):
            continue
        if any(life.member == member for life in run.lives) and not any(s.key == stay.key for s in _stays(run, member)):
            return (
                f"member {member} is in the transitional set of member {life.member} but never was in {_id(stay.view)}",
                [stay.view, stay.transitional],
            )
    return None


def _stays(run: Run, member: int) -> list[Stay]:
    return [stay for life in run.lives if life.member == member for stay in life.stays]


def _id(row: Row | None) -> str:
    return "no view" if row is None else f"{row.view_seq}.{row.view_rep}"
