"""Patterns of broken links, as sets of ordered pairs (a, b): nothing of a reaches b."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import permutations

Pairs = frozenset[tuple[int, int]]


def _both(pairs: Iterable[tuple[int, int]]) -> Pairs:
    return frozenset(pair for a, b in pairs for pair in ((a, b), (b, a)))


def _unless(n: int, talk: Callable[[int, int], bool]) -> Pairs:
    return frozenset((a, b) for a, b in permutations(range(1, n + 1), 2) if not talk(a, b))


def one_way_next(n: int) -> Pairs:
    return frozenset({(1, 2)})


def one_way_wrap(n: int) -> Pairs:
    return frozenset({(n, 1)})


def one_way_far(n: int) -> Pairs:
    return frozenset({(1, 3)})


def pair(n: int) -> Pairs:
    return _both({(1, n)})


def two_pairs(n: int) -> Pairs:
    return _both({(1, 2), (1, n)})


def bridge(n: int) -> Pairs:
    """Halves 1..h and h+2..n meet only in h+1."""
    h = n // 2
    return _unless(n, lambda a, b: max(a, b) <= h + 1 or min(a, b) >= h + 1)


def weak_bridge(n: int) -> Pairs:
    """Halves 1..h and h+1..n, joined by one link."""
    h = n // 2
    return _unless(n, lambda a, b: max(a, b) <= h or min(a, b) > h or {a, b} == {h, h + 1})


def majorities(n: int) -> Pairs:
    reach = -(-(n // 2) // 2)
    return _unless(n, lambda a, b: min((a - b) % n, (b - a) % n) <= reach)


def one_way_majorities(n: int) -> Pairs:
    """i hears i+1 .. i+n//2 only."""
    return _unless(n, lambda a, b: 1 <= (a - b) % n <= n // 2)


def deaf(n: int) -> Pairs:
    return frozenset((x, 1) for x in range(2, n + 1))


def mute(n: int) -> Pairs:
    return frozenset((1, x) for x in range(2, n + 1))


def half_deaf(n: int) -> Pairs:
    return frozenset((x, 1) for x in range(3, n + 1))


def star(n: int) -> Pairs:
    return _unless(n, lambda a, b: 1 in (a, b))


def path(n: int) -> Pairs:
    return _unless(n, lambda a, b: abs(a - b) == 1)


def random_cuts(n: int, seed: int = 18, share: float = 0.2) -> Pairs:
    rng = random.Random(seed)
    return frozenset(p for p in permutations(range(1, n + 1), 2) if rng.random() < share)


def clique_number(n: int, cut: Pairs) -> int:
    """Size of the largest set in which everybody talks to everybody, by trying all."""
    best = 0
    for mask in range(1, 1 << n):
        size = mask.bit_count()
        if size <= best:
            continue
        ids = [i + 1 for i in range(n) if mask >> i & 1]
        if all((a, b) not in cut and (b, a) not in cut for i, a in enumerate(ids) for b in ids[:i]):
            best = size
    return best
