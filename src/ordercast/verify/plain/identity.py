"""S1 integrity, S2 no duplication, S3 identity."""

from __future__ import annotations

from ordercast.trace.schema import Kind, Row
from ordercast.verify.plain.model import Life, MessageId, Run, messages, named
from ordercast.verify.verdict import Finding, broken, holds


def s1(run: Run) -> Finding:
    for life in run.lives:
        found = _submitted(life)
        if found:
            return found
    frames = {_frame(row): row for life in run.lives for row in life.of(Kind.ORIGINATE)}
    judged = 0
    for life in run.lives:
        for row in life.of(Kind.DELIVER):
            if not row.count:
                continue  # a dummy: nothing came
            judged += row.count
            origin = frames.get(_frame(row))
            if origin is None and run.lost.life(row.sender or 0, row.sender_incarnation or 0):
                continue
            if origin is None:
                near = run.originated.get(messages(row)[0]) if row.count else None
                what = "with other bytes, groups or service than" if near else "which its sender never originated:"
                return broken(f"member {life.member} delivered {_name(row)} {what} its origin", [near, row], judged)
            if not run.header.live and origin.time_ns > row.time_ns:
                return broken(
                    f"member {life.member} delivered {_name(row)} before it was originated", [origin, row], judged
                )
            if row.detail and "altered" in row.detail:
                return broken(
                    f"member {life.member} delivered {row.sender}:{row.detail['altered']} altered",
                    [origin, row],
                    judged,
                )
    return holds(judged)


def _submitted(life: Life) -> Finding | None:
    """Whether what a life originated is its own, as submitted."""
    submitted: dict[MessageId, Row] = {}
    for row in life.rows:
        if row.kind == Kind.SUBMIT:
            for message in messages(row):
                submitted[message] = row
        elif row.kind == Kind.ORIGINATE:
            if (row.sender, row.sender_incarnation) != life.key:
                return broken(f"member {life.member} originated a message in the name of {row.sender}", [row])
            for message in messages(row):
                submit = submitted.get(message)
                if submit is None:
                    return broken(f"member {life.member} originated {named(message)}, never submitted before", [row])
                if (submit.service, submit.groups) != (row.service, row.groups):
                    return broken(f"{named(message)} changed its groups or service on the way", [submit, row])
            if row.detail and "altered" in row.detail:
                return broken(
                    f"member {life.member} originated {row.sender}:{row.detail['altered']} altered",
                    [submitted.get((*life.key, row.detail["altered"])), row],
                )
    return None


def _frame(row: Row) -> tuple[object, ...]:
    return (row.sender, row.sender_incarnation, row.counter, row.count, row.digest, row.service, row.groups)


def _name(row: Row) -> str:
    return " to ".join(named(message) for message in messages(row)[:: max(1, (row.count or 1) - 1)])


def s2(run: Run) -> Finding:
    judged = 0
    seen: dict[tuple[int, int, MessageId], Row] = {}
    durable = bool(run.header.options.get("durable"))  # then a message is delivered once over all lives of a member
    for life in run.lives:
        for delivery in life.deliveries():
            judged += 1
            key = (life.member, 0 if durable else life.incarnation, delivery.message)
            if key in seen:
                return broken(
                    f"member {life.member} delivered {named(delivery.message)} twice", [seen[key], delivery.row], judged
                )
            seen[key] = delivery.row
    return holds(judged)


def s3(run: Run) -> Finding:
    judged = 0
    for life in run.lives:
        expected, last = 1, None
        originated: dict[MessageId, Row] = {}
        for row in life.rows:
            if row.kind == Kind.SUBMIT:
                judged += 1
                if row.counter != expected:
                    return broken(
                        f"member {life.member} accepted message {row.counter} after {expected - 1}", [last, row]
                    )
                expected, last = expected + (row.count or 0), row
            elif row.kind == Kind.ORIGINATE:
                for message in messages(row):
                    if message in originated:
                        return broken(f"{named(message)} was originated twice", [originated[message], row])
                    originated[message] = row
    by_member: dict[int, Life] = {}
    for life in run.lives:  # by (member, incarnation)
        before = by_member.get(life.member)
        judged += before is not None
        if before is not None and before.rows[0].time_ns > life.rows[0].time_ns:
            return broken(
                f"member {life.member} came back with a smaller incarnation", [life.rows[0], before.rows[0]], judged
            )
        by_member[life.member] = life
    return holds(judged)
