"""Sources of load: when one member submits how many messages of which size.

Each source is an iterator of (time in ns, messages, bytes of each), in order of time, drawn from an injected generator.
Sources that answer to deliveries (saturating, one at a time) give only the amounts, all with their starting time; the
application that plays them waits by its own window or turn.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from math import inf

SECOND = 1_000_000_000
QUASI_SD = 0.02  # of the period
Submissions = Iterator[tuple[int, int, int]]
Steps = Sequence[tuple[int, float]]  # (from when in ns, submissions or bursts a second), by time, the first from 0
PACED = ("poisson", "periodic", "quasi", "bursts")  # regimes that go by a rate
REGIMES = (*PACED, "saturate", "one_by_one", "idle")
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


def paced(times: Iterator[int], steps: Steps, start: int) -> Iterator[int]:
    """Times drawn for one a second, each moved to where the rates of `steps` come to as many; the law stays what it is.
    Ends where the rate stays 0."""
    done, at, number = 0.0, float(start), bisect_right(steps, start, key=lambda step: step[0]) - 1
    for time in times:
        due = time / SECOND  # as a number of submissions
        while True:
            rate = steps[number][1]
            until = steps[number + 1][0] if number + 1 < len(steps) else inf
            wait = (due - done) / rate * SECOND if rate else inf
            if at + wait <= until and wait < inf:
                done, at = due, at + wait
                break
            if until == inf:
                return
            done, at, number = done + rate * (until - at) / SECOND, float(until), number + 1
        yield int(at)


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
    steps: Steps = (),
) -> Submissions:
    """The submissions of one member, `messages` in all, at one rate, or at those of `steps`."""
    if steps:
        times = paced(_times(regime, generator, 1.0, burst, 0), steps, start)
    else:
        times = _times(regime, generator, rate, burst, start)
    left = 0 if regime == "idle" else messages
    one = sizes[0] if len(sizes) == 1 else None
    while left > 0:
        count = min(batch, left)
        left -= count
        at = next(times, None)
        if at is None:
            return
        yield at, count, one if one is not None else generator.choice(sizes)


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


def portions(messages: int, sources: Mapping[int, Submissions]) -> dict[int, int]:
    """How many of the messages each talker submits, if all go on until so many are submitted."""
    parts, left = dict.fromkeys(sources, 0), messages
    for _, member, count in merge(*(_named(member, line) for member, line in sources.items())):
        parts[member] += min(count, left)
        left -= count
        if left <= 0:
            break
    return parts


def _named(member: int, line: Submissions) -> Iterator[tuple[int, int, int]]:
    for at, count, _ in line:
        yield at, member, count
