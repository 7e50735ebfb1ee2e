"""Q1: planted violators are all counted, none invented, by both forms; its bounds are those of Clopper and Pearson."""

from __future__ import annotations

import random

import pytest
from verify_traces import Builder

from ordercast.trace.columns import from_rows
from ordercast.trace.schema import Kind
from ordercast.trace.trace import Trace
from ordercast.verify.columns import quasi as columns
from ordercast.verify.columns.model import Run as ColumnRun
from ordercast.verify.plain import quasi as plain
from ordercast.verify.plain.model import Run
from ordercast.verify.quasi import Tally, bounds, outside


def deliveries(builder: Builder, member: int, order: list[int], dummies: frozenset[int] = frozenset()) -> None:
    for k in order:
        known = {"sender": 1 + k % 3, "sender_incarnation": 1, "order_seq": k}
        if k in dummies:
            builder.add(member, Kind.DELIVER, **known, counter=0, count=0, certainty="dummy")
        else:
            builder.add(member, Kind.DELIVER, **known, counter=k, count=1, digest=k, service=5, certainty="marked")


def both(trace: Trace) -> list[Tally]:
    return [plain.tally(Run(trace)), columns.tally(ColumnRun(from_rows(trace.rows), trace.header))]


def told(tally: Tally) -> tuple[int, ...]:
    return tally.messages, tally.violating, tally.order, tally.atomicity, tally.dummies


@pytest.mark.parametrize("seed", range(20))
def test_planted_violators_are_counted_and_none_is_invented(seed: int) -> None:
    """Of five members one has some messages late by a few places, some as dummies and some not at all."""
    draw = random.Random(seed)
    n, builder = draw.randint(100, 300), Builder(service="quasi", options={"rate": 0.01})
    far_apart = list(range(10, n - 10, 9))
    draw.shuffle(far_apart)
    moved, hollow, lost = far_apart[:3], frozenset(far_apart[3:5]), frozenset(far_apart[5:7])
    order = [k for k in range(1, n + 1) if k not in lost]
    for k in moved:
        at = order.index(k)
        order.insert(at + draw.randint(2, 4), order.pop(at))
    bad = draw.randint(1, 5)
    for member in range(1, 6):
        if member == bad:
            deliveries(builder, member, order, hollow)
        else:  # who comes late, was away or goes early misses nothing that counts
            begin, end = draw.randint(1, 8), draw.randint(n - 8, n)
            away = draw.randint(20, n - 20) if member == bad % 5 + 1 else 0
            first = [k for k in range(begin, end + 1) if not away or k <= away]
            deliveries(builder, member, first)
            if away:
                builder.add(member, Kind.ABSENT)
                builder.add(member, Kind.PRESENT)
                deliveries(builder, member, list(range(min(away + 5, end), end + 1)))
    for tally in both(builder.trace()):
        assert told(tally) == (n, 7, 3, 4, 2)


@pytest.mark.parametrize("seed", range(60))
def test_the_forms_agree_on_any_nonsense(seed: int) -> None:
    draw = random.Random(1_000 + seed)
    builder = Builder(service="quasi")
    for member in range(1, draw.randint(2, 6)):
        order = [k for k in range(1, draw.randint(2, 40)) if draw.random() < 0.9]
        for _ in range(draw.randint(0, 6)):
            order.insert(draw.randrange(len(order) + 1), order.pop(draw.randrange(len(order))) if order else 1)
        if draw.random() < 0.1 and order:
            order.append(order[0])
        deliveries(builder, member, order, frozenset(draw.sample(range(1, 40), draw.randint(0, 4))))
    one, two = both(builder.trace())
    assert one == two


def test_the_longest_increasing_part() -> None:
    draw = random.Random(5)
    assert outside([1, 2, 3]) == [] and outside([]) == []
    assert outside([1, 5, 2, 3]) == [1]
    for _ in range(200):
        ranks = draw.sample(range(30), draw.randint(0, 9))
        best = max((len(part) for part in _increasing(ranks)), default=0)
        wrong = outside(ranks)
        kept = [rank for place, rank in enumerate(ranks) if place not in wrong]
        assert kept == sorted(kept) and len(kept) == best


def _increasing(ranks: list[int]) -> list[list[int]]:
    out: list[list[int]] = [[]]
    for rank in ranks:
        out += [[*part, rank] for part in out if not part or part[-1] < rank]
    return out


def test_bounds() -> None:
    """Against the binomial sum itself, and against values known by heart: no hit in n gives about 3/n."""
    from math import comb

    for hits, trials in ((0, 100), (1, 50), (3, 40), (20, 60), (60, 60)):
        low, high = bounds(hits, trials)
        if hits:
            tail = sum(comb(trials, k) * low**k * (1 - low) ** (trials - k) for k in range(hits, trials + 1))
            assert abs(tail - 0.05) < 1e-6
        if hits < trials:
            head = sum(comb(trials, k) * high**k * (1 - high) ** (trials - k) for k in range(hits + 1))
            assert abs(head - 0.05) < 1e-6
    assert bounds(0, 50_000)[1] < 1 / 10_000 and bounds(1, 50_000)[1] < 1 / 10_000 < bounds(2, 50_000)[1]
    assert bounds(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("first", "fault", "state", "judged"),
    [(50, "", "holds", 1), (None, "", "broken", 1), (125, "", "broken", 1), (None, "loss", "holds", 0)],
)
def test_who_returns_delivers_before_others_have_counted_the_cycles(
    first: int | None, fault: str, state: str, judged: int
) -> None:
    """L11: Deliv_Cycle and ten Report_Cycles are 60 and 50; a fault of links meanwhile excuses."""
    builder = Builder(service="quasi")
    if fault:
        builder.add(0, Kind.FAULT, time_ns=1, detail={"class": fault, "state": "on", "number": 1, "member": 2})
    builder.add(2, Kind.ABSENT, time_ns=10)
    builder.add(2, Kind.PRESENT, time_ns=20)
    known = {"sender": 1, "sender_incarnation": 1, "count": 1, "service": 5, "certainty": "marked"}
    for k in range(1, 200):
        builder.add(1, Kind.DELIVER, time_ns=20 + k, order_seq=k, counter=k, digest=k, **known)
    if first is not None:
        builder.add(2, Kind.DELIVER, time_ns=20 + first, order_seq=first, counter=first, digest=first, **known)
    builder.add(2, Kind.END, time_ns=400, detail={})
    trace = builder.trace()
    found = [plain.l11(Run(trace)), columns.l11(ColumnRun(from_rows(trace.rows), trace.header))]
    assert [(f.state, f.judged) for f in found] == [(state, judged)] * 2, found
