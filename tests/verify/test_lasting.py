"""Under one fault of links that never heals views settle: few at its onset, then none."""

from __future__ import annotations

from msgspec.structs import replace

from ordercast.sim.faults import AnyFault, Cut
from ordercast.sim.scenario import Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.trace.trace import Trace
from ordercast.verify import BROKEN, CANNOT_JUDGE, HOLDS, check
from ordercast.verify.columns import check_trace


def trace_of(fault: AnyFault, limit_ms: float = 2000.0) -> Trace:
    load = Load(rate=50.0)
    scenario = Scenario(protocol="totem", members=4, messages=200, load=load, faults=(fault,), limit_ms=limit_ms)
    return run(scenario, level="full").trace


def state(trace: Trace) -> str:
    (plain,), (columns,) = check(trace, ["L2"]), check_trace(trace, ["L2"])
    assert plain.state == columns.state and plain.text == columns.text
    return plain.state


def with_more_views(trace: Trace, count: int, after_ms: float) -> Trace:
    """Member 1 installs `count` further views."""
    mine = [row for row in trace.rows if row.member == 1]
    last = [row for row in mine if row.kind == Kind.VIEW][-1]
    more = [
        replace(last, index=mine[-1].index + k, time_ns=int(after_ms * 1e6) + k, view_seq=(last.view_seq or 0) + 4 * k)
        for k in range(1, count + 1)
    ]
    return Trace(trace.header, [*trace.rows, *more])


def test_a_lasting_cut_costs_few_views_and_then_none() -> None:
    trace = trace_of(Cut(pairs=("1>2",), at_ms=200.0, lasting=True))
    assert state(trace) == HOLDS
    assert state(with_more_views(trace, 1, 1900.0)) == BROKEN  # late
    assert state(with_more_views(trace, 3, 210.0)) == BROKEN  # too many


def test_a_flapping_one_costs_no_more_than_its_probations() -> None:
    trace = trace_of(Cut(pairs=("1-2",), at_ms=200.0, down_ms=60.0, up_ms=60.0, lasting=True))
    assert state(trace) == HOLDS
    assert state(with_more_views(trace, 30, 1000.0)) == BROKEN


def test_not_judged_before_the_bound_nor_beside_other_faults() -> None:
    cut = Cut(pairs=("1>2",), at_ms=200.0, lasting=True)
    assert state(trace_of(cut, limit_ms=260.0)) == CANNOT_JUDGE
    trace = trace_of(cut)
    last = [row for row in trace.rows if row.member == 0][-1]
    crash = replace(last, kind=int(Kind.CRASH), sender=3, sender_incarnation=1, index=last.index + 1, detail=None)
    assert state(Trace(trace.header, [*trace.rows, crash])) == CANNOT_JUDGE


def test_a_majority_goes_on_delivering() -> None:
    trace = trace_of(Cut(pairs=("1>2",), at_ms=200.0, lasting=True), limit_ms=4000.0)
    assert state(trace) == HOLDS
    assert state(_silent(trace, (1, 2, 3, 4))) == BROKEN
    assert state(_silent(trace, (2,))) == HOLDS, "1, 3 and 4 are linked"
    assert state(_silent(trace, (3,))) == BROKEN, "both cores need 3"


def rings(*members: tuple[int, ...], cut: str) -> Trace:
    fault = Cut(pairs=(cut,), at_ms=200.0, lasting=True)
    load, count = Load(rate=50.0), len(set().union(*members))
    nets = tuple(Net(members=each) for each in members)
    scenario = Scenario(
        protocol="multiring", members=count, messages=200, nets=nets, load=load, faults=(fault,), limit_ms=4000.0
    )
    return run(scenario, level="full").trace


def test_a_majority_of_several_rings_is_joined_by_gateways() -> None:
    parted = rings((3, 4), (2, 4), (1, 2), cut="4>2")  # 1, 3 and 4 have no cut link between them, nor a common ring
    assert state(parted) == HOLDS and state(_silent(parted, (1, 2, 3, 4))) == HOLDS
    joined = rings((1, 2, 3), (3, 4, 5), cut="1>2")
    assert state(joined) == HOLDS
    assert state(_silent(joined, (5,))) == BROKEN, "whichever of 1 and 2 is left: 3, 4 and 5 go on"
    assert state(_silent(joined, (2,))) == HOLDS
    chosen = rings((1, 2, 3), (3, 4), cut="1>3")  # its ring may do without 3, and no part is a majority then
    assert state(chosen) == HOLDS and state(_silent(chosen, (1, 2, 3, 4))) == HOLDS


def _silent(trace: Trace, members: tuple[int, ...]) -> Trace:
    """These deliver nothing after the fault set in."""
    late = 400 * 10**6
    return Trace(trace.header, [
        replace(row, kind=int(Kind.NOTE), detail={"name": "nothing"})
        if row.kind == Kind.DELIVER and row.time_ns > late and row.member in members else row
        for row in trace.rows
    ])  # fmt: skip
