"""S1 integrity, S2 no duplication, S3 identity, over arrays."""

from __future__ import annotations

import numpy as np

from ordercast.trace.schema import Kind, Row
from ordercast.verify.columns.groups import has_groups
from ordercast.verify.columns.model import Array, Run, first_places
from ordercast.verify.verdict import Finding, broken, holds


def s1(run: Run) -> Finding:
    found = _submitted(run)
    if found:
        return found
    c, rows, judged = run.columns, run.delivers, run.delivered
    origin = _origins(run, rows)
    lost = np.flatnonzero(origin < 0)
    if run.lost and len(lost):
        who = zip(*(c[name][rows[lost]].tolist() for name in ("sender", "sender_incarnation")), strict=True)
        lost = lost[[not run.lost.life(*life) for life in who]]
    if len(lost):
        row = int(rows[lost[0]])
        what = f"member {run.member_of(row)} delivered what nobody originated so"
        return broken(what, [*_near(run, row), *run.rows(row)], judged)
    rows, origin = (rows[origin >= 0], origin[origin >= 0]) if run.lost else (rows, origin)
    if not run.header.live:
        early = np.flatnonzero(c["time_ns"][origin] > c["time_ns"][rows])
        if len(early):
            a, b = int(origin[early[0]]), int(rows[early[0]])
            return broken(f"member {run.member_of(b)} delivered before it was originated", run.rows(a, b), judged)
    for row in _altered(run, rows)[:1]:
        return broken(f"member {run.member_of(row)} delivered an altered message", run.rows(row), judged)
    return holds(judged)


def _near(run: Run, row: int) -> list[Row]:
    """The originate row with the same first message, if there is one."""
    c, sources = run.columns, run.originates
    same = np.ones(len(sources), bool)
    for name in ("sender", "sender_incarnation", "counter"):
        same &= c[name][sources] == c[name][row]
    return run.rows(*sources[same][:1].tolist())


_ORIGINATE, _DELIVER = int(Kind.ORIGINATE), int(Kind.DELIVER)
_WEIGHTS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93,
                     0xA0761D6478BD642F, 0xE7037ED1A0B428DB], np.uint64)  # fmt: skip


def _origins(run: Run, rows: Array) -> Array:
    """For each deliver row the originate row with the same numbers, digest, service and groups; -1: none."""
    c, sources, units = run.columns, run.originates, run.units
    if units.exact and len(rows) == len(units.events):
        origin = units.origin[units.events]
        same = np.ones(len(rows), bool)
        for name in ("digest", "service", "groups") if has_groups(run) else ("digest", "service"):
            same &= c[name][origin] == c[name][rows]
        return np.where(same, origin, -1)
    if not len(sources):
        return np.full(len(rows), -1)
    both = np.concatenate((sources, rows))
    fields = [run.owners(both), *(c[name][both] for name in ("counter", "count", "digest", "service", "groups"))]
    mixed = np.zeros(len(both), np.uint64)
    for weight, field in zip(_WEIGHTS, fields, strict=True):
        mixed = (mixed ^ field.astype(np.uint64)) * weight
        mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed[: len(sources)], kind="stable")
    place = np.searchsorted(mixed[: len(sources)][order], mixed[len(sources) :], "right") - 1
    candidate = order[np.maximum(place, 0)]
    same = place >= 0
    for field in fields:  # what is mixed alike need not be equal
        same &= field[candidate] == field[len(sources) :]
    return np.where(same, sources[candidate], -1)


def _altered(run: Run, rows: Array) -> list[int]:
    detail = run.columns.sparse["detail"]
    kinds = run.kind[detail.rows]
    some = detail.rows[(kinds == _DELIVER) | (kinds == _ORIGINATE)]  # few, if any
    some = some[np.isin(some, rows)] if len(some) else some
    return [row for row in some.tolist() if "altered" in (detail.get(row) or {})]


def _submitted(run: Run) -> Finding | None:
    """Every originate row is its life's own and lies within earlier submissions of the same service and groups."""
    submits, originates = run.of(Kind.SUBMIT), run.originates
    life, maker = run.life_of(submits), run.life_of(originates)
    own = run.own(submits, life)  # what is submitted in another's name counts for nothing
    foreign = originates[~run.own(originates, maker)]
    bad = [*foreign[:1].tolist(), *_altered(run, originates)[:1]]
    bad += _outside(run, submits[own], life[own], originates, maker)
    if bad:
        what = f"member {run.member_of(min(bad))} originated what was not submitted to it so"
        return broken(what, run.rows(min(bad)))
    return None


