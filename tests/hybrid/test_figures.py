"""Figure 1 of the hybrid paper, in a small group and short: the lines 2 D and D + t."""

from __future__ import annotations

import pytest
from tests.hybrid.figures import RATE, latency_ms

N = 9


@pytest.mark.parametrize("way", [20.0, 100.0])
def test_token_at_once_takes_two_ways(way: float) -> None:
    """Frames of the site itself take one."""
    expected = 2 * way * (1 - 1 / (2 * N))
    assert latency_ms("token at once", way, N, 90) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("way", [20.0, 100.0])
def test_the_symmetric_order_takes_one_way_and_the_time_until_all_have_spoken(way: float) -> None:
    """Of few members in random phase the last one speaks after t N / (N + 1) on average."""
    expected = way + 1000 / RATE * N / (N + 1)
    assert latency_ms("symmetric, rate-synchronised", way, N, 180) == pytest.approx(expected, rel=0.08)
