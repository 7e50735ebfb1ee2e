"""Delay laws: how long a datagram travels, drawn from the run's seeded generator, in integer nanoseconds."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import log, sqrt
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ordercast.sim.amounts import Us

US = 1_000  # nanoseconds
Sampler = Callable[[], int]


class Delay(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One law with its parameters, in microseconds.

    constant: `mean_us`.  uniform: `low_us` to `high_us`.  exponential: `low_us` plus an exponential part of mean
    `mean_us` - `low_us`.  normal: `mean_us`, `sd_us`, never below `low_us`.  chi_square: `low_us` plus `scale_us` times
    a chi-square variable of `degrees` degrees of freedom.
    """

    law: Literal["constant", "uniform", "exponential", "normal", "chi_square"] = "constant"
    mean_us: Us = 0.0
    low_us: Us = 0.0
    high_us: Us = 0.0
    sd_us: Us = 0.0
    degrees: Annotated[int, Meta(ge=0, le=1000)] = 0
    scale_us: Us = 0.0

    def faults(self) -> list[str]:
        """What is wrong with the parameters, one phrase each."""
        found = []
        if self.law == "uniform" and self.high_us < self.low_us:
            found.append("high_us must not be below low_us")
        if self.law == "exponential" and self.mean_us < self.low_us:
            found.append("mean_us must not be below low_us")
        if self.law == "chi_square" and (self.degrees < 1 or self.scale_us <= 0):
            found.append("chi_square needs degrees of at least 1 and a positive scale_us")
        return found

    @property
    def mean(self) -> float:
        """The mean in nanoseconds (normal: without the cut at `low_us`)."""
        if self.law == "uniform":
            return (self.low_us + self.high_us) / 2 * US
        if self.law == "chi_square":
            return (self.low_us + self.scale_us * self.degrees) * US
        return self.mean_us * US

    @property
    def variance(self) -> float:
        """In square nanoseconds."""
        if self.law == "uniform":
            return (self.high_us - self.low_us) ** 2 / 12 * US**2
        if self.law == "exponential":
            return (self.mean_us - self.low_us) ** 2 * US**2
        if self.law == "normal":
            return self.sd_us**2 * US**2
        if self.law == "chi_square":
            return 2 * self.degrees * self.scale_us**2 * US**2
        return 0.0

    @property
    def bound(self) -> int:
        """A delay that is hardly ever exceeded (1 in 10^4), in nanoseconds: the d of the promises."""
        if self.law == "uniform":
            return round(self.high_us * US)
        if self.law == "exponential":
            return round((self.low_us + (self.mean_us - self.low_us) * log(1e4)) * US)
        return round(self.mean + (6 if self.law == "chi_square" else 4) * sqrt(self.variance))

    @property
    def same_for_all(self) -> bool:
        """Every draw gives the same value."""
        return self.law == "constant"

    def sampler(self, generator: random.Random) -> Sampler:
        draw = generator.random
        low, mean = self.low_us * US, self.mean_us * US
        if self.law == "uniform":
            span = self.high_us * US - low
            return lambda: int(low + span * draw())
        if self.law == "exponential":
            rest = mean - low
            return lambda: int(low - rest * log(1.0 - draw()))
        if self.law == "normal":
            normal, sd = generator.gauss, self.sd_us * US
            return lambda: max(int(normal(mean, sd)), int(low))
        if self.law == "chi_square":
            gamma, half, scale = generator.gammavariate, self.degrees / 2, 2 * self.scale_us * US
            return lambda: int(low + gamma(half, scale))
        fixed = round(mean)
        return lambda: fixed
