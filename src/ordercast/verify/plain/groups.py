"""S22 addressing, S23 once per gateway path."""

from __future__ import annotations

from ordercast.trace.schema import Kind, Row
from ordercast.verify.plain.model import Life, MessageId, Run, messages, named
from ordercast.verify.plain.settling import common_view, halted, stable_of
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def s22(run: Run) -> Finding:
    judged = 0
    if run.groups and not any(any(life.of(Kind.GROUP_VIEW)) for life in run.lives):
        return cannot_judge("messages name groups but no member was told a group's members")
    gateways = set(run.header.options.get("gateways") or ())  # members that only pass messages on
    for life in run.lives:
        group: dict[str, Row] = {}
        for row in life.of(Kind.GROUP_VIEW, Kind.DELIVER):
            judged += bool(row.kind == Kind.GROUP_VIEW or row.groups or gateways)
            if row.kind == Kind.GROUP_VIEW:
                group |= dict.fromkeys(row.groups or (), row)
                continue
            if life.member in gateways:
                return broken(f"member {life.member} only passes messages on, but delivered", [row], judged)
            if row.groups and not any(life.member in (group[g].members or ()) for g in row.groups if g in group):
                views = [group[g] for g in row.groups if g in group]
                what = f"member {life.member} delivered {named(messages(row)[0])} to {', '.join(row.groups)}"
                return broken(f"{what} without being a member", [*views, row], judged)
    return disagreement(run) or holds(judged)


def disagreement(run: Run) -> Finding | None:
    """A run that ended in calm: those that stayed, in one view, were last told the same members of each group; but for
    a view that is not primary, where nobody can tell anything."""
    if not any(any(life.of(Kind.GROUP_VIEW)) for life in run.lives):
        return None
    stable = stable_of(run)
    if stable is None or not stable.stated or halted(run, stable):
        return None
    lives, view, _ = common_view(run, stable, stable.until_ns)
    if view is None or not all(_ended_empty(life, run.end_ns) for life in lives.values()):
        return None
    told = {member: _last_told(life) for member, life in lives.items()}
    for group in sorted({group for known in told.values() for group in known}):
        rows = {member: told[member].get(group) for member in sorted(told)}
        sets = {member: tuple(row.members or ()) if row is not None else () for member, row in rows.items()}
        first = min(sets)
        for member in sorted(sets):
            if sets[member] != sets[first]:
                what = f"at the end member {first} was told that {group} is {list(sets[first])}, member {member} "
                return broken(f"{what}that it is {list(sets[member])}", [rows[first], rows[member]])
    return None


def _ended_empty(life: Life, end_ns: int) -> bool:
    """Whether it went on to the end of the run, and nothing waited in it."""
    ends = [row for row in life.of(Kind.END) if row.time_ns == end_ns]
    return bool(ends) and not any(((ends[-1].detail or {}).get("queues") or {}).values())


def _last_told(life: Life) -> dict[str, Row]:
    out: dict[str, Row] = {}
    for row in life.of(Kind.GROUP_VIEW):
        out |= dict.fromkeys(row.groups or (), row)
    return out


def s23(run: Run) -> Finding:
    numbers: dict[tuple[int | None, MessageId], Row] = {}
    stamps: dict[MessageId, Row] = {}
    judged, unstamped = 0, None
    for life in run.lives:
        for row in life.of(Kind.DELIVER):
            for message in messages(row):
                judged += 1
                other = numbers.setdefault((row.ring, message), row)
                if (other.order_epoch, other.order_seq) != (row.order_epoch, row.order_seq):
                    return broken(f"{named(message)} has two numbers on ring {row.ring}", [other, row], judged)
                other = stamps.setdefault(message, row)
                stamp = (row.detail or {}).get("stamp")
                if (other.detail or {}).get("stamp") != stamp:
                    return broken(f"{named(message)} changed its timestamp on the way", [other, row], judged)
                unstamped = message if stamp is None else unstamped
    if unstamped is not None:
        return cannot_judge(f"no delivery of {named(unstamped)} says its timestamp")
    return holds(judged)
