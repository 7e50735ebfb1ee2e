"""Planted faults: every class of damage, on traces with process groups, crashes and partitions; none missed, none
invented, both forms alike."""

from __future__ import annotations

from functools import cache

import pytest
from planted import DAMAGES, HARMLESS, Nowhere, Story

from ordercast.sim.faults import Crash, Leaving, Partition
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.columns import from_rows
from ordercast.trace.sound import first_fault
from ordercast.trace.trace import Trace
from ordercast.verify import check
from ordercast.verify.columns import check_trace

SHAPES = {"groups": {"groups": 3}, "groups, safe": {"groups": 2, "service": "safe"}, "safe": {"service": "safe"}}
TRIES = 2  # places for each damage in each trace


@cache
def sound_trace(shape: str) -> Trace:
    """Five members split in two and merge, one leaves, one is killed and comes back; then calm, and messages in it."""
    scenario = Scenario(
        protocol="totem", members=5, messages=75, seed=5, load=Load(rate=20.0), limit_ms=8000.0, heal_ms=1400.0,
        closing=8, faults=(
            Partition(shape="halves", groups=((1, 2, 5), (3, 4)), at_ms=250.0, until_ms=600.0),
            Leaving(member=5, at_ms=760.0),
            Crash(member=4, at_ms=900.0, down_ms=250.0),
        ), **SHAPES[shape],
    )  # type: ignore[arg-type]  # fmt: skip
    return run(scenario, level="full").trace


def judged(trace: Trace) -> dict[str, str]:
    """By both forms, which must agree."""
    assert first_fault(from_rows(trace.rows)) is None, "a reader would refuse it"
    plain = {verdict.promise: verdict.state for verdict in check(trace)}
    assert {verdict.promise: verdict.state for verdict in check_trace(trace)} == plain
    return plain


@pytest.mark.parametrize("shape", SHAPES)
def test_the_traces_have_something_of_everything(shape: str) -> None:
    states = judged(sound_trace(shape))
    empty = {"L7"} if "groups" in SHAPES[shape] else {"L7", "S21", "S22"}  # nobody is refused
    assert {id for id, state in states.items() if state != "holds"} == empty, states


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_seen(name: str) -> None:
    how, wanted = DAMAGES[name]
    planted = 0
    for shape in SHAPES:
        for seed in range(TRIES):
            story = Story(sound_trace(shape), seed)
            try:
                how(story)
            except Nowhere:
                continue
            planted += 1
            broken = {id for id, state in judged(story.trace()).items() if state == "broken"}
            assert broken & wanted, f"missed in {shape}, {seed}: broken is {sorted(broken)}"
    assert planted, "no trace had a place for it"


@pytest.mark.parametrize("name", HARMLESS)
def test_nothing_is_invented(name: str) -> None:
    for shape in SHAPES:
        for seed in range(TRIES):
            story = Story(sound_trace(shape), seed)
            HARMLESS[name](story)
            states = judged(story.trace())
            broken = {id for id, state in states.items() if state == "broken"}
            assert not {id for id in broken if id.startswith("S") or name != "killed at the end"}, (shape, seed, broken)
