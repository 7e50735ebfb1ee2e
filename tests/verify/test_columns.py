"""Both forms of every checker agree on every trace."""

from __future__ import annotations

import random
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from verify_cases import ACCEPTED, EMPTY, REJECTED, UNJUDGED, Case
from verify_random import World, good, mutated
from verify_traces import run

from ordercast.trace import parquet
from ordercast.trace.columns import from_rows, joined
from ordercast.trace.trace import Trace
from ordercast.verify import CATALOGUE, check
from ordercast.verify.columns import CHECKS, check_many, check_trace, columns_for
from ordercast.verify.columns.graph import cycle

ALL = [c for table in (ACCEPTED, REJECTED, UNJUDGED, EMPTY) for of in table.values() for c in of]


@pytest.mark.parametrize("case", ALL, ids=range(len(ALL)))
def test_the_forms_agree(case: Case) -> None:
    trace = run(case[0], **case[1])
    assert states(check_trace(trace)) == states(check(trace))


@pytest.mark.parametrize(("promise", "case"), [(id, c) for id, of in REJECTED.items() for c in of])
def test_rejects_and_says_why(promise: str, case: Case) -> None:
    [verdict] = check_trace(run(case[0], **case[1]), [promise])
    assert verdict.state == "broken" and CATALOGUE[promise].statement in verdict.text and verdict.example


def test_there_is_an_array_form_of_every_checker() -> None:
    assert set(CHECKS) == {id for id, promise in CATALOGUE.items() if not promise.elsewhere}


def states(verdicts: list) -> dict[str, str]:
    """What is said of each promise; of one that holds, of how many things."""
    return {v.promise: f"{v.state} of {v.judged}" if v.state == "holds" else v.state for v in verdicts}


SAFETY = [id for id, promise in CATALOGUE.items() if promise.safety and not promise.elsewhere and id != "S8"]


@pytest.mark.parametrize("block", range(5))
def test_random_good_runs_hold(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        trace = good(seed)
        for form in (check, check_trace):
            for verdict in form(trace, SAFETY):
                unseen = verdict.promise == "S20" and trace.header.level == "deliver"
                unstamped = verdict.promise == "S23" and not any("stamp" in (row.detail or {}) for row in trace.rows)
                assert verdict.state in ("holds", "nothing to judge") or unseen or unstamped, (seed, verdict)


@pytest.mark.parametrize("block", range(10))
def test_the_forms_agree_on_random_damage(block: int) -> None:
    broken: set[str] = set()
    for seed in range(block * 40, block * 40 + 40):
        trace = mutated(good(seed), seed)
        plain = states(check(trace))
        assert states(check_trace(trace)) == plain, f"seed {seed}"
        broken |= {id for id, state in plain.items() if state == "broken"}
    assert len(broken) > 10


def test_cycles_that_no_two_logs_show() -> None:
    """One order or none: the graph decides as a plain topological sort does, on logs with holes."""
    pick = random.Random(3)
    found = 0
    for _ in range(400):
        units = pick.randint(2, 12)
        order = list(range(units))
        logs = []
        for _ in range(pick.randint(1, 6)):
            log = [u for u in order if pick.random() < 0.6]
            if pick.random() < 0.3 and len(log) > 1:
                k = pick.randrange(len(log) - 1)
                log[k], log[k + 1] = log[k + 1], log[k]
            logs.append(np.array(log, np.int64))
        edges = cycle(logs, units)
        sorter = TopologicalSorter[int]()
        for log in logs:
            for a, b in pairwise(log.tolist()):
                sorter.add(b, a)
        try:
            sorter.prepare()
            assert not edges
        except CycleError:
            found += 1
            ends = [(int(logs[which][a]), int(logs[which][b])) for which, a, b in edges]
            assert all(one[1] == two[0] for one, two in zip(ends, ends[1:] + ends[:1], strict=True)) and ends
    assert 50 < found < 350
    ring = [np.array([k, (k + 1) % 1000]) for k in range(1000)]
    assert len(cycle(ring, 1000)) == 1000 and not cycle(ring[:-1], 1000)


@pytest.mark.parametrize("block", range(4))
def test_runs_cut_out_of_many_are_judged_as_the_plain_form_does(block: int) -> None:
    traces = []
    for seed in range(block * 50, block * 50 + 50):
        trace = good(seed)
        traces.append(mutated(trace, seed) if seed % 3 == 0 else simple(seed))
        traces.append(mutated(simple(seed), seed))
    parts = [from_rows(trace.rows) for trace in traces]
    cuts = np.cumsum([0, *map(len, parts)]).tolist()
    traces.insert(7, Trace(traces[0].header, []))  # a run without rows
    cuts.insert(7, cuts[7])
    verdicts = check_many(joined(parts), cuts, [trace.header for trace in traces])
    for k, trace in enumerate(traces):
        assert states(verdicts[k]) == states(check(trace)), f"trace {k}"


def simple(seed: int) -> Trace:
    """A run of the common shape: one view, nobody fails."""
    world = World(seed, plain=True)
    for _ in range(world.pick.randint(0, 80)):
        world.pick.choice([world.submit, world.originate, world.receive, world.deliver, world.deliver])()
    world.finish()
    return world.builder.trace()


def test_a_promise_needs_only_the_columns_it_names(tmp_path: Path) -> None:
    traces = [mutated(good(seed), seed) for seed in range(20)]
    with parquet.Writer(tmp_path / "t.parquet", group_rows=2000) as file:
        for trace in traces:
            file.add(trace.header, trace.rows)
    file = parquet.ParquetFile(tmp_path / "t.parquet")
    expected = {trace.header.run: states(check_trace(trace, list(CHECKS))) for trace in traces}
    for id in CHECKS:
        for headers, cuts, columns in file.groups(columns_for([id])):
            for header, [verdict] in zip(headers, check_many(columns, cuts, headers, [id]), strict=True):
                assert states([verdict])[id] == expected[header.run][id], (header.run, id)
