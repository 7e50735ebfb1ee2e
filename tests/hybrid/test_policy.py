"""When roles change: the paper's scenarios, its detector on Poisson sources, and what goes beyond it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ordercast.conformance import golden
from ordercast.protocols.hybrid.assignment import assign, shared, switch
from ordercast.protocols.hybrid.detector import DETECTORS, Detector
from ordercast.protocols.hybrid.numbers import RateSynchronised
from ordercast.protocols.hybrid.ways import Ways

CASES = golden.load(Path(__file__).parents[1] / "golden/hybrid.json")
NINE = [case for case in CASES if case["name"].startswith("mode-scenario")]
THRESHOLD, FAR = 0.2, 540.0


def closest(case: golden.Case, j: str, active: list[Any]) -> float:
    return min(case["D"][j][a] for a in active if a != j)


@pytest.mark.parametrize("case", NINE, ids=lambda case: case["name"])
def test_who_looks_at_itself_stays_where_figure_2_puts_it(case: golden.Case) -> None:
    active = assign(case["rates"], case["D"], case["order"]).active
    for j, rate in case["rates"].items():
        if active != [j]:
            assert switch(j in active, 1000 / rate, closest(case, j, active), THRESHOLD) is None


@pytest.mark.parametrize("case", NINE, ids=lambda case: case["name"])
def test_all_messages_counted_give_the_same_roles_there(case: golden.Case) -> None:
    """With nulls after 20 ms."""
    active = assign(case["rates"], case["D"], case["order"]).active
    for j, rate in case["rates"].items():
        if active != [j]:
            t = shared(1000 / rate, (sum(case["rates"].values()) - rate) / 1000, 20.0)
            assert switch(j in active, t, closest(case, j, active), THRESHOLD) is None


def test_who_would_hold_many_up_stays_passive_when_all_messages_count() -> None:
    """A sends 100 a second, D 2.5: by itself D becomes active, though all wait for it then; with nulls they do not."""
    assert switch(False, 400.0, FAR, THRESHOLD) == "active"
    assert switch(False, shared(400.0, 0.1, 1e9), FAR, THRESHOLD) is None
    assert switch(True, shared(400.0, 0.1, 1e9), FAR, THRESHOLD) == "passive"
    assert switch(False, shared(400.0, 0.1, 20.0), FAR, THRESHOLD) == "active"


def estimates(detector: Detector, seed: int, count: int = 4_000, mean: float = 1000.0) -> list[float]:
    rng, out = random.Random(seed), []
    for _ in range(count):
        detector.sample(rng.expovariate(1 / mean))
        told = detector.mean(0)
        out += [] if told is None else [told]
    return out


def test_the_window_is_right_on_poisson_sources_and_the_papers_detector_is_not() -> None:
    shift = [e for seed in range(5) for e in estimates(DETECTORS["mean_shift"](7), seed)]
    window = [e for seed in range(5) for e in estimates(DETECTORS["window"](7), seed)]
    low = 0.8 * FAR
    assert 650 < sum(shift) / len(shift) < 850 and sum(e < low for e in shift) / len(shift) > 0.05
    assert abs(sum(window) / len(window) - 1000) < 30 and sum(e < low for e in window) / len(window) < 0.002


def test_a_window_notices_silence() -> None:
    window = DETECTORS["window"](2)
    for _ in range(6):
        window.sample(10.0)
    assert window.mean(10) == 10.0 and window.mean(10_000) == pytest.approx(10_060 / 7)


def test_distances_are_the_shortest_of_the_last_trips() -> None:
    ways = Ways(2)
    for now, trip in ((0, 100_000), (200_000, 40_000), (400_000, 60_000), (600_000, 80_000)):
        ((member, ping),) = ways.ask(now, [2])
        assert member == 2 and ways.answered(now + trip, 2, ping.number)
        assert not ways.answered(now + trip, 2, ping.number), "answered already"
    assert ways.distance[2] == 30_000 and ways.shortest[2] == 20 and ways.known(2)
    assert not ways.answered(9, 3, 1), "never asked"


def test_clocks_that_know_the_way_agree() -> None:
    """2 hears a number of 1 that was given 20 ms ago: its own next one is where 1's clock is now."""
    one, two = RateSynchronised({}), RateSynchronised({1: 20_000})
    number = one.tick(5_000_000_000)
    two.hear(20_000_000, number, 1)
    assert two.tick(20_000_000) == one.tick(5_020_000_000)
    assert two.tick(20_000_000) > number
