"""L13: who leaves has sent what it accepted, or says what it did not send."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.trace.schema import Kind, Row
from ordercast.verify.plain.model import Life, MessageId, Run, messages, named
from ordercast.verify.plain.synchrony import for_itself, stayed_in
from ordercast.verify.verdict import Finding, broken, holds


def unsent(leave: Row) -> range:
    """The counters that a leave row names."""
    first, last = (leave.detail or {}).get("unsent") or (1, 0)
    return range(first, last + 1)


def l13(run: Run) -> Finding:
    judged = 0
    for life in run.lives:
        leave = next(life.of(Kind.LEAVE), None)
        if leave is None:
            continue
        owed = set(_owed(life, leave))
        judged += 1 + len(owed)
        for message in sorted(owed):
            made = run.originated.get(message)
            if made is None:
                what = f"member {life.member} left without having sent {named(message)}, and does not name it"
                return broken(what, [_submitted(life, message), leave], judged)
            found = _went_without(run, life, message, made, leave)
            if found is not None:
                return broken(found[0], [made, leave, found[1]], judged)
    return holds(judged)


def _owed(life: Life, leave: Row) -> Iterator[MessageId]:
    """What it had accepted when it left, and does not name."""
    excused = unsent(leave)
    for row in life.of(Kind.SUBMIT):
        if row.index < leave.index:
            yield from (m for m in messages(row) if m[:2] == life.key and m[2] not in excused)


def _submitted(life: Life, message: MessageId) -> Row:
    return next(row for row in life.of(Kind.SUBMIT) if message in messages(row))


def _went_without(run: Run, life: Life, message: MessageId, made: Row, leave: Row) -> tuple[str, Row | None] | None:
    """Somebody of the leaver's last view who goes on from there without a message that was sent in it, for it.

    Whom a message of groups was for is what the first to deliver it knew; if nobody did, and the leaver was in its
    groups, those who were in them all along, as it was told and they were themselves.
    """
    view = life.stays[-1]
    if view.view is None or run.origin_view[message] != view.key:
        return None
    unknown = bool(made.groups) and message not in run.addressed  # nobody delivered it
    if unknown and not for_itself(life, made, leave):
        return None
    for other in run.lives:
        for stay in other.stays:
            if stay.key != view.key or stay.next is None or stay.view is None:
                continue
            if unknown:
                who, groups = other.member, made.groups or ()
                meant = stayed_in(life, who, groups, made.index, leave)
                meant = meant and stayed_in(other, who, groups, stay.view.index, stay.next, untold=True)
            else:
                meant = run.meant_for(other.member, message)
            if not meant:
                continue
            if all(delivery.message != message for delivery in stay.deliveries):
                what = f"member {other.member} went on without {named(message)}, which member {life.member} had sent"
                return f"{what} when it left", stay.next
    return None
