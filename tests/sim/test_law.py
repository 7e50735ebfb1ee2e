"""Delay laws keep their mean and variance."""

import random
from statistics import fmean, pvariance

import pytest

from ordercast.sim.law import Delay

DRAWS = 100_000
LAWS = [
    Delay("constant", mean_us=50),
    Delay("uniform", low_us=50, high_us=600),
    Delay("exponential", low_us=20, mean_us=120),
    Delay("normal", mean_us=500, sd_us=50),
    Delay("chi_square", low_us=100, degrees=4, scale_us=30),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.law)
def test_mean_and_variance_within_two_percent(law):
    draw = law.sampler(random.Random(1))
    drawn = [draw() for _ in range(DRAWS)]
    assert all(type(value) is int and value >= 0 for value in drawn)
    assert fmean(drawn) == pytest.approx(law.mean, rel=0.02)
    assert pvariance(drawn) == pytest.approx(law.variance, rel=0.02)
    assert sum(value > law.bound for value in drawn) <= DRAWS // 1000


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.law)
def test_same_seed_same_draws(law):
    one, two = law.sampler(random.Random(9)), law.sampler(random.Random(9))
    assert [one() for _ in range(100)] == [two() for _ in range(100)]


@pytest.mark.parametrize(
    ("law", "text"),
    [
        (Delay("uniform", low_us=2, high_us=1), "high_us"),
        (Delay("exponential", low_us=2, mean_us=1), "mean_us"),
        (Delay("chi_square", degrees=0, scale_us=1), "degrees"),
    ],
)
def test_senseless_parameters_are_named(law, text):
    assert any(text in fault for fault in law.faults())
