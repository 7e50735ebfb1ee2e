"""S1 integrity, S2 no duplication, S3 identity, over arrays."""

from __future__ import annotations

import numpy as np

from ordercast.trace.schema import Kind, Row
from ordercast.verify.columns.model import Array, Run, first_places
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def s1(run: Run) -> Finding:
    found = _submitted(run)
    if found:
        return found
    c, rows = run.columns, run.delivers
    judged = int(c["count"][rows].sum())
    silent = [member for member in run.header.members if member not in run.life_member]
    known = ~np.isin(c["sender"][rows], silent) if silent else np.ones(len(rows), bool)
    rows = rows[known] if silent else rows
    origin = _origins(run, rows)
    lost = np.flatnonzero(origin < 0)
    if len(lost):
        row = int(rows[lost[0]])
        what = f"member {run.member_of(row)} delivered what nobody originated so"
        return broken(what, [*_near(run, row), *run.rows(row)], judged)
    if not run.header.live:
        early = np.flatnonzero(c["time_ns"][origin] > c["time_ns"][rows])
        if len(early):
            a, b = int(origin[early[0]]), int(rows[early[0]])
            return broken(f"member {run.member_of(b)} delivered before it was originated", run.rows(a, b), judged)
    for row in _altered(run, rows)[:1]:
        return broken(f"member {run.member_of(row)} delivered an altered message", run.rows(row), judged)
    if not known.all():
        return cannot_judge(f"the trace of member {silent[0]}, which sent messages, is not there")
    return holds(judged)


def _near(run: Run, row: int) -> list[Row]:
    """The originate row with the same first message, if there is one."""
    c, sources = run.columns, run.originates
    same = np.ones(len(sources), bool)
    for name in ("sender", "sender_incarnation", "counter"):
        same &= c[name][sources] == c[name][row]
    return run.rows(*sources[same][:1].tolist())


_WEIGHTS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93,
                     0xA0761D6478BD642F, 0xE7037ED1A0B428DB], np.uint64)  # fmt: skip


def _origins(run: Run, rows: Array) -> Array:
    """For each deliver row the originate row with the same numbers, digest, service and groups; -1: none."""
    c, sources, units = run.columns, run.originates, run.units
    if units.exact and len(rows) == len(units.events):
        origin = units.origin[units.events]
        same = np.ones(len(rows), bool)
        for name in ("digest", "service", "groups"):
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
    candidates = np.intersect1d(rows, detail.rows, assume_unique=True)
    return [row for row in candidates.tolist() if "altered" in (detail.get(row) or {})]


def _submitted(run: Run) -> Finding | None:
    """Every originate row is its life's own and lies within earlier submissions of the same service and groups."""
    submits, originates = run.of(Kind.SUBMIT), run.originates
    owner = run.owners(originates)
    own = run.owners(submits) == np.searchsorted(run.life_start, submits, "right") - 1
    submits = submits[own]  # what is submitted in another's name counts for nothing
    submit_cuts, cuts = run.cuts(submits), run.cuts(originates)
    for life in range(run.lives):
        mine, owners = originates[cuts[life] : cuts[life + 1]], owner[cuts[life] : cuts[life + 1]]
        bad = [*mine[owners != life][:1].tolist(), *_altered(run, mine)[:1]]
        outside = _outside(run, submits[submit_cuts[life] : submit_cuts[life + 1]], mine)
        if bad or outside >= 0:
            row = min([*bad, *([outside] if outside >= 0 else [])])
            return broken(f"member {run.life_member[life]} originated what was not submitted to it so", run.rows(row))
    return None


def _outside(run: Run, submits: Array, originates: Array) -> int:
    """The first originate row that is not inside submissions before it, or -1."""
    c = run.columns
    if not len(originates):
        return -1
    if not len(submits):
        return int(originates[0])
    start, count = c["counter"][submits], c["count"][submits].astype(np.int64)
    if (start[1:] < start[:-1] + count[:-1]).any():
        return _outside_one_by_one(run, submits, originates)
    a = c["counter"][originates]
    b = a + c["count"][originates].astype(np.int64) - 1
    i, j = np.searchsorted(start, a, "right") - 1, np.searchsorted(start, b, "right") - 1
    gaps = np.concatenate(([0], np.cumsum(start[1:] != start[:-1] + count[:-1])))  # equal: no gap between
    service, groups = c["service"], c["groups"]
    differs = (service[submits[1:]] != service[submits[:-1]]) | (groups[submits[1:]] != groups[submits[:-1]])
    kinds = np.concatenate(([0], np.cumsum(differs)))
    good = (i >= 0) & (gaps[i] == gaps[j]) & (kinds[i] == kinds[j]) & (b < start[j] + count[j])
    good &= (submits[j] < originates) & (service[submits[j]] == service[originates])
    bad = np.flatnonzero(~(good & (groups[submits[j]] == groups[originates])))
    return int(originates[bad[0]]) if len(bad) else -1


def _outside_one_by_one(run: Run, submits: Array, originates: Array) -> int:
    """The same where submissions overlap: the last one before counts."""
    c = run.columns
    counter, count, service, groups = c["counter"], c["count"], c["service"], c["groups"]
    submitted: dict[int, int] = {}
    for row in np.sort(np.concatenate((submits, originates))).tolist():
        numbers = range(int(counter[row]), int(counter[row]) + int(count[row]))
        if run.kind[row] == Kind.SUBMIT:
            submitted |= dict.fromkeys(numbers, row)
            continue
        for number in numbers:
            at = submitted.get(number, -1)
            if at < 0 or service[at] != service[row] or groups[at] != groups[row]:
                return int(row)
    return -1


def s2(run: Run) -> Finding:
    judged = int(run.columns["count"][run.delivers].sum())
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
    cuts, originate_cuts = run.cuts(submits), run.cuts(units.originate_row)
    first, count = c["counter"][submits], c["count"][submits].astype(np.int64)
    for life in range(run.lives):
        a, b = cuts[life], cuts[life + 1]
        expected = np.concatenate(([1], first[a:b] + count[a:b]))[: b - a]
        wrong = np.flatnonzero(first[a:b] != expected)
        if len(wrong):
            k = int(wrong[0])
            what = f"member {run.life_member[life]} accepted message {int(first[a + k])}, not {int(expected[k])}"
            return broken(what, run.rows(submits[a + k - 1] if k else -1, submits[a + k]))
        if not units.exact:
            own = units.of_originate[originate_cuts[life] : originate_cuts[life + 1]]
            place = first_places(own, len(units.owner))
            again = np.flatnonzero(place[own] != np.arange(len(own)))
            if len(again):
                at = originate_cuts[life] + np.array([place[own[again[0]]], again[0]])
                return broken(
                    f"{run.named(int(own[again[0]]))} was originated twice", run.rows(*units.originate_row[at])
                )
    time = c["time_ns"]
    for life in range(1, run.lives):
        before, after = run.life_start[life - 1], run.life_start[life]
        if run.life_member[life - 1] == run.life_member[life] and time[before] > time[after]:
            what = f"member {run.life_member[life]} came back with a smaller incarnation"
            return broken(what, run.rows(after, before))
    return holds(len(submits))
