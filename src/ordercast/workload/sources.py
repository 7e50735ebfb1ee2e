"""Sources of load: when one member submits how many messages of which size.

Each source is an iterator of (time in ns, messages, bytes of each), in order of time, drawn from an injected generator.
Sources that answer to deliveries (saturating, one at a time) give only the amounts, all with their starting time; the
application that plays them waits by its own window or turn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

SECOND = 1_000_000_000
QUASI_SD = 0.02  # of the period
Submissions = Iterator[tuple[int, int, int]]
REGIMES = ("poisson", "periodic", "quasi", "bursts", "saturate", "one_by_one", "idle")
ANSWERING = ("saturate", "one_by_one")  # regimes that wait for deliveries


def periodic(generator: random.Random, rate: float, start: int) -> Iterator[int]:
    """Equal periods; the first one begins at a random point, so that members do not move in step."""
    period = SECOND / rate
    at = start + period * generator.random()
    while True:
        yield int(at)
        at += period


def quasi_periodic(generator: random.Random, rate: float, start: int) -> Iterator[int]:
    """Periods of a normal law with a standard deviation of 2 %."""
    period = SECOND / rate
    at = start + period * generator.random()
    while True:
        yield int(at)
        at += max(0.0, generator.gauss(period, QUASI_SD * period))


def poisson(generator: random.Random, rate: float, start: int) -> Iterator[int]:
    at = float(start)
    while True:
        at += generator.expovariate(rate) * SECOND
        yield int(at)


def bursts(generator: random.Random, rate: float, start: int, length: int) -> Iterator[int]:
    """`rate` bursts a second at Poisson times, `length` submissions each, all at one time."""
    for at in poisson(generator, rate, start):
        for _ in range(length):
            yield at


def at_once(start: int) -> Iterator[int]:
    """As soon as the application may."""
    while True:
        yield start


def source(
    regime: str,
    generator: random.Random,
    messages: int,
    sizes: Sequence[int],
    *,
    rate: float = 1000.0,
    batch: int = 1,
    burst: int = 50,
    start: int = 0,
) -> Submissions:
    """The submissions of one member, `messages` in all."""
    times = _times(regime, generator, rate, burst, start)
    left = 0 if regime == "idle" else messages
    one = sizes[0] if len(sizes) == 1 else None
    while left > 0:
        count = min(batch, left)
        left -= count
        yield next(times), count, one if one is not None else generator.choice(sizes)


def _times(regime: str, generator: random.Random, rate: float, burst: int, start: int) -> Iterator[int]:
    if regime == "periodic":
        return periodic(generator, rate, start)
    if regime == "quasi":
        return quasi_periodic(generator, rate, start)
    if regime == "poisson":
        return poisson(generator, rate, start)
    if regime == "bursts":
        return bursts(generator, rate, start, burst)
    assert regime in (*ANSWERING, "idle"), regime
    return at_once(start)


def shares(messages: int, talkers: Sequence[int]) -> dict[int, int]:
    """How many of the messages each talker submits: equal, the first ones one more."""
    each, more = divmod(messages, len(talkers))
    return {member: each + (rank < more) for rank, member in enumerate(talkers)}
