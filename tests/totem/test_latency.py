"""One-way latency from clocks that were never compared: offsets of seconds and drifts do not show."""

from __future__ import annotations

import random

import pytest

from ordercast.lab.echo import EchoMeter, summary
from ordercast.lab.latency import Differences, Echoes

MEAN_NS = 500_000


class Clock:
    def __init__(self, offset_ns: int, ppm: float) -> None:
        self.offset_ns, self.ppm = offset_ns, ppm

    def at(self, t: int) -> int:
        return self.offset_ns + t + int(t * self.ppm / 1e6)


def exchange(n: int, ppm: float, one_way_ns: int, seconds: float, seed: int) -> tuple[float, float, float]:
    """(true mean, method 1, method 2), all in us, of a made-up group."""
    r = random.Random(seed)
    clocks = {m: Clock(r.randrange(5_000_000_000), r.uniform(-ppm, ppm)) for m in range(n)}
    one, two = Differences(), {m: Echoes(200_000_000) for m in range(n)}
    events: list[tuple[int, int, int, int, int]] = []
    true: list[int] = []
    for sender in range(n):
        t = 0
        while t < seconds * 1e9:
            t += int(r.expovariate(1 / 4e6))
            for receiver in range(n):
                if receiver != sender:
                    latency = int(r.gauss(MEAN_NS, 60_000)) + (one_way_ns if sender < receiver else 0)
                    true.append(latency)
                    events.append((t + latency, sender, receiver, t, 1))
            events.append((t, sender, sender, t, 0))
    echoes: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
    for now, sender, receiver, sent, kind in sorted(events):
        stamp = clocks[sender].at(sent)
        if kind == 0:
            echoes[sender, sent] = dict(two[sender].last)
            continue
        local = clocks[receiver].at(now)
        one.add(sender, receiver, local - stamp)
        two[receiver].received(receiver, sender, stamp, echoes[sender, sent], local)
    found = [total / count for e in two.values() for total, count in e.found.values()]
    first = one.mean()
    assert first is not None
    return sum(true) / len(true) / 1e3, first / 1e3, sum(found) / len(found) / 1e3


@pytest.mark.parametrize(
    "n, ppm, one_way_ns", [(3, 0.0, 0), (3, 50.0, 0), (3, 0.0, 200_000), (9, 0.0, 0)], ids=str
)  # fmt: skip
def test_within_the_papers_error(n: int, ppm: float, one_way_ns: int) -> None:
    true, first, second = exchange(n, ppm, one_way_ns, 1.0, seed=n)
    assert abs(first - true) < 10, "the paper's bar for method 1"
    assert abs(second - true) < 15, "the paper's bar for method 2"


def test_long_runs_with_drift_need_the_second_method() -> None:
    true, _, second = exchange(3, 200.0, 0, 4.0, seed=1)
    assert abs(second - true) < 15


def test_an_echo_held_too_long_is_dropped() -> None:
    echoes = Echoes(1000)
    echoes.received(1, 2, 50_000, {1: (10, 20)}, 60_000)
    assert echoes.mean() is None and echoes.dropped == 1 and echoes.last == {2: (50_000, 60_000)}


def test_unequal_counts_of_the_two_directions_do_no_harm() -> None:
    differences = Differences()
    differences.add(1, 2, 900 * (5000 + 100), 900)  # skew +5000
    differences.add(2, 1, 100 * (-5000 + 100), 100)
    assert differences.mean() == 100


def test_the_meter_of_a_benchmark() -> None:
    one, two = EchoMeter(1), EchoMeter(2)
    for t in range(0, 100_000, 1000):
        two.received(1, t, one.table(t), t + 400)
        one.received(2, t + 500, two.table(t + 500), t + 900)
    ones, twos = one.result({1: [7], 2: [400] * 100}), two.result({1: [400] * 100, 2: [7]})
    assert summary([ones, twos]) == {"mean_us": 0.4, "mean_us_method1": 0.4, "mean_us_method2": 0.4}
