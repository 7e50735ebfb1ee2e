"""Linearisation against the paper's two rules, and the paper's observations, on all small graphs and on random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, product

import pytest

from ordercast.protocols.dpg.graph import MARKED, Graph, Inconsistent

Pairs = dict[tuple[int, int], int]  # arc -> 0 plain, 1 marked


def small_graphs(least: int = 2, most: int = 5) -> Iterator[tuple[int, Pairs]]:
    """Every graph of that many vertices that agrees with the order 0, 1, ..: only neighbours may be marked."""
    for n in range(least, most + 1):
        pairs = list(combinations(range(n), 2))
        for kinds in product(*[(None, 0, 1) if y == x + 1 else (None, 0) for x, y in pairs]):
            yield n, {pair: kind for pair, kind in zip(pairs, kinds, strict=True) if kind is not None}


def graph_of(n: int, arcs: Pairs) -> Graph:
    return Graph(range(n), [(x, y, MARKED if mark else None) for (x, y), mark in arcs.items()])


def pairs_of(graph: Graph) -> Pairs:
    return {(x, y): 0 if mark is None else 1 for x, y, mark in graph.arcs()}


def lin(n: int, arcs: Pairs) -> Pairs:
    graph = graph_of(n, arcs)
    graph.linearise()
    return pairs_of(graph)


def reach(n: int, arcs: Pairs) -> list[set[int]]:
    """Who is after each; vertices are numbered in an order that agrees with the arcs."""
    after: list[set[int]] = [set() for _ in range(n)]
    for x in reversed(range(n)):
        for y in range(n):
            if (x, y) in arcs:
                after[x] |= {y} | after[y]
    return after


def rules(n: int, arcs: Pairs, draw: random.Random) -> Pairs:
    """The paper's rules 1 and 2, one at a time in any order, until nothing changes."""
    arcs = dict(arcs)
    while (step := _step(n, arcs, draw)) is not None:
        old, new = step
        assert arcs.pop(old) == 0, "no rule consumes a mark"
        if new is not None:
            arcs.setdefault(new, 0)
    return arcs


def _step(n: int, arcs: Pairs, draw: random.Random) -> tuple[tuple[int, int], tuple[int, int] | None] | None:
    plain = [pair for pair, mark in arcs.items() if not mark]
    draw.shuffle(plain)
    after = reach(n, arcs)
    for x, y in plain:
        moved = [(z, y) for z in range(n) if z != y and arcs.get((x, z)) == 1]
        moved += [(x, z) for z in range(n) if z != x and arcs.get((z, y)) == 1]
        longer = any((x, z) in arcs and y in after[z] for z in range(n) if z != y)
        if moved or longer:
            return (x, y), draw.choice([*moved, *([None] if longer else [])])
    return None


def test_equal_to_the_two_rules_in_any_order_and_consistent_on_all_small_graphs() -> None:
    """The closed form is the fixpoint; Observation 1: it never leaves the network's order; P21, P22."""
    draw, count = random.Random(1), 0
    for n, arcs in small_graphs():
        found = lin(n, arcs)
        assert found == rules(n, arcs, draw), arcs
        assert all(x < y for x, y in found) and all(y == x + 1 for (x, y), mark in found.items() if mark)
        before, after = reach(n, arcs), reach(n, found)
        assert all(before[x] <= after[x] for x in range(n))
        assert lin(n, found) == found
        count += 1
    assert count == 5_421


def merged(*parts: Pairs) -> Pairs:
    out: Pairs = {}
    for part in parts:
        for pair, mark in part.items():
            out[pair] = out.get(pair, 0) | mark
    return out


def test_observation_3_reports_commute() -> None:
    """P23: whichever report comes first, and all at once, give the same graph."""
    draw = random.Random(2)
    for _ in range(3_000):
        n = draw.randint(3, 9)
        parts = []
        for _ in range(3):
            known = [pair for pair in combinations(range(n), 2) if draw.random() < 0.3]
            parts.append({(x, y): int(y == x + 1 and draw.random() < 0.5) for x, y in known})
        one, two, three = parts
        both = lin(n, merged(lin(n, merged(one, two)), three))
        assert both == lin(n, merged(lin(n, merged(one, three)), two)) == lin(n, merged(one, two, three))


def printed_formula(n: int, arcs: Pairs) -> set[tuple[int, int]]:
    after = reach(n, arcs)
    chains = {x: [x] for x in range(n)}  # x and all that marks lead to
    for x in reversed(range(n)):
        for y in range(n):
            if arcs.get((x, y)) == 1:
                chains[x] = [x, *chains[y]]
    found = set()
    for x, y in product(range(n), repeat=2):
        if not any(z in after[x] and y in after[z] for z in range(n)):
            ways_to_x = [k for k in range(n) if x in chains[k]]
            if any((a, b) in arcs for a in ways_to_x for b in chains[y]):
                found.add((x, y))
    return found


