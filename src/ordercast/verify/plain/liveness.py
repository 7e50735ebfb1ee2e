"""That things go on once a run is undisturbed: L3 delivery, L4 termination, L5 token, L6 drain, L7 room, L10, L12."""

from __future__ import annotations

import re
from itertools import pairwise

from ordercast.trace.schema import Kind, Row
from ordercast.verify.bounds import (
    ROLES_MAX,
    ROLES_NS,
    Stability,
    constant_load,
    delivery_ns,
    drain_ns,
    load_changes,
    rotation_ns,
    token_ns,
)
from ordercast.verify.plain.model import Life, MessageId, Run, messages, named, view_key
from ordercast.verify.plain.settling import (
    DISTURBED,
    bound_of,
    common_view,
    halted,
    primary_at,
    regular_views,
    stable_of,
    untold,
    view_at,
)
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def l3(run: Run) -> Finding:
    stable = stable_of(run)
    if stable is None:
        return DISTURBED
    if stopped := halted(run, stable):
        return stopped
    lives, view, why = common_view(run, stable, stable.until_ns)
    if why:
        return cannot_judge(f"{why} (see L1)")
    bound, judged, pending = delivery_ns(run.header, stable), 0, ""
    installed = [row.time_ns for life in lives.values() for row in regular_views(life) if view_key(row) == view]
    start = max([stable.since_ns, *installed])
    due: dict[MessageId, tuple[Row, int]] = {}
    for life in lives.values():
        for row in life.of(Kind.ORIGINATE):
            for message in messages(row):
                if run.originated[message] is row and run.origin_view[message] == view:
                    due[message] = (row, max(row.time_ns, start) + (bound or 0))
    for life in lives.values():
        delivered: dict[MessageId, Row] = {}
        for delivery in life.deliveries():
            delivered.setdefault(delivery.message, delivery.row)
        closed = bound is not None or any(life.of(Kind.END))  # without a unit of time: by the end
        for message, (row, deadline) in due.items():
            if row.groups and life.member not in run.addressed.get(message, ()):
                continue
            got = delivered.get(message)
            if got is not None and (bound is None or got.time_ns <= deadline):
                judged += 1
            elif not closed or deadline > stable.until_ns:
                pending = pending or f"member {life.member} had still time to deliver {named(message)}"
            else:
                what = f"did not deliver {named(message)} within {_ms(bound)} of its origination"
                return broken(f"member {life.member} {what}", [row, got or _last(life, stable.until_ns)], judged)
        stuck = _stuck(run, life, stable, start, bound)
        if stuck is not None:
            what = f"member {life.member} accepted messages and originated nothing for {_ms(bound)}"
            return broken(what, [stuck, _last(life, stable.until_ns)], judged)
    return cannot_judge(f"when the run ended, {pending}") if pending else holds(judged)


def _stuck(run: Run, life: Life, stable: Stability, start: int, bound: int | None) -> Row | None:
    """A submission that waits while its member originates nothing for the whole bound before the end."""
    if bound is None or stable.until_ns - bound < start:
        return None
    horizon = stable.until_ns - bound
    if any(horizon < row.time_ns <= stable.until_ns for row in life.of(Kind.ORIGINATE)):
        return None
    for row in life.of(Kind.SUBMIT):
        if row.time_ns <= horizon and any(message not in run.originated for message in messages(row)):
            return row
    return None


def _last(life: Life, until_ns: int) -> Row:
    return [row for row in life.rows if row.time_ns <= until_ns][-1]


def _ms(bound: int | None) -> str:
    return "the run" if bound is None else f"{bound / 1e6:g} ms"


def l4(run: Run) -> Finding:
    """Judged where a life's trace goes on long enough after the origination."""
    timeout = run.header.timeout_ns
    if not timeout:
        return cannot_judge("the header names no timeout to measure in")
    stable = Stability(frozenset(run.header.members), 0, run.end_ns, timeout, False)
    bound, judged = bound_of(run, stable) + (delivery_ns(run.header, stable) or 0), 0
    for life in run.lives:
        stay = life.stays[-1]
        if stay.view is None:
            continue
        horizon = life.rows[-1].time_ns - bound
        delivered = _delivered_in(run, stay.key)
        for row in life.of(Kind.ORIGINATE):
            for message in messages(row):
                if run.origin_view[message] != stay.key:
                    judged += 1  # it went on
                    continue
                if row.time_ns > horizon:
                    continue
                for member in stay.view.members or ():
                    if run.lost.some(member):
                        continue
                    if row.groups and member not in run.addressed.get(message, ()):
                        continue
                    judged += 1
                    if message not in delivered.get(member, ()):
                        what = f"member {life.member} stayed in its view although member {member} did not deliver"
                        return broken(f"{what} {named(message)}", [stay.view, row, life.rows[-1]], judged)
    return holds(judged)


def _delivered_in(run: Run, view: object) -> dict[int, set[MessageId]]:
    """What each member delivered in a view."""
    out: dict[int, set[MessageId]] = {}
    for life in run.lives:
        for stay in life.stays:
            if stay.key == view:
                out.setdefault(life.member, set()).update(delivery.message for delivery in stay.deliveries)
    return out


