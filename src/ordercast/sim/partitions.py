"""Shapes of partitions as ordered pairs that do not hear each other."""

from __future__ import annotations

import random
from itertools import combinations

from ordercast.sim.faults import Partition

Pairs = list[tuple[int, int]]


def cut_pairs(fault: Partition, ids: tuple[int, ...], generator: random.Random) -> Pairs:
    """The (from, to) pairs that a partition cuts; what the fault does not name is drawn."""
    if fault.shape == "ring":
        return _ring(ids, one_way=bool(fault.one_way))
    groups = _groups(fault, ids, generator)
    if fault.shape == "pair":
        (a, *_), (b, *_) = groups[:2]
        return [(b, a)] if fault.one_way == "in" else [(a, b)]
    pairs: Pairs = []
    for early, late in combinations(groups, 2):
        for a in early:
            for b in late:
                if fault.one_way != "in":
                    pairs.append((a, b))
                if fault.one_way != "out":
                    pairs.append((b, a))
    return pairs


def _groups(fault: Partition, ids: tuple[int, ...], generator: random.Random) -> list[list[int]]:
    if fault.groups:
        return [list(group) for group in fault.groups]
    mixed = generator.sample(ids, len(ids))
    if fault.shape == "isolate":
        alone = fault.member or mixed[0]
        return [[alone], [m for m in ids if m != alone]]
    if fault.shape == "pair":
        return [mixed[:1], mixed[1:2] or mixed[:1]]
    if fault.shape == "split":
        sides = generator.randint(2, max(2, len(ids) // 2))
        side = {m: generator.randrange(sides) for m in ids}
        return [[m for m in ids if side[m] == k] for k in range(sides)]
    if fault.shape == "bridge":
        bridge = fault.member or mixed[-1]
        mixed = [m for m in mixed if m != bridge]
    half = len(mixed) // 2
    return [sorted(mixed[:half]), sorted(mixed[half:])]


def _ring(ids: tuple[int, ...], one_way: bool) -> Pairs:
    """Each hears those at most ceil((n//2)/2) away on a circle; one way: only the n//2 that follow it."""
    n = len(ids)
    reach = -(-(n // 2) // 2)
    pairs: Pairs = []
    for i, hearer in enumerate(ids):
        for j, speaker in enumerate(ids):
            ahead = (j - i) % n
            heard = 0 < ahead <= n // 2 if one_way else min(ahead, n - ahead) <= reach
            if i != j and not heard:
                pairs.append((speaker, hearer))
    return pairs
