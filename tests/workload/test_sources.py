"""Sources of load: counts, sizes, and times by their law."""

import random
from itertools import pairwise
from statistics import fmean, stdev

import pytest

from ordercast.workload.sources import REGIMES, SECOND, shares, source


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
