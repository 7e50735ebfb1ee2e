"""Sources of load: counts, sizes, and times by their law."""

import random
from itertools import pairwise
from statistics import fmean, stdev

import pytest

from ordercast.workload.sources import PACED, REGIMES, SECOND, portions, shares, source


@pytest.mark.parametrize("regime", REGIMES)
def test_all_messages_in_order_of_time(regime):
    submissions = list(source(regime, random.Random(1), 101, (1, 2, 3), batch=10, start=5))
    assert sum(count for _, count, _ in submissions) == (0 if regime == "idle" else 101)
    times = [at for at, _, _ in submissions]
    assert times == sorted(times)
    assert all(at >= 5 for at in times)
    assert all(size in (1, 2, 3) for _, _, size in submissions)


def gaps(regime, **more):
    times = [at for at, _, _ in source(regime, random.Random(2), 20_001, (64,), rate=500.0, **more)]
    return [b - a for a, b in pairwise(times)]


def test_periods():
    assert {*gaps("periodic")} <= {SECOND // 500}
    quasi = gaps("quasi")
    assert fmean(quasi) == pytest.approx(SECOND / 500, rel=0.02)
    assert stdev(quasi) == pytest.approx(0.02 * SECOND / 500, rel=0.02)


def test_poisson_has_equal_mean_and_deviation():
    poisson = gaps("poisson")
    assert fmean(poisson) == pytest.approx(SECOND / 500, rel=0.02)
    assert stdev(poisson) == pytest.approx(SECOND / 500, rel=0.02)


def test_bursts_come_at_once():
    burst = gaps("bursts", burst=50)
    assert sum(gap > 0 for gap in burst) == 20_000 // 50


def test_shares_add_up():
    assert shares(7, (2, 5, 9)) == {2: 3, 5: 2, 9: 2}


STEPS = ((0, 10.0), (1 * SECOND, 0.0), (2 * SECOND, 1000.0))


@pytest.mark.parametrize("regime", PACED)
def test_rates_that_change(regime):
    times = [at for at, _, _ in source(regime, random.Random(3), 40_000, (64,), burst=4, steps=STEPS)]
    a_time = 4 if regime == "bursts" else 1
    slow, none = (sum(k * SECOND <= at < (k + 1) * SECOND for at in times) for k in (0, 1))
    assert 4 * a_time <= slow <= 18 * a_time and none == 0
    assert len(times) == 40_000
    fast = [at for at in times if at >= 2 * SECOND]
    assert len(fast) / (fast[-1] - fast[0]) * SECOND == pytest.approx(1000 * a_time, rel=0.03)


def test_the_law_stays_what_it_is():
    """At one rate, given as a step, the times are those of that rate but for rounding."""
    for regime in PACED:
        plain, stepped = (
            [at for at, _, _ in source(regime, random.Random(4), 500, (64,), rate=250.0, start=7, **more)]
            for more in ({}, {"steps": ((0, 250.0),)})
        )
        assert max(abs(a - b) for a, b in zip(plain, stepped, strict=True)) <= 10


def test_a_change_takes_effect_where_it_stands():
    """Half of a period at one rate, half at another."""
    times = [at for at, _, _ in source("periodic", random.Random(0), 3, (64,), steps=((0, 1.0), (SECOND, 10.0)))]
    first = random.Random(0).random()
    assert times[0] == pytest.approx(first * SECOND, abs=1)
    assert times[1] == pytest.approx(SECOND * (1 + first / 10), abs=1)
    assert times[2] == pytest.approx(times[1] + SECOND / 10, abs=1)


def test_who_stays_silent_ends():
    assert list(source("poisson", random.Random(1), 5, (64,), steps=((0, 0.0),))) == []
    few = list(source("poisson", random.Random(1), 1000, (64,), steps=((0, 100.0), (SECOND, 0.0))))
    assert 70 <= len(few) <= 130


def lines(messages, **steps):
    return {
        int(name[1:]): source("periodic", random.Random(name), messages, (64,), steps=line)
        for name, line in steps.items()
    }


def test_portions_follow_the_rates_until_all_is_submitted():
    fast, slow, later = ((0, 90.0),), ((0, 10.0),), ((0, 10.0), (SECOND, 1000.0))
    assert portions(1000, lines(1000, m1=fast, m2=slow)) == pytest.approx({1: 900, 2: 100}, abs=1)
    # the first second brings 100; of the 900 left, at 1090 a second, 74 and 826
    assert portions(1000, lines(1000, m1=fast, m2=later)) == pytest.approx({1: 164, 2: 836}, abs=1)
    assert portions(1000, lines(1000, m1=fast, m2=((0, 0.0),))) == {1: 1000, 2: 0}
    assert sum(portions(777, lines(777, m1=fast, m2=later, m3=slow)).values()) == 777
    assert portions(5, {1: source("bursts", random.Random(1), 5, (64,), batch=3, burst=2)}) == {1: 5}


def test_portions_of_rates_that_end_are_all_that_comes():
    ends = ((0, 20.0), (SECOND, 0.0))
    assert portions(1000, lines(1000, m1=ends, m2=ends)) == {1: 20, 2: 20}
