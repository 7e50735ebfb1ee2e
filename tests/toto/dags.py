"""Causal DAGs for ToTo: all small ones, and random ones; and the walk over everything that can be held of one."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ordercast.protocols.toto.ballots import Key, Vector

Dag = tuple[tuple[Key, Vector], ...]  # messages in a causal order, with their vectors


def all_dags(n: int, size: int) -> list[Dag]:
    """Every DAG of `size` messages of at most n machines, which are named in the order in which they first speak."""
    found: dict[frozenset[tuple[Key, Vector]], Dag] = {frozenset(): ()}
    for _ in range(size):
        grown: dict[frozenset[tuple[Key, Vector]], Dag] = {}
        for dag in found.values():
            for sender in range(min(n, 1 + len({key[0] for key, _ in dag}))):
                for vec in _pasts(n, dag, sender):
                    larger = (*dag, ((sender, vec[sender]), vec))
                    grown.setdefault(frozenset(larger), larger)
        found = grown
    return list(found.values())


def _pasts(n: int, dag: Dag, sender: int) -> Iterator[Vector]:
    """What a further message of this sender may follow: any closed set that holds all it sent before."""
    sent = sum(key[0] == sender for key, _ in dag)
    for held in closed_sets(n, dag):
        if held[sender] == sent:
            yield tuple(seq + (rank == sender) for rank, seq in enumerate(held))


def closed_sets(n: int, dag: Dag) -> Iterator[Vector]:
    """Everything that can be held of it, smaller ones first."""
    layer: dict[Vector, None] = {(0,) * n: None}
    while layer:
        yield from layer
        layer = {larger: None for held in layer for _, larger in steps(dag, held)}


def steps(dag: Dag, held: Vector) -> Iterator[tuple[tuple[Key, Vector], Vector]]:
    """The messages that may come next, and what is held then."""
    for message in dag:
        (sender, seq), vec = message
        if seq == held[sender] + 1 and all(k <= held[q] for q, k in enumerate(vec) if q != sender):
            yield message, tuple(k + (q == sender) for q, k in enumerate(held))


def random_dag(draw: random.Random, n: int, size: int) -> Dag:
    """Machines that know more or less of what the others sent."""
    known = [[0] * n for _ in range(n)]
    sent: dict[Key, Vector] = {}
    dag = []
    for _ in range(size):
        sender = draw.randrange(n)
        for _ in range(draw.choice((0, 0, 1, 1, 2, n))):
            line = [key for key in sent if key[1] > known[sender][key[0]]]
            if line:
                known[sender] = [*map(max, known[sender], sent[draw.choice(line)])]
        known[sender][sender] += 1
        key, vec = (sender, known[sender][sender]), tuple(known[sender])
        sent[key] = vec
        dag.append((key, vec))
    return tuple(dag)


def random_order(draw: random.Random, dag: Dag, n: int) -> list[tuple[Key, Vector]]:
    """One of the orders in which its messages may be inserted."""
    held: Vector = (0,) * n
    out = []
    while len(out) < len(dag):
        message, held = draw.choice(list(steps(dag, held)))
        out.append(message)
    return out
