"""What views promise about deliveries: S9, S10 the view of a message, S11, S13 equal sets, S14 own ones, S20 safe."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.trace.schema import Kind, Level, Row
from ordercast.types import Service, ViewKind
from ordercast.verify.plain.model import Delivery, Life, MessageId, Run, Stay, ViewKey, messages, named, view_key
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def s9(run: Run) -> Finding:
    first: dict[MessageId, Delivery] = {}
    judged = 0
    for life in run.lives:
        view: Row | None = None
        for row in life.of(Kind.VIEW, Kind.DELIVER):
            if row.kind == Kind.VIEW:
                view = row
            elif view_key(row) is not None and not _says(row, view):
                what = f"delivered for view {_id(view_key(row))} while in {_id(view_key(view))}"
                return broken(f"member {life.member} {what}", [view, row])
    for life in run.lives:
        for delivery in life.deliveries():
            judged += 1
            other = first.setdefault(delivery.message, delivery)
            if other.view != delivery.view:
                return broken(
                    f"{named(delivery.message)} was delivered in view {_id(other.view)} by member {other.row.member} "
                    f"and in {_id(delivery.view)} by member {life.member}", [other.row, delivery.row], judged,
                )  # fmt: skip
    return holds(judged)


def _says(row: Row, view: Row | None) -> bool:
    """Whether the view that a row names is this one, and of its kind if it names that."""
    return view is not None and view_key(row) == view_key(view) and row.view_kind in (None, view.view_kind)


def s10(run: Run) -> Finding:
    judged = 0
    for life in run.lives:
        view: Row | None = None
        regular: ViewKey | None = None
        for row in life.of(Kind.VIEW, Kind.ORIGINATE):
            if row.kind == Kind.VIEW:
                view = row
                regular = regular if row.view_kind == ViewKind.TRANSITIONAL else view_key(row)
                continue
            judged += row.count or 0
            if view is not None and view.view_kind == ViewKind.TRANSITIONAL:
                return broken(f"member {life.member} originated in a transitional view", [view, row])
            elif view_key(row) is not None and view_key(row) != regular:
                what = f"originated for view {_id(view_key(row))} while in {_id(regular)}"
                return broken(f"member {life.member} {what}", [view, row])
    for life in run.lives:
        for delivery in life.deliveries():
            judged += 1
            origin = run.originated.get(delivery.message)
            if origin is not None and run.origin_view[delivery.message] != delivery.view:
                return broken(
                    f"{named(delivery.message)} was originated in view {_id(run.origin_view[delivery.message])} and "
                    f"delivered in {_id(delivery.view)} by member {life.member}", [origin, delivery.row], judged,
                )  # fmt: skip
    return holds(judged)


def s11(run: Run) -> Finding:
    ways: dict[tuple[ViewKey | None, ViewKey | None], list[tuple[Life, Stay]]] = {}
    judged = 0
    for life in run.lives:
        for stay in life.stays:
            if stay.view is None or stay.next is None:
                continue
            judged += 1
            same = ways.setdefault((stay.key, view_key(stay.next)), [])
            for other, theirs in same:  # all of them: the first may be outside a group that two others share
                found = _differ(run, other, theirs.deliveries, life, stay.deliveries)
                if found:
                    what = f"of {_id(stay.key)}, before going on to {_id(view_key(stay.next))}"
                    return broken(f"{found[0]} {what}", [found[1], theirs.next, stay.next], judged)
            same.append((life, stay))
    return holds(judged)


def s13(run: Run) -> Finding:
    before: dict[tuple[object, ...], list[tuple[Life, list[Delivery]]]] = {}
    during: dict[tuple[object, ...], list[tuple[Life, list[Delivery]]]] = {}
    judged = 0
    for life in run.lives:
        for stay in life.stays:
            if stay.view is None or stay.transitional is None:
                continue
            judged += 1
            key = (stay.key, view_key(stay.transitional), frozenset(stay.transitional.members or ()))
            regular = [d for d in stay.deliveries if d.transitional is None]
            rest = [d for d in stay.deliveries if d.transitional is not None]
            for part, mine in ((before, regular), (during, rest)):
                if part is during and stay.next is None:
                    continue
                for other, theirs in part.setdefault(key, []):
                    found = _differ(run, other, theirs, life, mine)
                    if found:
                        what = f"around the same transitional view after {_id(stay.key)}"
                        return broken(f"{found[0]} {what}", [found[1], stay.transitional], judged)
                part[key].append((life, mine))
    return holds(judged)


def _differ(run: Run, one: Life, a: list[Delivery], two: Life, b: list[Delivery]) -> tuple[str, Row] | None:
    """What one delivered and the other, for whom it was too, did not."""
    for life, mine, other, theirs in ((one, a, two, b), (two, b, one, a)):
        known = {delivery.message for delivery in theirs}
        for delivery in mine:
            if delivery.message not in known and _for(run, other.member, delivery):
                what = f"member {life.member} delivered {named(delivery.message)} and member {other.member} did not"
                return what, delivery.row
    return None


def _for(run: Run, member: int, delivery: Delivery) -> bool:
    return not delivery.row.groups or member in run.addressed.get(delivery.message, ())


def s14(run: Run) -> Finding:
    carry = "carry" in run.header.options.values()  # tickets live on: then a later view will do
    judged = 0
    for life in run.lives:
        last: Row | None = None
        for row in life.of(Kind.ORIGINATE):
            judged += row.count or 0
            if last is not None and (last.counter or 0) + (last.count or 0) < (row.counter or 0):
                return broken(f"member {life.member} left out a message it had accepted", [last, row], judged)
            last = row
        later: set[MessageId] = {d.message for d in life.deliveries()}
        own: dict[ViewKey | None, tuple[Stay, set[MessageId]]] = {
            stay.key: (stay, {d.message for d in stay.deliveries}) for stay in life.stays if stay.next is not None
        }
        for row in life.of(Kind.ORIGINATE):
            for message in messages(row):
                known = own.get(run.origin_view[message]) if message[:2] == life.key else None
                if known is None:
                    continue
                stay, delivered = known
                meant = not row.groups or life.member in run.addressed.get(message, ())
                meant = meant or (message not in run.addressed and for_itself(life, row, stay.next))
                if meant and message not in (later if carry else delivered):
                    return broken(
                        f"member {life.member} went on to {_id(view_key(stay.next))} without delivering its own "
                        f"{named(message)}", [row, stay.next], judged,
                    )  # fmt: skip
    return holds(judged)


def for_itself(life: Life, made: Row, until: Row | None) -> bool:
    """Of a message of groups that nobody delivered: its sender was in one of them, and stayed in it in that view."""
    return stayed_in(life, life.member, made.groups or (), made.index, until)


def stayed_in(
    life: Life, member: int, groups: Iterable[str], since: int, until: Row | None, untold: bool = False
) -> bool:
    """Whether a life was told a member in one of these groups before its row `since`, and never after that it is out.

    untold: where it was told nothing of a group.
    """
    inside: dict[str, bool] = {}
    for row in life.of(Kind.GROUP_VIEW):
        if until is not None and row.index > until.index:
            break
        for name in row.groups or ():
            here = member in (row.members or ())
            inside[name] = here and (row.index < since or inside.get(name, untold))
    return any(inside.get(name, untold) for name in groups)


def s20(run: Run) -> Finding:
    received: dict[tuple[int, MessageId], int] = {}
    recorded = Level[run.header.level.upper()] >= Level.FULL
    several = "S23" in run.header.promises
    for life in run.lives:
        for row in (*life.of(Kind.RECEIVE), *life.of(Kind.ORIGINATE)):  # who sends it has it, whatever happens next
            for message in messages(row):
                key = (life.member, message)
                received[key] = min(row.time_ns, received.get(key, row.time_ns))
    stays: Stays = {}
    for life in run.lives:
        for stay in life.stays:
            of = stays.setdefault((life.member, stay.key), [])
            of.append((stay, {delivery.message for delivery in stay.deliveries}))
    judged, absent = 0, set()
    for life in run.lives:
        for stay in life.stays:
            for delivery in stay.deliveries:
                if delivery.row.service != Service.SAFE or stay.view is None:
                    continue
                judged += 1
                view = delivery.transitional or stay.view
                for member in view.members or ():
                    if run.lost.some(member):
                        continue
                    found = _not_safe(run, stays, stay.key, delivery, member)
                    if found:
                        return broken(found[0], [view, delivery.row, found[1]], judged)
                    if not any(other.member == member for other in run.lives):
                        absent.add(member)
                        continue
                    if several and not _for(run, member, delivery):
                        continue  # a ring without anybody it is for never sees it
                    when = received.get((member, delivery.message))
                    if recorded and (when is None or (when > delivery.row.time_ns and not run.header.live)):
                        return broken(
                            f"member {life.member} delivered {named(delivery.message)} as safe before member {member} "
                            "had received it", [view, delivery.row], judged,
                        )  # fmt: skip
    if absent:
        return cannot_judge(f"the trace of member {min(absent)} is not there")
    if judged and not recorded and not run.header.live:
        return cannot_judge("what was received was not recorded; deliveries and views are as promised")
    return holds(judged)


Stays = dict[tuple[int, ViewKey | None], list[tuple[Stay, set[MessageId]]]]


def _not_safe(
    run: Run, stays: Stays, view: ViewKey | None, delivery: Delivery, member: int
) -> tuple[str, Row | None] | None:
    """A member of the view that never installed it, or that went on without the message."""
    theirs = stays.get((member, view), [])
    if not theirs and any(life.member == member for life in run.lives):
        return f"{named(delivery.message)} was delivered as safe but member {member} never installed the view", None
    for stay, delivered in theirs:
        if stay.next is not None and delivery.message not in delivered and _for(run, member, delivery):
            return (
                f"member {delivery.row.member} delivered {named(delivery.message)} as safe but member {member} went on "
                "to another view without it",
                stay.next,
            )
    return None


def _id(key: ViewKey | None) -> str:
    return "none" if key is None else f"{key[0]}.{key[1]}"
