"""The share of time halted: windows of 50 ms in which a present member delivers nothing although there is load."""

from __future__ import annotations

import pytest

from ordercast.pipeline.halts import _without, halts
from ordercast.sim.faults import Crash, Pause
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.columns import from_rows


def halted_of(scenario: Scenario) -> tuple[int, int]:
    return halts(from_rows(run(scenario).trace.rows))


@pytest.mark.parametrize(
    ("away", "left"),
    [([], [(0, 10)]), ([(2, 4)], [(0, 2), (4, 10)]), ([(2, 6), (4, 20)], [(0, 2)]), ([(0, 3)], [(3, 10)])],
)
def test_spans_without_absences(away: list[tuple[int, int]], left: list[tuple[int, int]]) -> None:
    assert _without((0, 10), away) == left


def test_a_pause_of_a_totem_member_halts_the_others_and_does_not_count_for_itself() -> None:
    calm = Scenario(protocol="totem", members=3, messages=4_000, load=Load(regime="periodic", rate=400.0))
    halted, windows = halted_of(calm)
    assert halted == 0 and windows > 150
    pauses = tuple(Pause(member=3, at_ms=500.0 + 600.0 * k, for_ms=300.0) for k in range(4))
    paused, fewer = halted_of(calm.changed(faults=pauses, timeout_ms=120.0))
    assert fewer < windows - 4 * 4, "the paused one is not present"
    assert 4 <= paused <= 40, "about T each time, for both"


def test_who_is_down_is_not_halted() -> None:
    scenario = Scenario(protocol="dpg", members=3, messages=3_000, load=Load(regime="periodic", rate=300.0))
    crash = (Crash(member=2, at_ms=700.0, down_ms=900.0),)
    halted, windows = halted_of(scenario.changed(faults=crash))
    assert windows > 150 and halted <= 4


def test_no_load_is_no_halt() -> None:
    assert halted_of(Scenario(messages=0)) == (0, 0)
