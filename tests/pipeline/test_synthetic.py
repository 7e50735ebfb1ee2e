"""Made-up runs are correct, and each fault breaks the promise it names: by both kinds of checkers."""

from __future__ import annotations

import pytest
from synthetic import FAULTS, Shape, fault_plan, inject, make_run, make_runs
from synthetic.runs import Run, columns_of

from ordercast.trace.sound import first_fault
from ordercast.trace.trace import Trace
from ordercast.verify import check as plain
from ordercast.verify.columns import check as over_arrays

SHAPES = [Shape(members=4, frames_mean=60, crash_share=0.4, partition_share=0.4, per_frame=k) for k in (1, 5)]


def broken(run: Run) -> set[str]:
    columns = columns_of(run)
    assert first_fault(columns) is None, "a reader would refuse it"
    by_arrays = {v.promise: v.state for v in over_arrays(columns, run.header)}
    by_loops = {v.promise: v.state for v in plain(Trace(run.header, columns.rows()))}
    assert by_arrays == by_loops
    assert "cannot judge" not in by_loops.values()
    return {promise for promise, state in by_loops.items() if state == "broken"}


@pytest.mark.parametrize("shape", SHAPES, ids=["single", "frames"])
def test_runs_keep_every_promise(shape: Shape) -> None:
    for seed in range(12):
        assert broken(make_run("good", seed, shape)) == set()


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("shape", SHAPES, ids=["single", "frames"])
def test_a_fault_breaks_its_promise(shape: Shape, name: str) -> None:
    found = 0
    for seed in range(40):
        run = make_run("bad", seed, shape)
        fault = inject(run, name, seed)
        if fault is None:
            assert broken(run) == set()
            continue
        assert fault.promise in broken(run), (name, seed)
        found += 1
        if found == 3:
            return
    pytest.fail(f"only {found} of 40 runs had a place for it")


def test_a_plan_comes_out_whole() -> None:
    plan = fault_plan(40, 2, 1)
    runs = list(make_runs(40_000, 1, SHAPES[0], plan))
    faults = [fault for _, fault in runs if fault is not None]
    assert sorted(fault.name for fault in faults) == sorted(plan.values())
    assert len({fault.run for fault in faults}) == len(faults)