def _outside(run: Run, submits: Array, life: Array, originates: Array, maker: Array) -> list[int]:
    """The first originate row that is not inside submissions of its life before it, if there is one."""
    c = run.columns
    if not len(originates) or not len(submits):
        return [int(row) for row in originates[:1]]
    first, count = c["counter"][submits], c["count"][submits].astype(np.int64)
    a = c["counter"][originates]
    b = a + c["count"][originates].astype(np.int64) - 1
    stride = int(max(first.max(), a.max())) + 2**33  # the numbers of one life, then those of the next
    if min(int(first.min()), int(a.min())) < 0 or stride > 2**62 // (run.lives + 1):
        return _outside_one_by_one(run, submits, originates)
    start, end = life * stride + first, life * stride + first + count
    if (start[1:] < end[:-1]).any():
        return _outside_one_by_one(run, submits, originates)
    i = np.searchsorted(start, maker * stride + a, "right") - 1
    j = np.searchsorted(start, maker * stride + b, "right") - 1
    service, groups = c["service"], c["groups"]
    breaks = (start[1:] != end[:-1]) | (service[submits[1:]] != service[submits[:-1]])
    breaks |= groups[submits[1:]] != groups[submits[:-1]]
    pieces = np.concatenate(([0], np.cumsum(breaks)))  # equal: neither a gap nor another kind between
    good = (i >= 0) & (life[j] == maker) & (pieces[i] == pieces[j]) & (maker * stride + b < end[j])
    good &= (submits[j] < originates) & (service[submits[j]] == service[originates])
    good &= groups[submits[j]] == groups[originates]
    return [int(row) for row in originates[~good][:1]]


def _outside_one_by_one(run: Run, submits: Array, originates: Array) -> list[int]:
    """The same where submissions overlap: of those before, the last one with the number counts."""
    c = run.columns
    counter, count, service, groups = c["counter"], c["count"], c["service"], c["groups"]
    for row, begin in zip(originates.tolist(), run.life_start[run.life_of(originates)].tolist(), strict=True):
        before = submits[(submits >= begin) & (submits < row)][::-1]
        start, size = counter[before], count[before].astype(np.int64)
        for number in range(int(counter[row]), int(counter[row]) + int(count[row])):
            at = before[(start <= number) & (number - start < size)][:1]
            if not len(at) or service[at[0]] != service[row] or groups[at[0]] != groups[row]:
                return [row]
    return []


def s2(run: Run) -> Finding:
    judged = run.delivered
    for life in range(run.lives):
        if run.doubled[life]:
            return _twice(run, run.log(life), run.event_cuts[life], judged)
    if run.header.options.get("durable"):  # then a message is delivered once over all lives of a member
        for member in sorted(set(run.life_member)):
            lives = [life for life in range(run.lives) if run.life_member[life] == member]
            start = run.event_cuts[lives[0]]
            log = run.units.events[start : run.event_cuts[lives[-1] + 1]]
            if (first_places(log, len(run.units.owner))[log] != np.arange(len(log))).any():
                return _twice(run, log, start, judged)
    return holds(judged)


def _twice(run: Run, log: Array, start: int, judged: int) -> Finding:
    place = first_places(log, len(run.units.owner))
    k = int(np.flatnonzero(place[log] != np.arange(len(log)))[0])
    rows = run.rows(run.units.event_row[start + place[log[k]]], run.units.event_row[start + k])
    return broken(f"member {rows[0].member} delivered {run.named(int(log[k]))} twice", rows, judged)


def s3(run: Run) -> Finding:
    c, submits, units = run.columns, run.of(Kind.SUBMIT), run.units
    first, count, life = c["counter"][submits], c["count"][submits].astype(np.int64), run.life_of(submits)
    expected = np.concatenate(([1], (first + count)[:-1]))[: len(submits)]
    begins = np.concatenate(([True], life[1:] != life[:-1]))[: len(submits)]
    expected[begins] = 1
    for k in np.flatnonzero(first != expected)[:1].tolist():
        what = f"member {run.member_of(submits[k])} accepted message {int(first[k])}, not {int(expected[k])}"
        return broken(what, run.rows(-1 if begins[k] else submits[k - 1], submits[k]))
    if not units.exact:
        cuts = run.cuts(units.originate_row)
        for one in range(run.lives):
            own = units.of_originate[cuts[one] : cuts[one + 1]]
            place = first_places(own, len(units.owner))
            for k in np.flatnonzero(place[own] != np.arange(len(own)))[:1].tolist():
                twice = units.originate_row[cuts[one] + np.array([place[own[k]], k])].tolist()
                return broken(f"{run.named(int(own[k]))} was originated twice", run.rows(*twice))
    time, again = c["time_ns"], 0
    for one in range(1, run.lives):
        before, after = run.life_start[one - 1], run.life_start[one]
        if run.life_member[one - 1] != run.life_member[one]:
            continue
        again += 1
        if time[before] > time[after]:
            what = f"member {run.life_member[one]} came back with a smaller incarnation"
            return broken(what, run.rows(after, before))
    return holds(len(submits) + again)
