"""Q1 quasi order, over arrays."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from ordercast.trace.schema import Kind
from ordercast.verify.columns.model import Array, Run
from ordercast.verify.quasi import Return, Tally, judge, outside, resumes
from ordercast.verify.verdict import Finding


def q1(run: Run) -> Finding:
    return judge(tally(run), run.header)


def l11(run: Run) -> Finding:
    c, returns, delivered = run.columns, [], {}
    every, back, away = run.of(Kind.DELIVER), run.of(Kind.PRESENT), run.of(Kind.ABSENT)
    every = every[c["count"][every] > 0]
    turns = np.sort(np.concatenate((back, away)))
    bounds = np.append(run.life_start, len(c))
    for k, life in enumerate(zip(run.life_member, run.life_incarnation, strict=True)):
        start, stop = int(bounds[k]), int(bounds[k + 1])
        mine = every[(every >= start) & (every < stop)]
        delivered[life] = c["time_ns"][mine].tolist()
        inside = turns[(turns >= start) & (turns < stop)].tolist()
        for at, row in enumerate(inside):
            if at and run.kind[row] == int(Kind.PRESENT) and run.kind[inside[at - 1]] == int(Kind.ABSENT):
                last = inside[at + 1] if at + 1 < len(inside) else stop - 1
                spell = mine[(mine > row) & (mine < (last if at + 1 < len(inside) else stop))]
                first = int(c["time_ns"][spell[0]]) if len(spell) else None
                returns.append(Return(life, run.rows(row)[0], int(c["time_ns"][last]), first))
    return resumes(run.header, returns, delivered, run.rows(*range(run.world_end)))


def tally(run: Run) -> Tally:
    c, every = run.columns, run.of(Kind.DELIVER)
    words = [*c.tables["certainty"], None]
    certainty = np.array([str(word) for word in words])[c["certainty"][every]] if len(every) else np.empty(0, str)
    found = Tally(late=int((certainty == "late").sum()), expired=int((certainty == "expired").sum()))
    full = c["count"][every] > 0
    found.dummies = int((~full).sum())
    spell = _spells(run, every)
    rows, spell_of = every[full], spell[full]
    units, first, unit = _units(run, rows)
    found.messages = len(units)
    found.conflicts = _conflicts(run)
    holes = np.zeros(len(units), bool)
    holes[_hollow(run, every[~full], rows, unit)] = True
    keys = spell_of * (len(units) + 1) + unit
    order_of_keys = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order_of_keys]) == 0)
    if len(twice):
        k = int(twice[np.argmin(order_of_keys[twice + 1])])
        found.duplicate = tuple(run.rows(int(rows[order_of_keys[k]]), int(rows[order_of_keys[k + 1]])))
        again = np.zeros(len(rows), bool)
        again[order_of_keys[twice + 1]] = True
        unit, spell_of = unit[~again], spell_of[~again]
    cuts = np.append(np.flatnonzero(np.diff(spell_of, prepend=-1)), len(unit)).tolist()
    rank = _reference(unit, spell_of, len(units))
    place = rank[unit]
    order = np.zeros(len(units), bool)
    by_rank = np.argsort(rank, kind="stable")
    for start, end in pairwise(cuts):
        ranks = place[start:end]
        wrong: list[int] = [] if (np.diff(ranks) > 0).all() else outside(ranks.tolist())
        order[unit[start:end][wrong]] = True
        kept = np.delete(ranks, wrong)
        low, high = int(kept[0]), int(kept[-1])
        seen = np.zeros(high - low, bool)
        seen[ranks[(ranks >= low) & (ranks < high)] - low] = True
        holes[by_rank[low:high][~seen]] = True
    both = order | holes
    found.order, found.atomicity, found.violating = int(order.sum()), int(holes.sum()), int(both.sum())
    found.example = tuple(run.rows(*first[np.flatnonzero(both)[:3]].tolist()))
    return found


def _spells(run: Run, rows: Array) -> Array:
    """A number for each spell of presence of each life, ascending."""
    cuts = np.sort(np.concatenate((run.of(Kind.ABSENT), run.of(Kind.PRESENT), run.life_start)))
    out: Array = np.searchsorted(cuts, rows, "right")
    return out


def _units(run: Run, rows: Array) -> tuple[Array, Array, Array]:
    """Distinct (sender, life, counter), sorted; the first row of each; which one each row is."""
    c = run.columns
    if not len(rows):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    table = np.stack([c[name][rows].astype(np.int64) for name in ("sender", "sender_incarnation", "counter")])
    order = np.lexsort(table[::-1])
    fresh = np.append(True, (np.diff(table[:, order]) != 0).any(axis=0))
    unit = np.empty(len(rows), np.int64)
    unit[order] = np.cumsum(fresh) - 1
    return np.flatnonzero(fresh), rows[order[fresh]], unit


def _hollow(run: Run, dummies: Array, rows: Array, unit: Array) -> list[int]:
    """Units that some member got as a dummy."""
    if not len(dummies) or not len(rows):
        return []
    c, names = run.columns, ("sender", "sender_incarnation", "order_seq")
    wanted = set(zip(*(c[name][dummies].tolist() for name in names), strict=True))
    near = np.isin(c["order_seq"][rows], c["order_seq"][dummies])
    told = zip(*(c[name][rows[near]].tolist() for name in names), unit[near].tolist(), strict=True)
    return sorted({of for *tag, of in told if tuple(tag) in wanted})


def _conflicts(run: Run) -> int:
    details = run.columns.sparse["detail"]
    told = (details.get(int(row)) or {} for row in run.of(Kind.NOTE))
    return sum(int(detail.get("count", 1)) for detail in told if detail.get("name") == "conflict")


def _reference(unit: Array, spell: Array, count: int) -> Array:
    """The place of each unit in the order of the majority; straight away where one spell has all and none differs."""
    if not count:
        return np.empty(0, np.int64)
    same = spell[1:] == spell[:-1]
    x, y = unit[:-1][same], unit[1:][same]
    sizes = np.bincount(spell)
    longest = int(np.argmax(sizes))
    if sizes[longest] == count:
        rank = np.empty(count, np.int64)
        rank[unit[spell == longest]] = np.arange(count)
        if (rank[x] < rank[y]).all():
            return rank
    pairs, votes = np.unique(x * count + y, return_counts=True)
    back = (pairs % count) * count + pairs // count
    at = np.minimum(np.searchsorted(pairs, back), max(0, len(pairs) - 1))
    more = votes - np.where(pairs[at] == back, votes[at], 0) if len(pairs) else votes
    pairs, more = pairs[more > 0], more[more > 0]
    return _by_votes((pairs // count), (pairs % count), more, count)


def _by_votes(x: Array, y: Array, votes: Array, count: int) -> Array:
    against = np.bincount(y, votes, count).astype(np.int64).tolist() if len(y) else [0] * count
    starts = np.searchsorted(x, np.arange(count + 1)).tolist()
    ends, weights = y.tolist(), votes.tolist()
    total = [max(1, votes) for votes in against]
    heap = [(float(votes > 0), unit) for unit, votes in enumerate(against)]
    heapify(heap)
    rank = [-1] * count
    place = 0
    while heap:
        told, unit = heappop(heap)
        if rank[unit] >= 0 or against[unit] / total[unit] != told:
            continue
        rank[unit] = place
        place += 1
        for k in range(starts[unit], starts[unit + 1]):
            other = ends[k]
            if rank[other] < 0:
                against[other] -= weights[k]
                heappush(heap, (against[other] / total[other], other))
    return np.array(rank, np.int64)
