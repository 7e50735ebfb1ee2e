"""S22 addressing, S23 once per gateway path."""

from __future__ import annotations

from ordercast.trace.schema import Kind, Row
from ordercast.verify.plain.model import MessageId, Run, messages, named
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def s22(run: Run) -> Finding:
    judged = 0
    if run.groups and not any(any(life.of(Kind.GROUP_VIEW)) for life in run.lives):
        return cannot_judge("messages name groups but no member was told a group's members")
    gateways = set(run.header.options.get("gateways") or ())  # members that only pass messages on
    for life in run.lives:
        group: dict[str, Row] = {}
        for row in life.of(Kind.GROUP_VIEW, Kind.DELIVER):
            if row.kind == Kind.GROUP_VIEW:
                group |= dict.fromkeys(row.groups or (), row)
                continue
            judged += 1
            if life.member in gateways:
                return broken(f"member {life.member} only passes messages on, but delivered", [row], judged)
            if row.groups and not any(life.member in (group[g].members or ()) for g in row.groups if g in group):
                views = [group[g] for g in row.groups if g in group]
                what = f"member {life.member} delivered {named(messages(row)[0])} to {', '.join(row.groups)}"
                return broken(f"{what} without being a member", [*views, row], judged)
    return holds(judged)


def s23(run: Run) -> Finding:
    numbers: dict[tuple[int | None, MessageId], Row] = {}
    stamps: dict[MessageId, Row] = {}
    judged = 0
    for life in run.lives:
        for row in life.of(Kind.DELIVER):
            for message in messages(row):
                judged += 1
                other = numbers.setdefault((row.ring, message), row)
                if (other.order_epoch, other.order_seq) != (row.order_epoch, row.order_seq):
                    return broken(f"{named(message)} has two numbers on ring {row.ring}", [other, row], judged)
                other = stamps.setdefault(message, row)
                if (other.detail or {}).get("stamp") != (row.detail or {}).get("stamp"):
                    return broken(f"{named(message)} changed its timestamp on the way", [other, row], judged)
    return holds(judged)