def l5(run: Run) -> Finding:
    """A `rotation` note is a visit of the token."""
    stable = stable_of(run)
    if stable is None:
        return DISTURBED
    if gone := untold(run, stable):
        return gone
    bound, begin, judged = token_ns(run.header, stable), stable.since_ns + bound_of(run, stable), 0
    visits: dict[int, list[Row]] = {member: [] for member in sorted(stable.members)}
    for life in run.lives:
        for row in life.of(Kind.NOTE):
            if (row.detail or {}).get("name") == "rotation" and life.member in visits:
                visits[life.member].append(row)
    if not any(visits.values()):
        return cannot_judge("no visit of a token was noted")
    if stable.until_ns <= begin + bound:
        return cannot_judge("the run ended before a rotation had to be over")
    for member, rows in visits.items():
        times = [begin, *(r.time_ns for r in rows if begin < r.time_ns <= stable.until_ns), stable.until_ns]
        judged += len(times) - 2
        if any(b - a > bound for a, b in pairwise(times)):
            what = f"member {member} did not handle the token for more than {bound / 1e6:g} ms"
            return broken(what, rows[-1:], judged)
    return holds(judged)


def l6(run: Run) -> Finding:
    stable = stable_of(run)
    ends = {life.member: row for life in run.lives for row in life.of(Kind.END)}
    stays = stable.members if stable is not None else frozenset(ends)
    if not ends or not stays <= ends.keys():
        return cannot_judge("not every member that stays wrote an end row")
    stopped = max((row.time_ns for life in run.lives for row in life.of(Kind.SUBMIT)), default=0)
    if stable is not None:
        stopped = max(stopped, stable.since_ns)
    judged = [member for member in sorted(stays) if primary_at(_ended(run, ends[member]), ends[member].time_ns)]
    for member in judged:
        row = ends[member]
        full = {name: size for name, size in ((row.detail or {}).get("queues") or {}).items() if size}
        if not full:
            continue
        what = f"member {member} ended with {', '.join(f'{size} in {name}' for name, size in full.items())}"
        bound = drain_ns(run.header)
        if stable is None or row.time_ns < stopped + bound:
            return cannot_judge(f"{what}, less than {bound / 1e6:g} ms after the load stopped")
        return broken(what, [row])
    return holds(len(judged))


def _ended(run: Run, end: Row) -> Life:
    return run.life[end.member, end.incarnation]


def l7(run: Run) -> Finding:
    stable = stable_of(run)
    judged = sum(_overloaded(row) for life in run.lives for row in life.of(Kind.REFUSE))
    if not judged:
        return holds(0)
    if stable is None:
        return DISTURBED
    if stopped := halted(run, stable):
        return stopped
    bound = delivery_ns(run.header, stable)
    if bound is None:
        return cannot_judge("the header names no timeout to measure in")
    bound += 3 * rotation_ns(len(stable.members), stable.delay_ns)
    for life in run.lives:
        first: Row | None = None  # refusal of a row of refusals without an accepted one between
        for row in life.of(Kind.SUBMIT, Kind.REFUSE):
            if row.time_ns < stable.since_ns or row.time_ns > stable.until_ns or life.member not in stable.members:
                continue
            if row.kind == Kind.SUBMIT or (row.detail or {}).get("why") == "not primary":
                first = None
            elif _overloaded(row):
                first = first or row
                if row.time_ns - first.time_ns > bound:
                    what = f"member {life.member} was refused for more than {bound / 1e6:g} ms"
                    return broken(what, [first, row], judged)
    return holds(judged)


def _overloaded(row: Row) -> bool:
    return (row.detail or {}).get("why") == "overloaded"


def l10(run: Run) -> Finding:
    """From the stable row on, and anew from each change of the load and each view, which deals the roles out; a load
    that chance makes irregular says nothing."""
    stable = stable_of(run)
    if stable is None:
        return DISTURBED
    if not constant_load(run.header):
        return cannot_judge("the load is not constant")
    judged = 0
    changes = [at for at in load_changes(run.header) if stable.since_ns < at < stable.until_ns]
    for life in run.lives:
        if life.member not in stable.members:
            continue
        dealt = [row.time_ns for row in regular_views(life) if stable.since_ns < row.time_ns < stable.until_ns]
        for begin, end in pairwise(sorted({stable.since_ns, *changes, *dealt, stable.until_ns})):
            rows = [row for row in life.of(Kind.MODE) if begin < row.time_ns <= end]
            judged += len(rows) + (end - begin >= ROLES_NS)
            late = [row for row in rows if row.time_ns - begin > ROLES_NS]
            if late:
                what = f"member {life.member} took another role {(late[0].time_ns - begin) / 1e9:.1f} s later"
                return broken(what, late[:1], judged)
            if len(rows) > ROLES_MAX:
                return broken(f"member {life.member} took another role {len(rows)} times", rows, judged)
    return holds(judged)


def l12(run: Run) -> Finding:
    judged = 0
    for life in run.lives:
        for row in life.of(Kind.END):
            judged += 1
            view = view_at(life, row.time_ns)
            words = str((row.detail or {}).get("waits") or "")
            for number in re.findall(r"member (\d+)", words):
                if view is not None and int(number) not in (view.members or ()):
                    what = f"member {life.member} waits for member {number}, which is not in its view"
                    return broken(what, [view, row], judged)
    return holds(judged) if judged else cannot_judge("no member wrote an end row")