def test_the_formula_printed_with_observation_3_is_wrong() -> None:
    """E4: a marked arc yields its own reversal."""
    assert (1, 0) in printed_formula(2, {(0, 1): 1})
    wrong = sum(printed_formula(n, arcs) != set(lin(n, arcs)) for n, arcs in small_graphs(5, 5))
    assert wrong == 4_160


def test_observation_2_holds_for_the_order_and_not_for_arcs() -> None:
    """E5: the smallest counterexample; the order relation is kept on all small graphs and any reception."""
    graph = graph_of(4, {(1, 2): 0, (1, 3): 0})
    graph.receive(4, 3, MARKED)
    assert pairs_of(graph) == {(0, 3): 0, (1, 2): 0, (2, 3): 0, (3, 4): 1}
    for n, arcs in small_graphs(2, 4):
        for last in range(n):
            graph = graph_of(n, lin(n, arcs))
            graph.receive(n, last, MARKED if last == n - 1 else None)
            old, new = reach(n, arcs), reach(n + 1, pairs_of(graph))
            assert all(old[x] <= new[x] for x in range(n)) and all(n in new[x] for x in range(n))


@pytest.mark.parametrize(
    "arcs",
    [{(0, 1): 1, (0, 2): 1}, {(1, 0): 1, (2, 0): 1}, {(0, 1): 1, (1, 2): 1, (2, 0): 1}, {(0, 1): 0, (1, 0): 0},
     {(0, 1): 1, (1, 0): 0}, {(0, 1): 1, (2, 3): 1, (0, 3): 0, (2, 1): 0}],
)  # fmt: skip
def test_contradictions_raise_and_a_running_site_settles_them(arcs: Pairs) -> None:
    graph = graph_of(4, arcs)
    with pytest.raises(Inconsistent):
        graph.linearise()
    assert pairs_of(graph) == arcs, "what cannot be linearised is left alone"
    graph.settle()
    assert graph.conflicts
    again = pairs_of(graph)
    graph.linearise()
    assert pairs_of(graph) == again


def test_any_nonsense_is_settled() -> None:
    draw = random.Random(3)
    for _ in range(2_000):
        n = draw.randint(2, 8)
        pairs = [(x, y) for x in range(n) for y in range(n) if x != y and draw.random() < 0.3]
        graph = graph_of(n, {pair: draw.randint(0, 1) for pair in pairs})
        for x, y in pairs:
            if draw.random() < 0.3:
                graph.out[x][y] = frozenset(draw.sample(range(n), draw.randint(1, n)))
        graph.settle()
        graph.linearise()


def test_excuses_are_discharged_and_split() -> None:
    excused = frozenset({9})
    for more, expected in [
        ([], [(1, 2, excused)]),
        ([(9, 1, None)], [(1, 2, MARKED), (9, 1, None)]),
        ([(2, 9, None)], [(1, 2, MARKED), (2, 9, None)]),
        ([(1, 9, None), (9, 2, None)], [(1, 9, MARKED), (9, 2, MARKED)]),
    ]:
        graph = Graph((1, 2, 9), [(1, 2, excused), *more])
        graph.linearise()
        assert sorted(graph.arcs(), key=str) == sorted(expected, key=str)
    graph = Graph((1, 2), [(1, 2, frozenset({8, 9}))])
    graph.arc(1, 2, frozenset({7, 8}))
    assert graph.out[1][2] == {8}, "two sites excuse only what both do"


def test_a_false_mark_is_mostly_seen() -> None:
    """One mark x => x+2 in an otherwise true and dense graph: found where what lies between is known to."""
    graph = graph_of(3, {(0, 1): 1, (1, 2): 1, (0, 2): 1})
    with pytest.raises(Inconsistent):
        graph.linearise()


def test_what_is_known_before_is_never_wrong() -> None:
    """The quick answer agrees with a search, through receptions, reports and removals."""
    draw = random.Random(4)
    for _ in range(40):
        graph, last = Graph(), None
        for truth in range(1, 41):
            if draw.random() < 0.6:
                graph.receive(truth, last, MARKED if last == truth - 1 and draw.random() < 0.7 else None)
                last = truth
            elif graph.add(truth):
                for other in list(graph.out):
                    if other < truth and draw.random() < 0.3 and graph.tell(other, truth, None):
                        graph.settle()
            if draw.random() < 0.2 and len(graph) > 3 and min(graph.out) != last:
                graph.remove(min(graph.out))
            for y in graph.out:
                behind = graph.ancestors((y,))
                assert all(x < y and x in behind for x in graph.out if graph._before(x, y))
        assert not graph.conflicts
