"""S15 FIFO, S16 causal order, S17 and S18 one order, S19 no holes, S21 the same across groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ordercast.trace.schema import Kind, Row
from ordercast.types import ViewKind
from ordercast.verify.plain.model import Delivery, Life, MessageId, Run, ViewKey, messages, named, view_key
from ordercast.verify.verdict import Finding, broken, holds

# ------------------------------------------------------------------------------------------------------ FIFO, causal


def s15(run: Run) -> Finding:
    """Each message must find its predecessors delivered: the last before it of its sender in that view, per group."""
    before: dict[MessageId, list[MessageId]] = {}
    last: dict[tuple[object, ...], MessageId] = {}
    for message in sorted(run.originated):
        groups: Sequence[str | None] = run.originated[message].groups or (None,)
        keys = [(message[:2], run.origin_view[message], group) for group in groups]
        before[message] = [last[key] for key in keys if key in last]
        last |= dict.fromkeys(keys, message)
    judged = 0
    for life in run.lives:
        delivered: dict[MessageId, Delivery] = {}
        for delivery in life.deliveries():
            judged += 1
            for earlier in before.get(delivery.message, ()):
                if earlier not in delivered and run.meant_for(life.member, earlier):
                    late = next((d.row for d in life.deliveries() if d.message == earlier), None)
                    return broken(
                        f"member {life.member} delivered {named(delivery.message)} but not {named(earlier)} before it",
                        [run.originated[earlier], run.originated[delivery.message], delivery.row, late], judged,
                    )  # fmt: skip
            delivered[delivery.message] = delivery
    return holds(judged)


def s16(run: Run) -> Finding:
    """Of each sender, the last message (of one view) that the originator had delivered must come before."""
    needs: dict[MessageId, list[MessageId]] = {}
    for life in run.lives:
        view: ViewKey | None = None
        latest: dict[tuple[int, int], MessageId] = {}  # of this view
        for row in life.rows:
            if row.kind == Kind.VIEW and row.view_kind != ViewKind.TRANSITIONAL:
                view, latest = view_key(row), {}
            elif row.kind == Kind.DELIVER:
                for message in messages(row):
                    if message in run.originated and run.origin_view[message] == view:
                        latest[message[:2]] = max(message, latest.get(message[:2], message))
            elif row.kind == Kind.ORIGINATE:
                for message in messages(row):
                    if run.originated[message] is row:
                        needs[message] = list(latest.values())
    judged = 0
    for life in run.lives:
        delivered: set[MessageId] = set()
        for delivery in life.deliveries():
            judged += 1
            if delivery.message in needs and run.origin_view[delivery.message] == delivery.view:
                for cause in needs[delivery.message]:
                    if cause not in delivered and run.meant_for(life.member, cause):
                        origin = run.originated[delivery.message]
                        sender = run.life[origin.member, origin.incarnation]
                        seen = next(d.row for d in sender.deliveries() if d.message == cause)
                        return broken(
                            f"member {life.member} delivered {named(delivery.message)} without {named(cause)}, which "
                            f"member {sender.member} had delivered when it originated it",
                            [seen, run.originated[delivery.message], delivery.row], judged,
                        )  # fmt: skip
            delivered.add(delivery.message)
    return holds(judged)


# --------------------------------------------------------------------------------------------------------- one order

Log = Sequence[Delivery]  # what one life delivered, in order


def s17(run: Run) -> Finding:
    return _per_group(run, lambda keep: _orders_in_views(run, keep))


def s18(run: Run) -> Finding:
    return _per_group(run, lambda keep: _one_order([list(filter(keep, life.deliveries())) for life in run.lives]))


def s19(run: Run) -> Finding:
    return _per_group(run, lambda keep: _no_holes(run, keep))


def s21(run: Run) -> Finding:
    if not run.groups:
        return holds(0)  # what S17, S18 and S19 say already
    everything: Keep = lambda delivery: True  # noqa: E731
    found = _orders_in_views(run, everything)
    if found.state == "holds" and "S18" in run.header.promises:
        found = _one_order([list(life.deliveries()) for life in run.lives])
    found = found if found.state != "holds" else _no_holes(run, everything)
    return found if found.state != "holds" else holds(run.delivered)


Keep = Callable[[Delivery], bool]


def _per_group(run: Run, check: Callable[[Keep], Finding]) -> Finding:
    """Messages without groups together, then the messages of each group: S21 judges across."""
    found = check(lambda delivery: not delivery.row.groups)
    for group in run.groups:
        if found.state != "holds":
            break
        found = check(lambda delivery, group=group: group in (delivery.row.groups or ()))  # type: ignore[misc]
    return found if found.state != "holds" else holds(run.delivered)


def _orders_in_views(run: Run, keep: Keep) -> Finding:
    judged = 0
    for component in run.together:
        found = _one_order([list(filter(keep, stay.deliveries)) for _, stay in component])
        judged += found.judged
        if found.state != "holds":
            return found
    return holds(judged)


def _one_order(logs: Iterable[Log]) -> Finding:
    """Does one order explain all logs: has "delivered just before" no cycle?"""
    after: dict[MessageId, dict[MessageId, tuple[Delivery, Delivery]]] = defaultdict(dict)
    preceding: dict[MessageId, int] = {}
    judged = 0
    for log in logs:
        judged += len(log)
        for delivery in log:
            preceding.setdefault(delivery.message, 0)
        for a, b in pairwise(log):
            if b.message not in after[a.message]:
                after[a.message][b.message] = (a, b)
                preceding[b.message] += 1
    free = [message for message, count in preceding.items() if count == 0]
    while free:
        message = free.pop()
        del preceding[message]
        for follower in after[message]:
            preceding[follower] -= 1
            if preceding[follower] == 0:
                free.append(follower)
    if not preceding:
        return holds(judged)
    steps = _shortest_cycle(after, set(preceding))
    return broken(f"no order explains what was delivered: {_story(steps)}", _ends(steps), judged)


Step = tuple[Delivery, Delivery]


def _shortest_cycle(after: dict[MessageId, dict[MessageId, Step]], among: set[MessageId]) -> list[Step]:
    """The shortest way from a message back to itself, as steps of single lives."""
    best: list[Step] = []
    for start in sorted(among):
        came: dict[MessageId, MessageId] = {}
        edge = [start]
        while edge and start not in came:
            further = []
            for message in edge:
                for follower in after[message]:
                    if follower in among and follower not in came:
                        came[follower] = message
                        further.append(follower)
            edge = further
        if start not in came:
            continue
        way, at = [], start
        while True:
            way.append(after[came[at]][at])
            at = came[at]
            if at == start:
                break
        way = _joined(way[::-1])
        if not best or len(way) < len(best):
            best = way
        if len(best) <= 2:
            break
    return best


def _joined(way: list[Step]) -> list[Step]:
    """Steps of one life that follow each other are one."""
    out: list[Step] = []
    for a, b in way:
        if out and out[-1][1].row.member == a.row.member and out[-1][1].row.index <= a.row.index:
            out[-1] = (out[-1][0], b)
        else:
            out.append((a, b))
    return out


def _story(steps: list[Step]) -> str:
    return ", ".join(f"member {a.row.member} delivered {named(a.message)} before {named(b.message)}" for a, b in steps)


def _ends(steps: list[Step]) -> list[Row]:
    rows: list[Row] = []
    for a, b in steps:
        rows += [row for row in (a.row, b.row) if row not in rows]
    return rows


# ---------------------------------------------------------------------------------------------------------- no holes


def _no_holes(run: Run, keep: Keep) -> Finding:
    """For every two lives of a component: what one delivered before a common message, the other did too."""
    components = [[(life, list(filter(keep, stay.deliveries))) for life, stay in of] for of in run.together]
    judged = sum(len(log) for component in components for _, log in component)
    for component in components:
        for p in component:
            for q in component:
                found = _hole(run, p[1], *q) if p is not q else None
                if found:
                    return broken(*found, judged)
    return holds(judged)


def _hole(run: Run, theirs: Log, life: Life, mine: Log) -> tuple[str, list[Row]] | None:
    place: dict[MessageId, int] = {}
    for k, delivery in enumerate(mine):
        place.setdefault(delivery.message, k)
    nowhere = len(mine)
    worst = worst_along = -1  # the latest place here of what they delivered so far; and of members that came along
    missing: Delivery | None = None
    missing_along: Delivery | None = None
    transitional = next((d.transitional for d in mine if d.transitional is not None), None)
    along = set((transitional.members or ()) if transitional is not None else ())
    first = {delivery.message: delivery for delivery in reversed(theirs)}  # what is delivered twice counts once
    for delivery in theirs:
        if first[delivery.message] is not delivery:
            continue
        here = place.get(delivery.message)
        if here is not None:
            at_mine = mine[here]
            bad = missing if at_mine.transitional is None else missing_along
            if here < (worst if at_mine.transitional is None else worst_along):
                assert bad is not None
                return (
                    f"member {life.member} delivered {named(delivery.message)} but not {named(bad.message)} before it, "
                    f"as member {delivery.row.member} did",
                    [bad.row, delivery.row, at_mine.row],
                )
        if here is None and delivery.row.groups and life.member not in run.addressed.get(delivery.message, ()):
            continue
        spot = nowhere if here is None else here
        if spot > worst:
            worst, missing = spot, delivery
        if spot > worst_along and delivery.message[0] in along:
            worst_along, missing_along = spot, delivery
    return None
