"""What ToTo delivers depends on what is held alone: every DAG of a size, everything held of it, every way there.

`python -m tests.toto.every_way` walks the sizes that are too long for the tests (make every-way).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import Any

from tests.toto.dags import Dag, all_dags, steps
from tests.toto.definition import Definition

from ordercast.protocols.toto.ballots import Ballots, Key, Vector

Sets = list[list[Key]]


def quorums(n: int) -> range:
    """All legal ones, and all-ack's."""
    return range(n // 2 + 1, n + 2)


def drained(ballots: Ballots | Definition) -> Sets:
    out = []
    while keys := ballots.activate():
        out.append(keys)
    return out


def clone(ballots: Ballots) -> Ballots:
    twin = object.__new__(type(ballots))
    twin.__dict__.update(ballots.__dict__)
    twin.log = [line[:] for line in ballots.log]
    twin.queue = [line.copy() for line in ballots.queue]
    twin.first = [line[:] for line in ballots.first]
    twin.base, twin.last, twin.head = ballots.base[:], ballots.last[:], ballots.head[:]
    twin.candidates, twin.votes, twin.tail = ballots.candidates[:], ballots.votes[:], ballots.tail[:]
    return twin


def state(ballots: Ballots) -> Any:
    """All that decides what comes next."""
    cast = {c: (ballots.votes[c], ballots.tail[c], ballots.first[c]) for c in ballots.candidates}
    return cast, ballots.voted, ballots.head


@lru_cache(maxsize=1)
def known_steps(dag: Dag) -> dict[Vector, list[tuple[tuple[Key, Vector], Vector]]]:
    """By what is held, as they were found; the same for every quorum and every choice of agreed messages."""
    return {}


class Differs(AssertionError):
    """Two ways to the same set of messages led to different deliveries."""


def walk(
    n: int,
    dag: Dag,
    agreed: frozenset[Key],
    quorum: int,
    strict: bool,
    crashing: tuple[int, ...] = (),
    form: type[Ballots] = Ballots,
) -> Sets:
    """Through everything that can be held, on every way there: the same was delivered, and the same comes next.

    A crash comes at every legal point: when all that its machine sent is held."""
    sent = [sum(key[0] == rank for key, _ in dag) for rank in range(n)]
    nothing: Any = ((0,) * n, ())
    seen: dict[Any, tuple[Sets, Ballots]] = {nothing: ([], form(n, quorum, strict))}
    todo = [nothing]
    known = known_steps(dag)
    for held, gone in todo:
        sets, ballots = seen[held, gone]
        if held not in known:
            known[held] = list(steps(dag, held))
        ways: list[tuple[Any, Any]] = [(message, (larger, gone)) for message, larger in known[held]]
        ways += [(q, (held, tuple(sorted((*gone, q))))) for q in crashing if q not in gone and held[q] == sent[q]]
        for event, reached in ways:
            twin = clone(ballots)
            if isinstance(event, int):
                twin.crash(event)
            else:
                key, vec = event
                twin.insert(*key, vec, key in agreed)
            got = sets + drained(twin)
            if reached not in seen:
                seen[reached] = got, twin
                todo.append(reached)
            elif (seen[reached][0], state(seen[reached][1])) != (got, state(twin)):
                raise Differs(f"{dag}, agreed {sorted(agreed)}, quorum {quorum}, strict {strict}, at {reached}")
    return seen[todo[-1]][0]


def everything(dag: Dag) -> frozenset[Key]:
    return frozenset(key for key, _ in dag)


def masks(dag: Dag) -> Iterator[frozenset[Key]]:
    """Every choice of what is agreed, but none at all."""
    keys = [key for key, _ in dag]
    for chosen in product((True, False), repeat=len(keys)):
        if any(chosen):
            yield frozenset(key for key, take in zip(keys, chosen, strict=True) if take)


def larger() -> None:
    """The sizes of the specification that are too long for the tests."""
    for n, size, crashes, mixed in (
        *((3, 6, 0, False), (4, 5, 0, False), (5, 5, 0, False), (4, 4, 0, True)),
        *((4, 5, 1, False), (4, 4, 2, False)),
    ):
        cases = [
            (dag, agreed, crashing)
            for dag in all_dags(n, size)
            for agreed in (masks(dag) if mixed else (everything(dag),))
            for crashing in combinations(range(n), crashes)
        ]
        for dag, agreed, crashing in cases:
            for quorum, strict in product(quorums(n), (True, False)):
                walk(n, dag, agreed, quorum, strict, crashing)
        what = f"n={n} N={size}" + (", every choice of agreed messages" if mixed else "")
        print(f"{what}, {crashes} crashes: {len(cases)} cases, nothing differs", flush=True)


if __name__ == "__main__":
    larger()
