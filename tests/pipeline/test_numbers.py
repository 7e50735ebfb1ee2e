"""Measures over columns against loops over rows, and against what is known of the clocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ordercast.lab.latency import Differences, Echoes
from ordercast.pipeline import numbers
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Clocks, Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.swarm.work import latencies, latency_figures
from ordercast.trace.columns import Columns, from_rows
from ordercast.trace.schema import Kind
from ordercast.trace.trace import Trace


def simulated(**fields: Any) -> Trace:
    return run(
        Scenario(**{"protocol": "token_site", "messages": 400, "members": 4, "sizes": (10, 300), **fields})
    ).trace


def columns(trace: Trace) -> Columns:
    return from_rows(trace.rows)


@pytest.mark.parametrize("load", [Load(), Load(batch=7), Load(regime="bursts", burst=30, rate=50.0)])
def test_latency_from_submit_agrees_with_a_loop(load: Load) -> None:
    trace = simulated(load=load)
    found = numbers.samples(columns(trace))["submit"]
    expected = latencies(trace.rows)
    merged: dict[int, int] = {}
    for value, weight in expected:
        merged[value] = merged.get(value, 0) + weight
    assert dict(zip(found.values.tolist(), found.weights.tolist(), strict=True)) == merged
    assert sum(merged.values()) == sum(row.count or 0 for row in trace.rows if row.kind == Kind.DELIVER)
    assert found.values.tolist() == sorted(found.values.tolist())


def test_latency_from_origination_agrees_with_a_loop() -> None:
    trace = simulated(load=Load(batch=5))
    found = numbers.samples(columns(trace))["originate"]
    born = {(row.member, row.incarnation, row.counter): row.time_ns for row in trace.rows if row.kind == Kind.ORIGINATE}
    expected = sorted(
        (row.time_ns - born[row.sender, row.sender_incarnation, row.counter], row.count)
        for row in trace.rows
        if row.kind == Kind.DELIVER
    )
    got = [(v, w) for v, w in zip(found.values.tolist(), found.weights.tolist(), strict=True)]
    assert sum(w for _, w in got) == sum(w for _, w in expected)
    assert {v for v, _ in got} == {v for v, _ in expected}


def test_percentiles_are_nearest_ranks() -> None:
    figures = latency_figures([(10, 1), (20, 98), (30, 1)])
    assert figures == {
        "latency_count": 100, "latency_sum_ns": 2000, "latency_p50_ns": 20, "latency_p99_ns": 20, "latency_max_ns": 30,
    }  # fmt: skip


@pytest.mark.parametrize(("skew_ms", "drift"), [(0.0, 0.0), (5000.0, 0.0), (1000.0, 0.005)])
def test_latency_free_of_skew_sees_through_clocks(skew_ms: float, drift: float) -> None:
    """Offsets of seconds, 50 ppm of drift: both methods come within microseconds of the true mean."""
    trace = simulated(
        messages=1500, load=Load(regime="poisson", rate=500.0), sizes=(100,),
        clocks=Clocks(skew_ms=skew_ms, drift_percent=drift),
        nets=(Net(model="links", delay=Delay("uniform", low_us=400.0, high_us=600.0)),),
    )  # fmt: skip
    c = columns(trace)
    matched = numbers.match(c)
    foreign = c["member"][matched.deliver] != c["member"][matched.originate]
    true = (c["time_ns"][matched.deliver] - c["time_ns"][matched.originate])[foreign].mean()
    raw = np.abs((c["now_ns"][matched.deliver] - c["now_ns"][matched.originate])[foreign]).mean()
    pairs = numbers.pair_latencies(c)
    for method, bar_us in ((1, 10), (2, 15)):
        mine = [pair for pair in pairs if pair.method == method]
        mean = sum(p.mean_ps * p.messages for p in mine) / sum(p.messages for p in mine) / 1000
        assert abs(mean - true) / 1000 < bar_us, (method, mean, true)
    if skew_ms:
        assert abs(raw - true) > 1e6  # the clocks alone say nothing


def test_a_run_without_messages_has_no_latencies() -> None:
    assert numbers.pair_latencies(columns(simulated(messages=0))) == []


def test_both_methods_agree_with_the_plain_ones() -> None:
    trace = simulated(clocks=Clocks(skew_ms=50.0))
    pairs = numbers.pair_latencies(columns(trace), hold_max_ns=10**12)
    plain = Differences()
    echoes = {member: Echoes(10**12) for member in trace.header.members}
    born = {(r.member, r.incarnation, r.counter): r for r in trace.rows if r.kind == Kind.ORIGINATE}
    carried: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
    heard: dict[int, dict[int, tuple[int, int]]] = {member: {} for member in trace.header.members}
    for member in trace.header.members:
        for row in [row for row in trace.rows if row.member == member]:
            if row.kind == Kind.ORIGINATE:
                assert row.counter is not None
                carried[member, row.counter] = dict(heard[member])
            elif row.kind == Kind.DELIVER and row.sender != member:
                heard[member][row.sender] = (born[row.sender, row.sender_incarnation, row.counter].now_ns, row.now_ns)
    for row in trace.rows:
        if row.kind == Kind.DELIVER and row.sender != row.member:
            origin = born[row.sender, row.sender_incarnation, row.counter]
            plain.add(row.sender, row.member, row.now_ns - origin.now_ns, row.count or 1)
            for _ in range(row.count or 1):
                echoes[row.member].received(
                    row.member, row.sender, origin.now_ns, carried[row.sender, row.counter], row.now_ns
                )
    ones = {(p.a, p.b): (p.mean_ps / 1000, p.messages) for p in pairs if p.method == 1}
    assert ones.keys() == plain.pairs().keys()
    for pair, (mean, n) in plain.pairs().items():
        assert ones[pair] == (pytest.approx(mean, abs=0.01), n)
    twos = {(p.a, p.b): p for p in pairs if p.method == 2}
    for member, echo in echoes.items():
        for sender, (total, n) in echo.found.items():
            assert twos[sender, member].messages == n
            assert twos[sender, member].mean_ps / 1000 == pytest.approx(total / n, abs=0.01)


def test_buckets_hold_their_values() -> None:
    values = np.concatenate([np.arange(5000), 2 ** np.arange(62), 2 ** np.arange(1, 53) - 1])
    lower = numbers.bucket(values)
    assert (lower <= values).all()
    assert (values - lower <= values // 16).all()
    assert len(np.unique(numbers.bucket(np.arange(1 << 14)))) < 200


def test_facts_of_a_run() -> None:
    trace = simulated(load=Load(batch=3))
    facts = numbers.facts(columns(trace))
    assert facts["submitted"] == facts["originated"] == facts["slowest"] == 400
    assert facts["deliveries"] == 1600 and facts["view_changes"] == 0 and facts["crashes"] == 0
    assert facts["rows"] == len(trace.rows)
