"""Is there a cycle in "delivered just before"?  Chains are drawn together first, so that little is left to walk."""

from __future__ import annotations

from collections import deque

import numpy as np

from ordercast.verify.columns.model import Array

Edge = tuple[int, int, int]  # in which log, from which place to which


def cycle(logs: list[Array], units: int) -> list[Edge]:
    """A shortest cycle of chains, as edges of the logs in order; empty if there is none."""
    sources, targets, which, places = _edges(logs, units)
    if not len(sources):
        return []
    out, into = np.bincount(sources, minlength=units), np.bincount(targets, minlength=units)
    chain = (out[sources] == 1) & (into[targets] == 1) & (sources != targets)
    head, loose = _heads(sources[chain], targets[chain], units)
    if len(loose):  # a cycle that is nothing but a chain
        return _walk(int(loose[0]), sources, targets, which, places)
    a, b = head[sources[~chain]], head[targets[~chain]]
    edges = np.flatnonzero(~chain)
    way = _shortest(a.tolist(), b.tolist(), edges.tolist())
    if not way:
        return []
    follow = {int(sources[k]): k for k in np.flatnonzero(chain).tolist()}
    steps: list[int] = []
    for n, edge in enumerate(way):
        steps.append(edge)
        at, end = int(targets[edge]), int(sources[way[(n + 1) % len(way)]])
        while at != end:  # along the chain to where the next edge leaves it
            steps.append(follow[at])
            at = int(targets[follow[at]])
    return [(int(which[k]), int(places[k]), int(places[k]) + 1) for k in steps]


def _edges(logs: list[Array], units: int) -> tuple[Array, Array, Array, Array]:
    """Distinct pairs of consecutive units, with one log and place each."""
    a = np.concatenate([log[:-1] for log in logs])
    b = np.concatenate([log[1:] for log in logs])
    which = np.repeat(np.arange(len(logs)), [max(0, len(log) - 1) for log in logs])
    place = np.concatenate([np.arange(max(0, len(log) - 1)) for log in logs])
    _, first = np.unique(a * units + b, return_index=True)
    return a[first], b[first], which[first], place[first]


def _heads(a: Array, b: Array, units: int) -> tuple[Array, Array]:
    """The first unit of each unit's chain, by pointer jumping; and units that only go round."""
    head = np.arange(units)
    head[b] = a
    for _ in range(max(1, units).bit_length() + 1):
        further = head[head]
        if np.array_equal(further, head):
            break
        head = further
    is_head = np.ones(units, bool)
    is_head[b] = False
    return head, np.flatnonzero(~is_head[head])


def _walk(start: int, sources: Array, targets: Array, which: Array, places: Array) -> list[Edge]:
    follow = {int(a): k for k, a in enumerate(sources.tolist())}
    out, at = [], start
    while True:
        k = follow[at]
        out.append((int(which[k]), int(places[k]), int(places[k]) + 1))
        at = int(targets[k])
        if at == start:
            return out


def _shortest(a: list[int], b: list[int], names: list[int]) -> list[int]:
    """The names of the edges of a shortest cycle."""
    after: dict[int, list[tuple[int, int]]] = {}
    degree: dict[int, int] = {}
    for x, y, name in zip(a, b, names, strict=True):
        after.setdefault(x, []).append((y, name))
        degree[y] = degree.get(y, 0) + 1
    free = deque(x for x in after if not degree.get(x))
    while free:
        for y, _ in after.pop(free.popleft(), ()):
            degree[y] -= 1
            if not degree[y]:
                free.append(y)
    left = {x for x in after if degree.get(x)}
    best: list[int] = []
    for tried, start in enumerate(sorted(left)):
        if best and tried > 64:  # short enough
            break
        came: dict[int, tuple[int, int]] = {}
        edge = deque([start])
        while edge and start not in came:
            x = edge.popleft()
            for y, name in after.get(x, ()):
                if y in left and y not in came:
                    came[y] = (x, name)
                    edge.append(y)
        if start in came:
            way: list[int] = []
            at = start
            while not way or at != start:
                at, name = came[at]
                way.append(name)
            if not best or len(way) < len(best):
                best = way[::-1]
    return best
