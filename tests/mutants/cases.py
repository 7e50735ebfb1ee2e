"""Variants of ToTo's ballots held against the paper's definitions, for what no run on this layer comes to, or hardly.

There a crash is told at the install alone, when all who go on hold the same and every missing ballot becomes empty; the
paper tells it at any time.  x' is a message that is only causal; `<` names what it follows.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.mutants import graphs
from tests.mutants.registry import Maker
from tests.toto.definition import Definition
from tests.toto.every_way import drained

from ordercast import registry
from ordercast.conformance.golden_toto import Dag, dag_of, key_of, name_of
from ordercast.contract import Setup
from ordercast.protocols.toto.ballots import Ballots
from ordercast.protocols.toto.core import Toto
from ordercast.types import Identity

PROTOCOL = "toto"
CLOSE = "close"  # the end of the view


class Case(NamedTuple):
    """What two machines hold, in the order in which it came to each."""

    n: int
    quorum: int
    messages: str
    one: str
    other: str


TWO = "a1 b1"
CASES = {
    "e1_empty_vote": Case(3, 2, "a1' a2<a1 b1 c1'", "b1 a1 c1", "a1 a2 b1 c1"),
    "e1_figure_3": Case(5, 3, "c1 d1 b1<c1,d1 a1<d1 d2'<c1,d1 e1' e2<d1,e1", "c1 d1 b1 a1 d2 e1", "d1 a1 e1 e2"),
    "e2_stars_are_equal": Case(5, 3, "c1 d1 b1<c1,d1 a1<d1 d2'<c1,d1 e1<d1", "c1 d1 b1 a1 d2", "d1 a1 e1"),
    "e4_blank_ballots": Case(3, 2, "a1 b1<a1 c1 a2<a1,c1 a3<b1,a2", "a1 b1 c1 a2", "a1 c1 a2 b1 a3"),
    "e5_no_internal_stability": Case(5, 3, "e1 c1 b1<e1 d1<c1,b1 a1", "e1 c1 b1 d1", "e1 c1 b1 a1 d1"),
    "e6_no_nvt": Case(3, 3, TWO, "a1 b1", "b1 a1"),
    "e6_no_external_stability": Case(3, 2, TWO, "a1 b1", "b1 a1"),
    "e8_gone_vote_empty": Case(3, 2, "a1 a2 b1 c1<a1", "b1 a1 c1 a2 crash:a", "a1 a2 crash:a b1 c1"),
    "e8_n_shrinks": Case(3, 2, "a1 b1 c1<b1", "a1 b1 crash:b c1", "a1 b1 c1 crash:b"),
    "e10_no_closing": Case(3, 2, "a1", "a1 crash:c close", "a1 crash:c close"),
    "forgets_too_much": Case(3, 2, "a1 a2 a3 b1'<a3 a4<b1", "a1 a2 a3 b1 a4", "a1 a2 a3 b1"),
}


def messages(text: str, n: int) -> Dag:
    rows = []
    for word in text.split():
        name, _, acks = word.partition("<")
        rows.append((name.rstrip("'"), acks.split(",") if acks else [], "causal" if name.endswith("'") else "agreed"))
    return dag_of(n, rows)


def said(case: Case, order: str, form: type[Ballots] | type[Definition]) -> list[str]:
    """What is delivered after these arrivals."""
    ballots, dag = form(case.n, case.quorum, True), messages(case.messages, case.n)
    out: list[str] = []
    for event in order.split():
        if event == CLOSE and isinstance(ballots, Ballots):
            ballots.close()
        elif event == CLOSE:
            for rank in range(case.n):
                ballots.crash(rank)
        elif event.startswith("crash:"):
            ballots.crash(key_of(event[6:] + "0")[0])
        else:
            key, vec, agreed = dag[event]
            ballots.insert(*key, vec, agreed)
        out += [name_of(key) for keys in drained(ballots) for key in keys]
    return out


def broken(title: str, maker: Maker) -> tuple[str, str]:
    """(promise, what broke it) of one case with this variant; empty if it delivers what the definitions say."""
    if title in graphs.CASES:
        return graphs.broken(title, maker)
    case, form = CASES[title], _form(maker)
    for order in (case.one, case.other):
        got, right = said(case, order, form), said(case, order, Definition)
        if got != right:
            promise = "L3" if got == right[: len(got)] else "S17"
            return promise, f"{order}: delivered {' '.join(got)}, expected {' '.join(right)}"
    return "", ""


def _form(maker: Maker) -> type[Ballots]:
    """The ballots in a variant's stack."""
    setup = Setup(Identity(1, 1, (1, 2)), 40_000_000, registry.get(PROTOCOL).options(), 1_000, random.Random(1))
    core = next(node.layer for node in maker(setup).nodes if isinstance(node.layer, Toto))
    return type(core.ballots)
