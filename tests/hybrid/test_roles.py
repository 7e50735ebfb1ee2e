"""Dynamic roles on the network of figure 3: A, B, C (members 1 to 3) 20 ms apart, D and E (4, 5) 540 ms away."""

from __future__ import annotations

import pytest

from ordercast import verify
from ordercast.protocols.hybrid.assignment import assign
from ordercast.sim.law import Delay
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Edge, Load, Net, Pace, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

HIGH, LOW = 25.0, 1.5
FAR = tuple(Edge(a=a, b=b, us=540_000.0) for a in (1, 2, 3) for b in (4, 5))
NET = Net(model="links", delay=Delay("constant", mean_us=20_000.0), edges=FAR, mbit=0.0)
BEGIN_MS = 30_000.0


def figure_2(rates: dict[int, float]) -> list[int]:
    near = ((1, 2, 3), (4, 5))
    distance = {
        p: {q: 0.0 if p == q else 20.0 if any({p, q} <= set(part) for part in near) else 540.0 for q in rates}
        for p in rates
    }
    return [int(str(p)) for p in assign(rates, distance, sorted(rates)).active]


def play(high: tuple[int, ...], seconds: float, *later: Pace, **options: object) -> Outcome:
    paces = (Pace(rate=LOW), Pace(members=high, rate=HIGH), *later)
    load = Load(regime="quasi", rate=HIGH, rates=paces, start_ms=BEGIN_MS)
    messages = round(seconds * (len(high) * HIGH + (5 - len(high)) * LOW))
    scenario = Scenario(
        protocol="hybrid", members=5, messages=messages, nets=(NET,), load=load, timeout_ms=10_000.0,
        options=dict(options), settle_ms=5_000.0, limit_ms=300_000.0,
    )  # fmt: skip
    return run(scenario, level="deliver")


def active(outcome: Outcome) -> list[int]:
    """Who is, when the load ends."""
    last = max(row.time_ns for row in outcome.trace.rows if row.kind == Kind.SUBMIT)
    roles = {5: "active"}  # the highest id of the first view
    for row in sorted(outcome.trace.rows, key=lambda row: row.time_ns):
        if row.kind == Kind.MODE and row.time_ns <= last:
            roles[row.member] = (row.detail or {})["role"]
    return sorted(member for member, role in roles.items() if role == "active")


@pytest.mark.parametrize("options", [{}, {"detector": "window"}, {"choice": "all"}], ids=str)
def test_roles_become_those_of_figure_2_and_settle(options: dict[str, object]) -> None:
    outcome = play((1, 4), 20, **options)
    verdicts = {v.promise: v.state for v in verify.check(outcome.trace)}
    assert "broken" not in verdicts.values() and verdicts["L10"] == "holds"
    assert active(outcome) == figure_2({1: HIGH, 2: LOW, 3: LOW, 4: HIGH, 5: LOW}) == [1, 4]


def test_roles_follow_a_load_that_changes() -> None:
    outcome = play((1, 4), 40, Pace(members=(4,), rate=LOW, at_ms=BEGIN_MS + 15_000.0))
    assert not [v.text for v in verify.check(outcome.trace) if v.state == "broken"]
    assert active(outcome) == figure_2({1: HIGH, 2: LOW, 3: LOW, 4: LOW, 5: LOW}) == [1]
