"""Q1 quasi order: deliveries of each spell of presence against the order of the majority."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from itertools import pairwise

from ordercast.trace.schema import Kind, Row
from ordercast.verify.plain.model import Life, Run
from ordercast.verify.quasi import Return, Tally, judge, outside, resumes
from ordercast.verify.verdict import Finding

Unit = tuple[int, int, int]  # sender, incarnation, counter of the first message


def q1(run: Run) -> Finding:
    return judge(tally(run), run.header)


def l11(run: Run) -> Finding:
    returns = []
    for life in run.lives:
        away = False
        rows = list(life.of(Kind.DELIVER, Kind.ABSENT, Kind.PRESENT))
        for k, row in enumerate(rows):
            if row.kind == Kind.PRESENT and away:
                spell = []
                for later in rows[k + 1 :]:
                    if later.kind != Kind.DELIVER:
                        break
                    spell.append(later)
                following = rows[k + 1 + len(spell) :]
                end = following[0].time_ns if following else life.rows[-1].time_ns
                first = next((r.time_ns for r in spell if r.count), None)
                returns.append(Return(life.key, row, end, first))
            away = row.kind == Kind.ABSENT or (away and row.kind == Kind.DELIVER)
    delivered = {life.key: [row.time_ns for row in life.of(Kind.DELIVER) if row.count] for life in run.lives}
    return resumes(run.header, returns, delivered, run.world)


def tally(run: Run) -> Tally:
    spells = [spell for life in run.lives for spell in _spells(life)]
    bodies: dict[Unit, Row] = {}
    for spell in spells:
        for row in spell:
            if row.count:
                bodies.setdefault(_unit(row), row)
    tags = {(unit[0], unit[1], row.order_seq): unit for unit, row in bodies.items()}
    found = Tally(messages=len(bodies))
    logs: list[list[Unit]] = []
    hollow: set[Unit] = set()  # dummies somewhere, delivered elsewhere
    for spell in spells:
        rows: dict[Unit, Row] = {}
        for row in spell:
            found.late += row.certainty == "late"
            found.expired += row.certainty == "expired"
            if not row.count:
                found.dummies += 1
                hollow |= {tags[key] for key in [(row.sender, row.sender_incarnation, row.order_seq)] if key in tags}
            elif _unit(row) in rows:
                found.duplicate = found.duplicate or (rows[_unit(row)], row)
            else:
                rows[_unit(row)] = row
        logs.append(list(rows))
    common = reference(logs)
    rank = {unit: k for k, unit in enumerate(common)}
    order: set[Unit] = set()
    holes: set[Unit] = set(hollow)
    for log in logs:
        places = [rank[unit] for unit in log]
        wrong = set(outside(places))
        order |= {log[k] for k in wrong}
        kept = [place for k, place in enumerate(places) if k not in wrong]
        if kept:
            seen = set(places)
            holes |= {common[k] for k in range(kept[0], kept[-1]) if k not in seen}
    found.order, found.atomicity, found.violating = len(order), len(holes), len(order | holes)
    found.example = tuple(bodies[unit] for unit in sorted(order | holes)[:3])
    found.conflicts = sum(
        int((row.detail or {}).get("count", 1))
        for life in run.lives
        for row in life.of(Kind.NOTE)
        if (row.detail or {}).get("name") == "conflict"
    )
    return found


def _spells(life: Life) -> list[list[Row]]:
    """Deliver rows, cut where the member was away."""
    out: list[list[Row]] = [[]]
    for row in life.of(Kind.DELIVER, Kind.ABSENT, Kind.PRESENT):
        if row.kind == Kind.DELIVER:
            out[-1].append(row)
        else:
            out.append([])
    return [spell for spell in out if spell]


def _unit(row: Row) -> Unit:
    return row.sender or 0, row.sender_incarnation or 0, row.counter or 0


def reference(logs: list[list[Unit]]) -> list[Unit]:
    """One order of all, by the majority over neighbours: next is always who has the smallest share still against it."""
    pairs: Counter[tuple[Unit, Unit]] = Counter()
    for log in logs:
        pairs.update(pairwise(log))
    after: dict[Unit, dict[Unit, int]] = {unit: {} for log in logs for unit in log}
    against = dict.fromkeys(after, 0)
    for (x, y), votes in pairs.items():
        more = votes - pairs.get((y, x), 0)
        if more > 0:
            after[x][y] = more
            against[y] += more
    total = {unit: max(1, votes) for unit, votes in against.items()}
    heap = [(votes / total[unit], unit) for unit, votes in against.items()]
    heapify(heap)
    order: list[Unit] = []
    while heap:
        share, unit = heappop(heap)
        if unit not in against or against[unit] / total[unit] != share:
            continue
        del against[unit]
        order.append(unit)
        for y, more in after[unit].items():
            if y in against:
                against[y] -= more
                heappush(heap, (against[y] / total[y], y))
    return order
