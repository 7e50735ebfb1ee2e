"""The judge of histories is judged: by histories whose verdict is known, and by a dumb twin."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest

from .linear import Model, Op, counter, linearizable, queue, register


@pytest.mark.parametrize(
    ("ops", "verdict"),
    [
        ([Op(0, 1, "set", (1,), None), Op(2, 3, "get", (), 1)], True),
        ([Op(0, 1, "set", (1,), None), Op(2, 3, "get", (), None)], False),
        ([Op(0, 5, "set", (1,), None), Op(2, 3, "get", (), None), Op(4, 6, "get", (), 1)], True),
        ([Op(0, 5, "set", (1,), None), Op(1, 2, "get", (), 1), Op(3, 4, "get", (), None)], False),
        ([Op(0, None, "set", (1,), None), Op(2, 3, "get", (), None), Op(4, 6, "get", (), 1)], True),
        ([Op(0, None, "set", (1,), None), Op(2, 3, "get", (), 1), Op(4, 6, "get", (), None)], False),
        ([Op(0, 4, "compare_and_set", (None, 1), True), Op(1, 3, "compare_and_set", (None, 2), True)], False),
        ([Op(0, 4, "compare_and_set", (None, 1), True), Op(1, 3, "compare_and_set", (None, 2), False)], True),
    ],
)
def test_known_histories(ops: list[Op], verdict: bool) -> None:
    assert linearizable(ops, register, None) is verdict


def test_known_histories_of_the_others() -> None:
    assert linearizable([Op(0, 9, "add", (1,), 3), Op(1, 5, "add", (2,), 2)], counter, 0)
    assert not linearizable([Op(0, 4, "add", (1,), 3), Op(5, 6, "add", (2,), 2)], counter, 0)
    puts = [Op(0, 1, "put", ("a",), None), Op(2, 3, "put", ("b",), None)]
    assert linearizable([*puts, Op(4, 9, "get_nowait", (), "b"), Op(5, 8, "get_nowait", (), "a")], queue, ())
    assert not linearizable([*puts, Op(4, 5, "get_nowait", (), "b"), Op(6, 8, "get_nowait", (), "a")], queue, ())


def dumb(ops: list[Op], model: Model, start: Any) -> bool:
    """Every order of every choice of those whose fate is unknown."""
    for count in range(len(ops) + 1):
        for order in permutations(ops, count):
            if any(op.end is not None and op not in order for op in ops):
                continue
            if any(b.end is not None and b.end < a.begin for k, a in enumerate(order) for b in order[k + 1 :]):
                continue
            state = start
            for op in order:
                state, answer = model(state, op.method, op.args)
                if op.end is not None and answer != op.answer:
                    break
            else:
                return True
    return False


def test_against_a_dumb_twin() -> None:
    draw, verdicts = random.Random(5), []
    for _ in range(300):
        ops = []
        for at in range(draw.randint(1, 5)):
            begin = 10 * at + draw.randrange(10)
            end = draw.choice([None, begin + draw.randrange(40)])
            method, args, answer = draw.choice([("set", (at,), None), ("get", (), draw.choice([None, 0, 1, 2]))])
            ops.append(Op(begin, end, method, args, answer, at))
        verdicts.append(linearizable(ops, register, None))
        assert verdicts[-1] == dumb(ops, register, None), ops
    assert 30 < sum(verdicts) < 270
